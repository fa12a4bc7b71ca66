"""Which rows are late, and what the watermark is after them: row by row, whatever the batching."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.schema import DAWN
from stairwise.streams.sequence import Position, sequence


def judge(times: list[int], lateness: int, cuts: list[int]) -> tuple[list[bool], Position, list[int]]:
    position, late, numbers = Position(), [], []
    bounds = [0, *sorted(c for c in cuts if c < len(times)), len(times)]
    for start, stop in itertools.pairwise(bounds):
        part = np.array(times[start:stop], np.int64)
        judged = sequence(pa.record_batch([pa.array(part)], names=["ts"]), part, position, lateness)
        late += judged.is_late.tolist()
        numbers += list(range(judged.sequence, judged.sequence + judged.on_time.num_rows))
        position = judged.position
    return late, position, numbers


def test_the_picture_in_the_module() -> None:
    late, position, numbers = judge([5, 9, 7, 3, 9, 12], 3, [])
    assert late == [False, False, False, True, False, False]
    assert position.watermark(3) == 8
    assert numbers == [0, 1, 2, 3, 4]


def test_rows_equal_to_the_highest_are_on_time_without_lateness() -> None:
    assert judge([5, 5, 6, 5], 0, [])[0] == [False, False, False, True]


def test_nothing_seen_has_no_watermark() -> None:
    assert Position().watermark(5) == DAWN


def test_a_raised_watermark_makes_rows_at_it_late() -> None:
    position = Position().raised(100)
    assert position.watermark(10) == 100
    rows = np.array([100, 101], np.int64)
    assert sequence(pa.record_batch([pa.array(rows)], names=["ts"]), rows, position, 10).is_late.tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("lateness", [0, 1, 7])
@given(times=st.lists(st.integers(-20, 20), max_size=30), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_batching_makes_no_difference(lateness: int, times: list[int], cuts: list[int]) -> None:
    highest, expected = DAWN, []
    for time in times:
        expected.append(highest != DAWN and time <= highest - lateness - 1)
        highest = max(highest, time)
    late, position, numbers = judge(times, lateness, cuts)
    assert late == expected
    assert position.highest == highest
    assert numbers == list(range(len(times) - sum(expected)))
