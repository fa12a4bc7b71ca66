"""SubStream Filters against the definition: none that belongs is missing, and what is too much is within the error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.lookups.gather import look_up, parts_or_scans
from stairwise.lookups.homes import homes
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type
from stairwise.structures import extreme_filter, kept_levels
from stairwise.structures.count_filter import CountFilter
from stairwise.structures.extreme_filter import ExtremeFilter, _Leaf
from stairwise.structures.index_levels import IndexLevel, level_for
from stairwise.structures.sorted_runs import SortedRuns
from stairwise.structures.substreams import Substreams
from stairwise.structures.sum_filter import SumFilter

Row = tuple[int, int, float]
"""Key, time, value."""


@given(least=st.integers(1, 5000) | st.integers(1, 2**60), p=st.integers(1, 100))
def test_a_level_lies_within_the_newest_and_is_off_by_less_than_two_in_p(least: int, p: int) -> None:
    level = level_for(least, p)
    assert level.behind + level.size <= least
    assert level.behind + 1 > least * (1 - 2 / p)


@given(length=st.integers(0, 300), least=st.integers(1, 100), p=st.integers(1, 8))
def test_a_level_marks_one_of_its_positions(length: int, least: int, p: int) -> None:
    level = level_for(least, p)
    mark = int(level.marks(np.array([length]))[0])
    if mark > 0:
        assert mark % level.size == 0
        assert level.behind < length - mark + 1 <= level.behind + level.size
    else:
        assert length < level.behind + level.size


@st.composite
def histories(draw: st.DrawFn) -> tuple[np.random.Generator, int, list[int]]:
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return chance, draw(st.sampled_from([1, 5, 60])), draw(st.lists(st.integers(0, 90), min_size=1, max_size=6))


def batches(history: tuple[np.random.Generator, int, list[int]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Keys and times; few keys get most rows."""
    chance, keys, sizes = history
    clock, found = 0, []
    for size in sizes:
        times = clock + np.cumsum(chance.integers(0, 3, size))
        clock = int(times[-1]) if size else clock
        found.append(((chance.random(size) ** 3 * keys).astype(np.int64), times))
    return found


def per_key(rows: list[Row], rear: int, fold: Callable[[list[float]], float]) -> dict[int, float]:
    values: dict[int, list[float]] = {}
    for key, time, value in rows:
        if time > rear:
            values.setdefault(key, []).append(value)
    return {key: fold(found) for key, found in values.items()}


@given(history=histories(), p=st.sampled_from([1, 2, 4, 32]), data=st.data())
def test_ci_count_misses_none_and_keeps_its_error(history: object, p: int, data: st.DataObject) -> None:
    substreams = Substreams()
    index = CountFilter(substreams, p)
    rows: list[Row] = []
    for key, times in batches(history):  # type: ignore[arg-type]
        keys = max(substreams.keys, int(key.max(initial=-1)) + 1)
        index.update(substreams.add(key, times, keys))
        rows += [(k, t, 1) for k, t in zip(key.tolist(), times.tolist(), strict=True)]
        if not keys:
            continue
        for _ in range(3):
            rear, least = data.draw(st.integers(-1, 200)), data.draw(st.integers(1, 60))
            counts = per_key(rows, rear, len)
            found = index.lookup(least, rear).tolist()
            assert len(set(found)) == len(found)
            assert {k for k, n in counts.items() if n >= least} <= set(found)
            assert all(counts.get(k, 0) > least * (1 - 2 / p) for k in found)


def test_a_thousand_thresholds_share_a_few_levels_and_few_get_fine_ones_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_levels, "EPOCH", 2000)
    substreams = Substreams()
    index = CountFilter(substreams)
    chance = np.random.default_rng(1)
    key = (chance.random(20_000) ** 3 * 300).astype(np.int64)
    index.update(substreams.add(key, np.arange(20_000), 300))
    counts = np.bincount(key, minlength=300)
    whole = 0

    def put(level: IndexLevel, runs: SortedRuns, keys: np.ndarray) -> None:
        nonlocal whole
        whole += len(keys) == 300
        CountFilter._put(index, level, runs, keys)

    monkeypatch.setattr(index, "_put", put)
    for least in [*range(1, 1001), *range(1000, 0, -1)]:
        found = index.lookup(least, -1)
        assert set(np.flatnonzero(counts >= least)) <= set(found)
        assert len(found) <= np.count_nonzero(2 * counts >= least)
    assert whole <= 5 * kept_levels.MOST_LEVELS  # no more than a few times for each way to be fine
    for _ in range(3000):
        index.lookup(700, -1)
    assert index.levels.p == 32
    assert (counts[index.lookup(700, -1)] > 700 * (1 - 2 / 32)).all()


@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_a_key_of_one_partition_is_asked_with_the_whole_threshold(partitions: int) -> None:
    columns = (Column("ts", Type.TIMESTAMP), Column("k", Type.BIGINT))
    stream = Stream("s", columns, "ts", partition_by="k", partitions=partitions)
    held = {number: PartitionHistory(stream, number, Retain()) for number in range(partitions)}
    keys = np.repeat(np.arange(200), np.arange(200) + 1)
    home = homes(pa.array(keys), partitions)
    for number, history in held.items():
        mine = pa.array(keys[home == number])
        times = pa.array(np.arange(len(mine)))
        history.take(pa.RecordBatch.from_arrays([times, mine], schema=stream.arrow_schema), 10**6)
    text = "SELECT k, COUNT(*) AS n FROM s [FROM 0] GROUP BY k HAVING COUNT(*) >= 160"
    lookup = read_lookup(text, {"s": stream})
    for _ in range(3):
        assert look_up(lookup, 10**6, held).num_rows == 41
    parts = parts_or_scans(lookup, 10**6, held)
    assert 41 <= sum(part.num_rows for part in parts if isinstance(part, pa.RecordBatch)) <= 60


@pytest.mark.parametrize("fractions", [False, True])
@given(history=histories(), p=st.sampled_from([1, 2, 4, 32]), data=st.data())
def test_ci_sum_misses_none_and_keeps_its_error(
    fractions: bool, history: tuple[np.random.Generator, int, list[int]], p: int, data: st.DataObject
) -> None:
    index = SumFilter(p)
    substreams = Substreams([index])
    rows: list[Row] = []
    for key, times in batches(history):
        values = history[0].integers(0, 9, len(key)) * (0.1 if fractions else 1)
        keys = max(substreams.keys, int(key.max(initial=-1)) + 1)
        index.update(substreams, substreams.add(key, times, keys), values)
        rows += list(zip(key.tolist(), times.tolist(), values.tolist(), strict=True))
        if not keys:
            continue
        for _ in range(3):
            rear, least = data.draw(st.integers(-1, 200)), data.draw(st.integers(1, 300)) * (0.1 if fractions else 1)
            sums = per_key(rows, rear, sum)
            found = index.lookup(substreams, least, rear)
            if found is None:
                assert not any(values.any() for values in [np.array([v for *_, v in rows])])
                continue
            assert len(set(found.tolist())) == len(found)
            assert {k for k, total in sums.items() if total >= least} <= set(found.tolist())
            slack = 1e-4 if fractions else 0
            assert all(sums.get(k, 0) > least * (1 - 2 / p) - slack for k in found.tolist())


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), -0.5])
def test_ci_sum_gives_up_at_a_value_that_it_cannot_count(value: float) -> None:
    index = SumFilter()
    substreams = Substreams([index])
    dtype = np.int64 if isinstance(value, int) else np.float64
    index.update(substreams, substreams.add(np.zeros(2, np.int64), np.arange(2), 1), np.array([3, 4], dtype))
    assert index.lookup(substreams, 5, -1) is not None
    index.update(substreams, substreams.add(np.zeros(1, np.int64), np.array([2]), 1), np.array([value], dtype))
    assert index.lookup(substreams, 5, -1) is None


@given(history=histories(), data=st.data())
def test_the_filter_by_extremes_is_exact_in_any_window(history: object, data: st.DataObject) -> None:
    usual, extreme_filter.LEAF = extreme_filter.LEAF, 8  # small blocks, so that many levels come about
    try:
        index = ExtremeFilter()
        rows: list[Row] = []
        horizon = -1
        for key, times in batches(history):  # type: ignore[arg-type]
            values = history[0].integers(-20, 20, len(key))  # type: ignore[index]
            index.update(key, times, values)
            rows += list(zip(key.tolist(), times.tolist(), values.tolist(), strict=True))
            horizon = max(horizon, data.draw(st.integers(-1, 60)))
            index.forget(horizon)
            for _ in range(3):
                rear = data.draw(st.integers(horizon, 260))
                front, bound = data.draw(st.integers(rear, 300)), data.draw(st.integers(-22, 20))
                expected = {k for k, t, v in rows if rear < t <= front and v > bound}
                assert index.lookup(rear, front, bound).tolist() == sorted(expected)
    finally:
        extreme_filter.LEAF = usual


def test_rows_behind_the_front_cost_the_filter_by_extremes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = ExtremeFilter()
    chance = np.random.default_rng(1)
    times, key, value = np.arange(100_000), chance.integers(0, 50, 100_000), chance.integers(0, 1000, 100_000)
    index.update(key, times, value)
    looked_through = 0
    above = _Leaf.above

    def counted(leaf: _Leaf, rear: int, front: int, bound: int) -> np.ndarray:
        nonlocal looked_through
        looked_through += 1
        return above(leaf, rear, front, bound)

    monkeypatch.setattr(_Leaf, "above", counted)
    for front in (99_999, 50_500, 9_000):
        inside = (times > front - 8_000) & (times <= front) & (value > 990)
        assert index.lookup(front - 8_000, front, 990).tolist() == np.unique(key[inside]).tolist()
    assert looked_through <= 9
