"""When rows leave: expiration times and orders on cases that fit in the head."""

from __future__ import annotations

import numpy as np

from stairwise.windows.expiry import (
    NEVER,
    admission_reports,
    expiration_orders,
    expiration_reports,
    expiration_times,
    joint_expirations,
    landmark_expirations,
    level_expiration_reports,
    partitioned_expiration_orders,
)
from stairwise.windows.spec import Level, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow

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


def test_levels_let_go_at_their_own_pace() -> None:
    window = MultiWindow((Level(4, 2), Level(9, 3)))
    assert level_expiration_reports(window, 0, ROWS).tolist() == [6, 8, 10, 14]
    assert level_expiration_reports(window, 1, ROWS).tolist() == [12, 15, 15, 18]


def test_a_landmark_lets_nothing_go() -> None:
    assert landmark_expirations(ROWS).tolist() == [NEVER] * 4


def test_rows_are_expelled_by_the_nth_row_after_them() -> None:
    assert expiration_orders(RowsWindow(3, 1), np.array([1, 2, 3])).tolist() == [4, 5, 6]


def test_in_partitions_only_rows_of_the_same_partition_count() -> None:
    codes = np.array([0, 1, 0, 0, 1, 2])
    expelled = partitioned_expiration_orders(PartitionedWindow(("a",), 1, 1), codes)
    assert expelled.tolist() == [2, 4, 3, NEVER, NEVER, NEVER]


def test_a_joined_result_leaves_with_the_first_of_its_parts() -> None:
    assert joint_expirations(np.array([9, 12]), np.array([10, 11])).tolist() == [9, 11]
