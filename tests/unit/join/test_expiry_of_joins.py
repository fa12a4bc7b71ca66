"""Chains of equal keys and the calendar queue: what a join finds, and what of it goes when."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Select
from stairwise.cql.script import Catalogue
from stairwise.join.bands import bands_of
from stairwise.join.joined_rows import JoinedRows
from stairwise.state.calendar_queue import CalendarQueue
from stairwise.state.chains import NONE, Chains, GrowingInts, in_order, sorted_places


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(np.zeros(200, np.int64), id="all rows equal"),
        pytest.param(np.arange(200), id="no two rows equal"),
        pytest.param(np.arange(200) % 7 + NONE, id="some rows without a key"),
        pytest.param(np.where(np.arange(200) % 3 == 0, 5, np.arange(200)), id="one long chain among short ones"),
    ],
)
def test_a_probe_finds_every_row_with_its_key_from_its_lowest_position_on(keys: np.ndarray) -> None:
    chains = Chains()
    for start in range(0, len(keys), 33):
        chains.extend(keys[start : start + 33])
    chains.drop(10)
    asked, lowest = np.array([0, 5, 6, 3, NONE, 10**6, 0]), np.array([0, 0, 50, 199, 0, 0, 120])
    probe, position = chains.probe(asked, lowest)
    found = sorted(zip(probe.tolist(), position.tolist(), strict=True))
    expected = [
        (i, p)
        for i, (key, low) in enumerate(zip(asked.tolist(), lowest.tolist(), strict=True))
        for p in range(max(low, 10), len(keys))
        if key == keys[p] and key != NONE
    ]
    assert found == expected


def test_numbers_that_grow_at_the_end_are_forgotten_from_the_front() -> None:
    numbers = GrowingInts(100)
    numbers.extend(np.arange(3000))
    numbers.drop(1100)
    numbers.extend(np.arange(5000))
    assert (numbers.first, numbers.end) == (1100, 8100)
    assert numbers.at(np.array([1100, 3100, 8099])).tolist() == [1000, 0, 4999]


@pytest.mark.parametrize("far", [1, 2**40])
def test_rows_are_sorted_by_all_their_columns(far: int) -> None:
    chance = np.random.default_rng(1)
    columns = [chance.integers(-3, 3, 500) * far for _ in range(3)]
    expected = sorted(zip(*(c.tolist() for c in columns), strict=True))
    assert list(zip(*(c.tolist() for c in in_order(columns)), strict=True)) == expected
    number, place = sorted_places(np.array([2, 0, 2, 1]))
    assert (number.tolist(), place.tolist()) == ([0, 1, 2, 2], [1, 3, 0, 2])


@pytest.mark.parametrize("day", [1, 7, 1000])
def test_a_calendar_queue_gives_out_what_is_due_and_keeps_the_rest(day: int) -> None:
    chance = np.random.default_rng(day)
    queue, waiting = CalendarQueue(day), []
    for now in range(0, 400, 13):
        times = now + chance.integers(0, 60, 20)
        queue.push(times, times * 2)
        waiting += times.tolist()
        due, numbers = queue.pop(now)
        assert sorted(due.tolist()) == sorted(t for t in waiting if t <= now)
        assert numbers.tolist() == (due * 2).tolist()
        waiting = [t for t in waiting if t > now]
        assert len(queue) == len(waiting)


def test_a_calendar_queue_takes_times_that_lie_ages_apart() -> None:
    queue = CalendarQueue(1)
    queue.push(np.array([2**61, 3, -(2**61)]), np.array([0, 1, 2]))
    assert queue.pop(3)[1].tolist() == [2, 1]
    assert queue.numbers().tolist() == [0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.ts <= b.ts", [(1, 0, 0)]),
        ("CAST(a.ts AS DOUBLE) > CAST(b.ts AS DOUBLE) - 2", [(0, 1, -2)]),
        (
            "CAST(a.ts AS DOUBLE) BETWEEN CAST(b.ts AS DOUBLE) - 2 AND 1.5 + CAST(b.ts AS DOUBLE)",
            [(0, 1, -2), (1, 0, -2)],
        ),
        ("CAST(a.ts AS DOUBLE) < CAST(b.ts AS DOUBLE) * 2", []),
        ("a.x <= b.x AND a.ts = b.ts", []),
        ("a.ts < TIMESTAMP '2026-01-31T12:00:00Z'", []),
    ],
)
def test_a_band_is_read_off_a_condition_on_the_times_of_two_inputs(
    condition: str, expected: list[tuple[int, int, int]]
) -> None:
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (x BIGINT, ts TIMESTAMP) TIMESTAMP BY ts;")
    catalogue.execute(f"CREATE QUERY q AS SELECT a.x FROM s [RANGE 1m] a, s [RANGE 1m] b WHERE {condition};")
    select = catalogue.queries["q"].relation
    assert isinstance(select, Select)
    assert bands_of(Condition(select), [source.stream for source in select.inputs]) == expected


def test_joined_rows_that_expired_go_though_an_older_one_stays() -> None:
    rows = JoinedRows(pa.schema([("v", pa.int64())]))
    for start in range(0, 100_000, 1000):
        numbers = np.arange(start, start + 1000)
        ends = np.where(numbers == 0, 10**9, numbers + 500)  # the first one stays for ever
        rows.add(numbers, ends, pa.RecordBatch.from_arrays([pa.array(numbers)], names=["v"]))
        rows.evict(start + 999)
    at = 99_999
    _, showing = rows.showing(np.array([at]))
    assert showing.tolist() == [0, *range(at - 499, at + 1)]
    assert rows.take(showing).column(0).to_pylist() == showing.tolist()
    assert rows.ends_of(showing[:2]).tolist() == [10**9, at + 1]
    assert rows.begins_of(showing[-1:]).tolist() == [at]
    assert rows.kept <= 2 * len(showing) + 5096  # what is not worth a look stays
