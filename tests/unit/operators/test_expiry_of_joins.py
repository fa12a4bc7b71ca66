"""Chains of equal keys, the calendar queue and negative tuples: what a join finds, and what of it goes when."""

from __future__ import annotations

import numpy as np
import pytest

from stairwise.cql.query import Select
from stairwise.cql.script import Catalogue
from stairwise.operators.bands import bands_of
from stairwise.operators.calendar import CalendarQueue
from stairwise.operators.chains import NONE, Chains, GrowingInts, in_order, sorted_places
from stairwise.operators.join import Condition
from stairwise.operators.negatives import ResultsByKey


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


def test_negative_tuples_and_order_of_expiration_leave_the_same_results() -> None:
    chance = np.random.default_rng(3)
    window, step = 50, 10
    sides, results, calendar = [Chains(), Chains()], ResultsByKey(), CalendarQueue(step)
    kept = 0
    for start in range(0, 400, step):
        keys = [chance.integers(0, 20, step) for _ in sides]
        lowest = np.full(step, max(0, start + step - window))
        sides[1].extend(keys[1])
        first, partner = sides[1].probe(keys[0], lowest)
        second, old = sides[0].probe(keys[1], lowest)
        sides[0].extend(keys[0])
        left, right = np.concatenate([first + start, old]), np.concatenate([partner, second + start])
        alive = np.minimum(left, right) + window >= start + step
        left, right = left[alive], right[alive]
        results.add(sides[0].keys.at(left), left, right)
        calendar.push(np.minimum(left, right) + window, left)
        kept += len(left) - len(calendar.pop(start + step - 1)[0])
        leaving = np.arange(max(0, start - window), max(0, start + step - window))
        for side in (0, 1):
            if len(leaving):
                results.remove(side, leaving, sides[side].keys.at(leaving), sides[1 - side], 0)
        results.forget()
        assert results.count == kept


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
