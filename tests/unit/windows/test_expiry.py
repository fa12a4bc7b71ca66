"""When rows leave: expiration times on cases that fit in the head."""

from __future__ import annotations

import numpy as np

from stairwise.windows.expiry import admission_reports, expiration_reports, expiration_times
from stairwise.windows.spec import TimeWindow

ROWS = np.array([1, 4, 5, 9])


def test_a_row_is_shown_from_its_first_report_until_a_range_has_passed() -> None:
    window = TimeWindow(range=8, slide=2)
    assert admission_reports(window, ROWS).tolist() == [2, 4, 6, 10]
    assert expiration_times(window, ROWS).tolist() == [9, 12, 13, 17]
    assert expiration_reports(window, ROWS).tolist() == [10, 12, 14, 18]


def test_a_lag_delays_both_and_an_offset_moves_the_reports() -> None:
    window = TimeWindow(range=8, slide=4, lag=3, offset=1)
    assert admission_reports(window, ROWS).tolist() == [5, 9, 9, 13]
    assert expiration_reports(window, ROWS).tolist() == [13, 17, 17, 21]


def test_the_rows_of_a_tumbling_state_leave_together() -> None:
    assert expiration_reports(TimeWindow(5, 5), ROWS).tolist() == [10, 10, 10, 15]
