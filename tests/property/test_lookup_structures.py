"""Every structure against the definition: a list of rows for each key, looked through from end to end.

Rows come in batches of any size, over few or many keys, with a horizon that moves on now and then, so that rings
fill up, grow, forget and move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.quantile_intervals import NULL, QuantileIntervals
from stairwise.structures import extreme_intervals
from stairwise.structures.base_intervals import BaseIntervals
from stairwise.structures.contract import Arrivals, Intervals
from stairwise.structures.extreme_intervals import ExtremeIntervals
from stairwise.structures.landmark_intervals import LandmarkIntervals
from stairwise.structures.running_intervals import RunningIntervals, Summand
from stairwise.structures.substreams import Substreams


@dataclass
class Sums:
    """R-INT as the matrix asks it."""

    structure: RunningIntervals = field(default_factory=RunningIntervals)

    def update(self, arrivals: Arrivals, values: np.ndarray) -> None:
        self.structure.update(arrivals, {Summand(0): values})

    def answers(self, intervals: Intervals) -> list[Any]:
        return self.structure.lookup(intervals).get(Summand(0), np.zeros(len(intervals), np.int64)).tolist()

    def expected(self, values: list[int]) -> Any:
        return sum(values)


@dataclass
class Best:
    """B-INT and L-INT."""

    structure: BaseIntervals | LandmarkIntervals
    best: Callable[..., int]

    def update(self, arrivals: Arrivals, values: np.ndarray) -> None:
        self.structure.update(arrivals, values)

    def answers(self, intervals: Intervals) -> list[Any]:
        return self.structure.lookup(intervals).tolist()

    def expected(self, values: list[int]) -> Any:
        return self.best(values, default=int(self.structure.nothing))


def ranks(count: int) -> list[int]:
    """The first, the last and some between."""
    return sorted({0, count // 3, count // 2, count - 1}) if count else []


@dataclass
class Sorted:
    """B-INT-QNT: some ranks, with every seventh value a NULL."""

    structure: QuantileIntervals = field(default_factory=QuantileIntervals)

    def update(self, arrivals: Arrivals, values: np.ndarray) -> None:
        self.structure.update(arrivals, np.where(values % 7 == 0, NULL, values))

    def answers(self, intervals: Intervals) -> list[Any]:
        found = [self.structure.lookup(intervals, number) for number in range(len(intervals))]
        return [[arrays.at(rank) for rank in ranks(len(arrays))] for arrays in found]

    def expected(self, values: list[int]) -> Any:
        ordered = sorted(value for value in values if value % 7)
        return [ordered[rank] for rank in ranks(len(ordered))]


@dataclass
class Chosen(Best):
    """As it is where landmarks pay from the first lookup on, and are looked at again after every other batch."""

    structure: ExtremeIntervals
    substreams: Substreams = field(default_factory=Substreams)

    def update(self, arrivals: Arrivals, values: np.ndarray) -> None:
        self.structure.update(self.substreams, arrivals, values)

    def answers(self, intervals: Intervals) -> list[int]:
        return self.structure.lookup(self.substreams, intervals).tolist()


STRUCTURES: dict[str, Callable[[], Any]] = {
    "R-INT": Sums,
    "B-INT MAX": lambda: Best(BaseIntervals(largest=True), max),
    "L-INT MIN": lambda: Best(LandmarkIntervals(range(12), largest=False), min),
    "B-INT or L-INT MAX": lambda: Chosen(ExtremeIntervals(largest=True), max),
    "B-INT-QNT": Sorted,
}


@dataclass(frozen=True)
class Step:
    """A batch, and how far behind its last row the horizon is moved afterwards, if it is."""

    rows: int
    keep: int | None = None


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, list[Step]]:
    seed = draw(st.integers(0, 2**32 - 1))
    keys = draw(st.sampled_from([1, 2, 3, 20, 300]))
    rows = st.integers(0, 12) | st.integers(0, 120)
    steps = st.builds(Step, rows, st.none() | st.integers(0, 100))
    return seed, keys, draw(st.lists(steps, min_size=1, max_size=8))


@pytest.fixture(autouse=True, scope="module")
def _eager() -> Iterator[None]:
    """Landmarks pay soon, and soon no longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extreme_intervals, "SAVED", 60)
        patch.setattr(extreme_intervals, "EPOCH", 100)
        yield


# A ring that was smaller than a block when the block was complete, and grew while it had rows of it.
GROWN = [Step(84), Step(1), Step(85), Step(114, 9), Step(8), Step(2), Step(10), Step(10)]


@pytest.mark.parametrize("name", STRUCTURES)
@given(history=histories())
@example(history=(10184, 2, GROWN))
def test_lookups_equal_the_definition_whatever_the_batches_and_whatever_was_forgotten(
    name: str, history: tuple[int, int, list[Step]]
) -> None:
    seed, keys, steps = history
    chance = np.random.default_rng(seed)
    structure = STRUCTURES[name]()
    structure.substreams = substreams = Substreams([structure.structure])
    rows: list[list[tuple[int, int]]] = [[] for _ in range(keys)]
    clock, horizon, known = 0, -1, 0
    for step in steps:
        key = (chance.random(step.rows) ** 3 * keys).astype(np.int64)
        times = clock + np.cumsum(chance.integers(0, 3, step.rows))
        values = chance.integers(-50, 50, step.rows)
        known = max(known, int(key.max(initial=-1)) + 1)
        structure.update(substreams.add(key, times, known), values)
        for k, time, value in zip(key.tolist(), times.tolist(), values.tolist(), strict=True):
            rows[k].append((time, value))
        clock = int(times[-1]) if step.rows else clock
        if step.keep is not None:
            horizon = max(horizon, clock - step.keep)
            substreams.forget(horizon)
        _compare(chance, structure, substreams, rows, known, horizon, clock)


def _compare(
    chance: np.random.Generator,
    structure: Any,
    substreams: Substreams,
    rows: list[list[tuple[int, int]]],
    known: int,
    horizon: int,
    clock: int,
) -> None:
    if not known:
        return
    key = chance.integers(0, known, 8)
    rear = chance.integers(horizon, clock + 2, 8)
    front = rear + chance.integers(0, clock - horizon + 2, 8)
    expected = [
        structure.expected([v for t, v in rows[k] if low < t <= high])
        for k, low, high in zip(key.tolist(), rear.tolist(), front.tolist(), strict=True)
    ]
    assert structure.answers(substreams.by_time(key, rear, front)) == expected

    count, skip = chance.integers(0, 40, 8), chance.integers(0, 10, 8)
    kept = [[v for t, v in rows[k] if t > horizon] for k in key.tolist()]
    expected = [
        structure.expected(values[: len(values) - s][-n:] if n and len(values) > s else [])
        for values, n, s in zip(kept, count.tolist(), skip.tolist(), strict=True)
    ]
    intervals = substreams.by_rows(key, count, skip)
    whole = [substreams.ends(key[i : i + 1]) for i in range(8)]
    if all(int((end - first)[0]) == len(values) for (first, end), values in zip(whole, kept, strict=True)):
        assert structure.answers(intervals) == expected


@pytest.mark.parametrize("keys", [1, 5])
def test_memory_stays_bounded_while_rows_come_and_go(keys: int) -> None:
    running = RunningIntervals()
    substreams = Substreams([running])
    chance = np.random.default_rng(1)
    sizes = []
    for batch in range(200):
        times = np.arange(batch * 1000, batch * 1000 + 1000)
        running.update(substreams.add(chance.integers(0, keys, 1000), times, keys), {Summand(0): times})
        substreams.forget(int(times[-1]) - 5000)
        sizes.append(substreams.size_bytes)
    assert max(sizes[100:]) <= 32 * 16 * 5000
    assert len(substreams) == 5000


def test_an_interval_without_rows_makes_no_landmarks() -> None:
    structure = ExtremeIntervals(largest=True)
    substreams = Substreams([structure])
    structure.update(substreams, substreams.add(np.zeros(1, np.int64), np.array([5]), 1), np.array([7]))
    nothing = substreams.by_time(np.array([0]), np.array([9]), np.array([10]))
    for _ in range(3):
        assert structure.lookup(substreams, nothing).tolist() == [structure.nothing]
    assert structure.describe().startswith("B-INT")
