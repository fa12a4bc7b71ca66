"""Running sums are exact: whatever was added before, an interval's sum is that of its own rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates.contract import NO_ROWS, Algebra
from stairwise.aggregates.counts import Count
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.limbs import exact
from stairwise.aggregates.moments import Variance
from stairwise.aggregates.sums import IntegerSum
from stairwise.structures.running_intervals import RunningIntervals, Summand
from stairwise.structures.substreams import Substreams
from stairwise.structures.summands import columns_of, partial_columns

DOUBLES = st.none() | st.floats() | st.sampled_from([1e308, -1e308, 1e16, 0.1, 5e-324, 1.0])
INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
CASES: list[tuple[Algebra, pa.DataType, st.SearchStrategy[Any]]] = [
    (Count(), pa.float64(), DOUBLES),
    (IntegerSum(average=False), pa.int64(), INTEGERS),
    (IntegerSum(average=True), pa.int64(), INTEGERS),
    (DoubleSum(average=False), pa.float64(), DOUBLES),
    (Variance(root=False), pa.float64(), DOUBLES),
    (Variance(root=False), pa.int64(), INTEGERS),
]


def partial_of(algebra: Algebra, rows: np.ndarray, sums: dict[Summand, np.ndarray]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(partial_columns(algebra.family, rows, sums), schema=algebra.state)


@pytest.mark.parametrize("case", range(len(CASES)))
@given(data=st.data())
def test_a_difference_of_running_sums_is_the_partial_of_the_rows_between(case: int, data: st.DataObject) -> None:
    algebra, dtype, values = CASES[case]
    running = RunningIntervals()
    substreams = Substreams([running])
    everything: list[Any] = []
    for batch in data.draw(st.lists(st.lists(values, max_size=6), min_size=1, max_size=5)):
        times = np.arange(len(everything), len(everything) + len(batch))
        arrivals = substreams.add(np.zeros(len(batch), np.int64), times, 1)
        running.update(arrivals, columns_of(algebra.family, [pa.array(batch, dtype)]))
        everything += batch
    left = data.draw(st.integers(0, len(everything)))
    right = data.draw(st.integers(left, len(everything)))
    intervals = substreams.by_time(np.zeros(1, np.int64), np.array([left - 1]), np.array([right - 1]))
    found = partial_of(algebra, intervals.right - intervals.left, running.lookup(intervals))
    part = pa.array(everything[left:right], dtype)
    expected = algebra.lift([part], NO_ROWS, np.zeros(len(part), np.int64), 1)
    assert found.equals(expected)


@pytest.mark.parametrize("rows", [100_000, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_running_sums_of_doubles_do_not_drift(rows: int) -> None:
    """Magnitudes from 1e-200 to 1e200 go by, and a window of small ones among them comes out exactly."""
    chance = np.random.default_rng(5)
    running = RunningIntervals()
    substreams = Substreams([running])
    algebra = DoubleSum(average=False)
    size, keep = 4096, 20_000
    last: list[np.ndarray] = []
    for start in range(0, rows, size):
        values = chance.normal(size=size) * 10.0 ** chance.integers(-200, 200, size)
        if start + 2 * size >= rows:
            values = chance.normal(size=size)
        last = [*last[-4:], values]
        arrivals = substreams.add(np.zeros(size, np.int64), np.arange(start, start + size), 1)
        running.update(arrivals, columns_of(algebra.family, [pa.array(values)]))
        substreams.forget(start - keep)
    kept = np.concatenate(last)
    for count in (1, 100, size, len(kept)):
        intervals = substreams.by_rows(np.zeros(1, np.int64), np.array([count]), np.zeros(1, np.int64))
        partial = partial_of(algebra, np.array([count]), running.lookup(intervals))
        assert exact(partial.column(1), 0) == sum(map(Fraction, kept[-count:].tolist()), Fraction(0))
