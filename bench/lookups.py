"""Lookups: the structures by themselves, filters against a scan of all keys, and the service against a bare echo.

Kernels are measured in CPU seconds of one process on rows that come through the reorder buffer, the best of several
rounds counting: other processes on the machine cost CPU time too, since they share its caches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench import lookup_windows, lookups_service
from bench.quantile_intervals import QuantileIntervals
from bench.report import Goal, conclude
from stairwise.expressions.views import int64_view
from stairwise.lookups.partition_history import LUMP
from stairwise.lookups.reorder import ReorderBuffer
from stairwise.lookups.settled_rows import SettledRows
from stairwise.schema import Column, Stream, Type
from stairwise.structures.base_intervals import BaseIntervals
from stairwise.structures.contract import Arrivals, Structure
from stairwise.structures.count_filter import CountFilter
from stairwise.structures.landmark_intervals import LandmarkIntervals
from stairwise.structures.running_intervals import RunningIntervals
from stairwise.structures.running_intervals import Summand as Summed
from stairwise.structures.substreams import Substreams
from stairwise.structures.summands import SUM, columns_of

BATCH = 4096
KEYS = 1000
KEPT = 1 << 17
"""Rows that are kept: about as many as in the experiments of seed 004."""
ROUNDS = 20
LOOKUPS = 1 << 14
STREAM = Stream(
    "s",
    (Column("ts", Type.TIMESTAMP), Column("k", Type.BIGINT), Column("n", Type.BIGINT), Column("x", Type.DOUBLE)),
    timestamp_by="ts",
    lateness=100,
)

UPDATE_GOAL = 20.0
LOOKUP_GOAL = 5.0
B_INT_GOAL = UPDATE_GOAL / 3
DOUBLE_GOAL = 1 / 4
FILTER_GOAL = 50.0

Update = Callable[[Arrivals, np.ndarray, SettledRows], None]


def batches(keys: int, count: int, late: int = 0, seed: int = 1) -> list[pa.RecordBatch]:
    """Rows a millisecond apart, each up to ``late`` milliseconds late."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        times = np.arange(number * BATCH, (number + 1) * BATCH) - chance.integers(0, late + 1, BATCH)
        columns = [
            pa.array(values)
            for values in (
                times,
                chance.integers(0, keys, BATCH),
                chance.integers(-1000, 1000, BATCH),
                chance.normal(100, 20, BATCH),
            )
        ]
        found.append(pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema))
    return found


class Feed:
    """Batches that go on for ever, through the reorder buffer into the substreams.

    They are taken from it when it has ``lump`` rows: each at once, as while somebody asks, or several together.
    """

    def __init__(
        self, structures: list[Structure], update: Update, keys: int = KEYS, late: int = 0, lump: int = BATCH
    ) -> None:
        self.substreams = Substreams(structures)
        self.keys = keys
        self.end = 0
        self._update = update
        self._lump = lump
        self._buffer = ReorderBuffer(STREAM)
        self._batches = batches(keys, 64, late)
        self._shifted = self._forever()

    def _forever(self) -> Iterator[pa.RecordBatch]:
        cycle = 0
        while True:
            for batch in self._batches:
                times = int64_view(batch.column(0)) + cycle * len(self._batches) * BATCH
                yield batch.set_column(0, "ts", pa.array(times))
            cycle += 1

    def run(self, rows: int) -> float:
        """Take so many rows in; million rows per CPU second."""
        chosen = [next(self._shifted) for _ in range(rows // BATCH)]
        begin = time.process_time()
        for number, batch in enumerate(chosen):
            self.end += BATCH
            self._buffer.put(batch, self.end - STREAM.lateness - 1)
            if self._buffer.fresh >= self._lump:
                self._settle()
            if number % 16 == 0:
                self.substreams.forget(self.end - KEPT)
        return rows / (time.process_time() - begin) / 1e6

    def _settle(self) -> None:
        settled = self._buffer.take(1, 2)
        self._update(self.substreams.add(settled.ints(1), settled.times, self.keys), settled.ints(2), settled)

    def best(self) -> float:
        self.run(4 * KEPT)  # until rows are forgotten as fast as they come
        return max(self.run(KEPT) for _ in range(ROUNDS))


def lookups_a_second(look: Callable[[np.random.Generator, int], object], batch: int = LOOKUPS) -> float:
    """Million lookups per CPU second."""
    chance = np.random.default_rng(3)
    rates = []
    for _ in range(ROUNDS):
        begin, done = time.process_time(), 0
        while time.process_time() - begin < 0.02:
            look(chance, batch)
            done += batch
        rates.append(done / (time.process_time() - begin) / 1e6)
    return max(rates)


@dataclass(frozen=True)
class Measured:
    name: str
    updates: float
    by_time: float
    by_rows: float | None = None


def measure(
    name: str, structure: Structure, update: Update, look: Callable[..., object], late: int = 0, lump: int = BATCH
) -> Measured:
    feed = Feed([structure], update, late=late, lump=lump)
    updates = feed.best()

    def by_time(chance: np.random.Generator, count: int) -> object:
        rear = feed.end - chance.integers(1000, KEPT // 2, count)
        return look(feed.substreams.by_time(chance.integers(0, KEYS, count), rear, np.full(count, feed.end)))

    def by_rows(chance: np.random.Generator, count: int) -> object:
        rows = chance.integers(1, KEPT // KEYS // 2, count)
        skip = chance.integers(0, KEPT // KEYS // 4, count)
        return look(feed.substreams.by_rows(chance.integers(0, KEYS, count), rows, skip))

    return Measured(name, updates, lookups_a_second(by_time), lookups_a_second(by_rows))


def kernels() -> list[Measured]:
    running, lumps, disordered, doubles = (RunningIntervals() for _ in range(4))
    base, landmarks = BaseIntervals(largest=True), LandmarkIntervals(range(11), largest=True)
    quantiles = QuantileIntervals()

    def median(intervals: object) -> None:
        for number in range(8):
            arrays = quantiles.lookup(intervals, number)  # type: ignore[arg-type]
            if len(arrays):
                arrays.at(len(arrays) // 2)

    found = [
        measure("R-INT, SUM of BIGINT", running, lambda a, n, r: running.update(a, {Summed(SUM): n}), running.lookup),
        measure(
            f"R-INT, SUM of BIGINT, {LUMP:,} rows taken together",
            lumps,
            lambda a, n, r: lumps.update(a, {Summed(SUM): n}),
            lumps.lookup,
            lump=LUMP,
        ),
        measure(
            "R-INT, SUM of DOUBLE",
            doubles,
            lambda a, n, r: doubles.update(a, columns_of("double sum", [r.column(3)])),
            doubles.lookup,
        ),
        measure(
            f"R-INT, SUM of BIGINT, rows up to {STREAM.lateness} ms late",
            disordered,
            lambda a, n, r: disordered.update(a, {Summed(SUM): n}),
            disordered.lookup,
            late=STREAM.lateness,
        ),
        measure("B-INT, MAX", base, lambda a, n, r: base.update(a, n), base.lookup),
        measure("L-INT, MAX, 11 classes", landmarks, lambda a, n, r: landmarks.update(a, n), landmarks.lookup),
    ]
    feed = Feed([quantiles], lambda a, n, r: quantiles.update(a, n))
    updates = feed.best()

    def one(chance: np.random.Generator, count: int) -> None:
        rear = feed.end - chance.integers(1000, KEPT // 2, count)
        median(feed.substreams.by_time(chance.integers(0, KEYS, count), rear, np.full(count, feed.end)))

    found.append(Measured("B-INT-QNT, MEDIAN", updates, lookups_a_second(one, 8)))
    return found


def filters(keys: int) -> tuple[float, float, float]:
    """Seconds of a filter with its post-check and of a scan, and the keys of the answer on average."""
    running = RunningIntervals()
    substreams = Substreams([running])
    index = CountFilter(substreams)
    chance = np.random.default_rng(2)
    skew = np.minimum((keys * chance.random((256, BATCH)) ** 2).astype(np.int64), keys - 1)
    for number, key in enumerate(skew):
        index.update(substreams.add(key, np.arange(number * BATCH, (number + 1) * BATCH), keys))
    end = len(skew) * BATCH
    rear = end - end // 2
    counts = np.sort(_counts(substreams, np.arange(keys), rear, end))
    least = int(counts[-50]) + 1

    def scanned() -> np.ndarray:
        active = substreams.active(rear)
        return active[_counts(substreams, active, rear, end) >= least]

    def filtered() -> np.ndarray:
        found = index.lookup(least, rear)
        return found[_counts(substreams, found, rear, end) >= least]

    expected = np.sort(scanned())
    if not np.array_equal(np.sort(filtered()), expected):
        raise AssertionError("the filter and the scan differ")
    return _seconds(filtered), _seconds(scanned), len(expected)


def _counts(substreams: Substreams, keys: np.ndarray, rear: int, front: int) -> np.ndarray:
    intervals = substreams.by_time(keys, np.full(len(keys), rear), np.full(len(keys), front))
    counts: np.ndarray = intervals.right - intervals.left
    return counts


def _seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(20):
        begin = time.process_time_ns()
        call()
        best = min(best, (time.process_time_ns() - begin) / 1e9)
    return best


def main() -> int:
    measured = kernels()
    r_int, lumps, doubles, _, b_int = measured[:5]
    goals = [
        _rate("R-INT updates, each batch at once", r_int.updates, UPDATE_GOAL, "rows"),
        _rate(f"R-INT updates, as while nobody asks: {LUMP:,} rows together", lumps.updates, UPDATE_GOAL, "rows"),
        _rate("R-INT lookups by rows", r_int.by_rows or 0.0, LOOKUP_GOAL, "lookups"),
        _rate("R-INT lookups by time", r_int.by_time, LOOKUP_GOAL, "lookups"),
        _rate("B-INT updates", b_int.updates, B_INT_GOAL, "rows"),
        Goal(
            "R-INT updates, DOUBLE against BIGINT",
            f"{DOUBLE_GOAL:.2f} or more",
            f"{doubles.updates / r_int.updates:.2f} ({doubles.updates:.1f} M rows/CPU s)",
            doubles.updates / r_int.updates >= DOUBLE_GOAL,
        ),
    ]
    lines = [
        "| structure | updates | lookups by time | lookups by rows |",
        "|---|---|---|---|",
        *(f"| {m.name} | {m.updates:.2f} | {m.by_time:.4f} | {_or_dash(m.by_rows)} |" for m in measured),
        "",
        "| keys | filter, µs | scan, µs | times | keys found |",
        "|---|---|---|---|---|",
    ]
    for keys in (1000, 10_000, 100_000):
        quick, slow, answer = filters(keys)
        lines.append(f"| {keys:,} | {quick * 1e6:.0f} | {slow * 1e6:.0f} | {slow / quick:.0f} | {answer:.0f} |")
        if keys == 100_000:
            figure = f"{slow / quick:.0f} times, {answer:.0f} keys"
            wanted = f"{FILTER_GOAL:.0f} times or more"
            goals.append(Goal("CI-COUNT against a scan of 100,000 keys", wanted, figure, slow / quick >= FILTER_GOAL))
    text = (
        f"Million per CPU second, {KEYS:,} keys, batches of {BATCH:,} rows through the reorder buffer, {KEPT:,} "
        f"rows kept, lookups in batches of {LOOKUPS:,}. Each batch is taken into the structure at once, as while "
        f"somebody asks; while nobody does, a partition takes {LUMP:,} rows together. A filter includes its post-check "
        "against exact counts.\n\n" + "\n".join(lines)
    )
    served, said = lookups_service.measure()
    return conclude("lookups", "Lookups", f"{text}\n\n{said}", [*goals, *lookup_windows.measure(), *served])


def _or_dash(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.4f}"


def _rate(name: str, figure: float, wanted: float, what: str) -> Goal:
    return Goal(name, f"{wanted:.1f} M {what}/CPU s or more", f"{figure:.1f} M", figure >= wanted)


if __name__ == "__main__":
    sys.exit(main())
