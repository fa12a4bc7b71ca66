"""What a log of appearances keeps when it forgets phantoms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.distinct.appearances import AppearanceLog
from stairwise.schema import DAWN


def logged(*rows: tuple[int, str]) -> AppearanceLog:
    log = AppearanceLog([pa.string()])
    times = np.array([time for time, _ in rows])
    log.append([pa.array([value for _, value in rows])], times, np.arange(len(rows)))
    return log


def kept(log: AppearanceLog) -> list[tuple[int, str]]:
    (values,) = log.values()
    return list(zip(log.time.tolist(), values.to_pylist(), strict=True))


def test_a_value_that_stays_in_every_window_needs_one_appearance() -> None:
    log = logged(*((time, "a") for time in range(1, 41)))
    fronts = np.arange(30, 40)
    log.compact(0, 40, fronts, fronts - 5)
    assert kept(log) == [(40, "a")]
    assert log.previous.tolist() == [39]


def test_a_phantom_stays_while_it_shows_that_its_value_has_entered_a_window() -> None:
    log = logged((1, "a"), (12, "a"), (14, "a"), (16, "a"))
    log.compact(0, 16, np.array([10]), np.array([5]))  # (5, 10] has not shown yet that a came at 12
    assert kept(log) == [(12, "a"), (16, "a")]
    log.compact(0, 16, np.array([15]), np.array([10]))  # (10, 15] has
    assert kept(log) == [(16, "a")]


def test_what_lies_before_all_windows_goes() -> None:
    log = logged((1, "a"), (2, "b"), (9, "b"))
    log.compact(4, 10, np.array([10]), np.array([4]))
    assert kept(log) == [(9, "b")]


def test_a_log_is_restored_as_it_stood() -> None:
    log = logged(*((time, "ab"[time % 2]) for time in range(1, 9)))
    log.compact(0, 8, np.array([8]), np.array([0]))
    again = AppearanceLog([pa.string()])
    again.restore(log.values(), log.time, log.previous)
    assert (kept(again), again.previous.tolist()) == ([(7, "b"), (8, "a")], [5, 6])
    again.append([pa.array(["c", "a"])], np.array([9, 9]), np.array([0, 1]))
    assert again.previous.tolist()[2:] == [DAWN, 8]
