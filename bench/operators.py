"""Duplicate elimination and joins: what 1,000 windows of one signature cost beside one, what changes cost, and how
results expire.

Batches of 16,384 rows go into one shared operator, which is advanced after each; what it publishes are the appearances
of values and the joined rows, each once with its time stamps, from which every query takes its own. Rates are rows per
CPU second, the best of a few runs that take turns, since other processes on the machine cost CPU time too.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.negative_tuples import ResultsByKey
from bench.report import PLOTS, Goal, conclude
from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.distinct.expansion import DistinctExpansion
from stairwise.distinct.operator import Appearances, SharedDistinct
from stairwise.join.operator import JoinBlock, SharedJoin
from stairwise.plan.parts import operator_for
from stairwise.plan.shared import SharedOperator, shared_expansion, shared_operator, shared_signature
from stairwise.reports.contract import Batch
from stairwise.reports.expansion import Expansion
from stairwise.state.calendar_queue import CalendarQueue
from stairwise.state.chains import Chains
from stairwise.state.store import MemoryStore

BATCH = 16_384
START = 1_700_000_000_000
RUNS = 3
VALUES = 100_000
RATE = 100_000
"""Rows per second of event time."""
WIDEST = "RANGE 60 SECONDS SLIDE 1 SECOND"
WIDEST_JOIN = "RANGE 10 SECONDS SLIDE 5 SECONDS"
COUNTS = (1, 10, 100, 1_000)
DISTINCT_GOAL, JOIN_GOAL, SHARE_GOAL = 5e6, 1e6, 0.8
STREAMS = (
    "CREATE STREAM a (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;"
    "CREATE STREAM b (ts TIMESTAMP, k STRING, y BIGINT) TIMESTAMP BY ts;"
)


@dataclass(frozen=True)
class Measured:
    rate: float
    """Rows per CPU second."""
    state: int
    """Bytes that the operator keeps at the end."""
    published: float
    """Rows published for each row that came in."""


@dataclass(frozen=True)
class Load:
    """Queries over one or two streams, measured over some rows after some that warm up."""

    queries: Sequence[str]
    streams: str
    values: int
    rows: int
    warm_up: int

    def operator(self) -> SharedOperator:
        catalogue = Catalogue()
        catalogue.execute(STREAMS)
        for i, query in enumerate(self.queries):
            catalogue.execute(f"CREATE QUERY q{i} AS {query};")
        queries = list(catalogue.queries.values())
        signature = shared_signature(queries[0])
        assert signature is not None
        return shared_operator(signature, queries, MemoryStore())

    def rounds(self) -> Iterator[list[Batch]]:
        """A batch of each stream, in order of time; keys come round again after some batches."""
        chance = np.random.default_rng(1)
        names = pa.array([f"key{i:07d}" for i in range(self.values)])
        templates = [names.take(pa.array(chance.integers(0, self.values, BATCH))) for _ in range(96)]
        per_stream = RATE // len(self.streams)
        for number in range((self.warm_up + self.rows) // BATCH // len(self.streams)):
            sequence = np.arange(number * BATCH, (number + 1) * BATCH)
            times = START + sequence * 1000 // per_stream
            batches = []
            for i, stream in enumerate(self.streams):
                key = templates[(number * (2 * i + 1) + 48 * i) % len(templates)]
                columns = [pa.array(times), key, pa.array(sequence)]
                rows = pa.RecordBatch.from_arrays(columns, names=["ts", "k", "xy"[i]])
                batches.append(Batch(stream, 0, rows, sequence, int(times[0]), int(times[-1])))
            yield batches


def measure(load: Load) -> Measured:
    operator = load.operator()
    cpu, rows, published, seen = 0.0, 0, 0, 0
    for batches in load.rounds():
        begin = time.process_time()
        for batch in batches:
            operator.insert(batch)
        made = sum(map(new_rows, operator.advance(batches[0].highest - 1)))
        spent = time.process_time() - begin
        if seen >= load.warm_up:
            cpu, rows, published = cpu + spent, rows + BATCH * len(batches), published + made
        seen += BATCH * len(batches)
    assert isinstance(operator, SharedDistinct | SharedJoin)
    return Measured(rows / cpu, operator.nbytes, published / rows)


def new_rows(block: Appearances | JoinBlock) -> int:
    """How many rows of a block were not in those before."""
    if isinstance(block, Appearances):
        return len(block.time) - block.fresh
    return sum(len(found.times[0]) for found in block.found)


def compare(*loads: Load) -> list[Measured]:
    """The best run of each, taken in turns so that what else the machine does falls on all of them."""
    runs = [[measure(load) for load in loads] for _ in range(RUNS)]
    return [max(found, key=lambda m: m.rate) for found in zip(*runs, strict=True)]


def distinct_load(count: int, rows: int = 4_000_000) -> Load:
    """Windows of up to 60 seconds that slide by up to 10, the widest and the most frequent of them first."""
    chance = random.Random(count)
    windows = [WIDEST]
    while len(windows) < count:
        slide = chance.randint(1, 10)
        windows.append(f"RANGE {chance.randint(slide, 60)} SECONDS SLIDE {slide} SECONDS")
    return Load([f"SELECT DISTINCT k FROM a [{w}]" for w in windows], "a", VALUES, rows, 1_600_000)


def join_load(count: int, rows: int = 2_000_000) -> Load:
    """Windows of up to 10 seconds on either side: as many keys as rows in the widest, so about one match a row."""
    chance = random.Random(count)
    windows = [(WIDEST_JOIN, WIDEST_JOIN)]
    while len(windows) < count:
        sides = [(chance.randint(5, 10), chance.randint(1, 5)) for _ in "ab"]
        windows.append(tuple(f"RANGE {w} SECONDS SLIDE {b} SECONDS" for w, b in sides))
    queries = [f"SELECT a.k, a.x, b.y FROM a [{v}] a JOIN b [{w}] b ON a.k = b.k" for v, w in windows]
    return Load(queries, "ab", RATE * 15 // 2, rows, 1_200_000)


def sharing_goals(name: str, load: Callable[[int], Load], wanted: float) -> tuple[list[Goal], dict[int, Measured]]:
    one, many = compare(load(1), load(1_000))
    share, size = many.rate / one.rate, many.state / 2**20
    goals = [
        Goal(f"{name}, one window", f"≥ {wanted / 1e6:.0f} M rows/s", _rate(one), one.rate >= wanted),
        Goal(
            f"{name}, 1,000 windows beside one",
            f"≥ {SHARE_GOAL:.0%}",
            f"{share:.0%} ({_rate(many)}, {many.published:.2f} rows published a row)",
            share >= SHARE_GOAL,
        ),
        Goal(
            f"{name}, memory of 1,000 windows beside the widest",
            "≤ 4 ×",
            _beside(size, one),
            size <= 4 * one.state / 2**20,
        ),
    ]
    return goals, {1: one, 1_000: many}


def _beside(size: float, one: Measured) -> str:
    return f"{size / (one.state / 2**20):.1f} × ({size:.0f} of {one.state / 2**20:.0f} MB)"


def changes_goal() -> Goal:
    """The changes of one query cost what changed: a set ten times as large costs no more."""

    def spent(values: int) -> float:
        load = Load(["SELECT DISTINCT k FROM a [RANGE 60 SECONDS SLIDE 1 SECOND]"], "a", values, 2_000_000, 6_000_000)
        operator = load.operator()
        assert isinstance(operator, SharedDistinct)
        expansion = DistinctExpansion(operator.queries[0], operator.life("q0"))
        cpu, seen, lines = 0.0, 0, 0
        for (batch,) in load.rounds():
            operator.insert(batch)
            for block in operator.advance(batch.highest - 1):
                begin = time.process_time()
                emitted = expansion.expand(block)
                if seen >= load.warm_up and emitted is not None:
                    cpu, lines = cpu + time.process_time() - begin, lines + emitted.rows.num_rows
            seen += BATCH
        return cpu / (load.rows / RATE)

    small, large = spent(10_000), spent(100_000)
    figure = f"{large * 1000:.1f} ms of CPU a report (10,000 values: {small * 1000:.1f} ms)"
    return Goal("changes of a set of 100,000 values that stay, 100,000 rows a report", "≤ 10 ms", figure, large <= 0.01)


# ── changes over windows that count rows ─────────────────────────────────────────────────────────────────────

MOVING = 1_000
"""Rows that come between two reports."""
HELD = 10
"""Rows of each partition in the window."""
MOVING_SELECTS = {
    "rows": "SELECT k, x FROM a [{}]",
    "DISTINCT": "SELECT DISTINCT x FROM a [{}]",
    "sums by key": "SELECT k, COUNT(*), SUM(x) FROM a [{}] GROUP BY k",
    "a join of rows": "SELECT a.x, b.y FROM a [{}] a JOIN b [PARTITION BY k ROWS 1 SLIDE 1 SECOND] b ON a.k = b.k",
}


def moving_query(select: str) -> Query:
    catalogue = Catalogue()
    window = f"PARTITION BY k ROWS {HELD} SLIDE 1 SECOND"
    catalogue.execute(f"{STREAMS}CREATE QUERY q AS {select.format(window)} EMIT CHANGES;")
    return catalogue.queries["q"]


def moving_rounds(partitions: int, streams: Sequence[str], reports: int) -> Iterator[list[Batch]]:
    """One report with as many rows as the window holds, then some with a few rows of random partitions each."""
    chance = np.random.default_rng(1)
    names = pa.array([f"key{i:07d}" for i in range(partitions)])
    filling = np.tile(np.arange(partitions), HELD)
    sequence = np.arange(len(filling))
    for number, keys in enumerate([filling, *(chance.integers(0, partitions, MOVING) for _ in range(reports))]):
        times = np.full(len(keys), START + 1_000 * number)
        batches = []
        for stream in streams:
            columns = [pa.array(times), names.take(pa.array(keys)), pa.array(chance.integers(0, 10**9, len(keys)))]
            rows = pa.RecordBatch.from_arrays(columns, names=["ts", "k", "x" if stream == "a" else "y"])
            batches.append(Batch(stream, 0, rows, sequence[: len(keys)], int(times[0]), int(times[0])))
        sequence = np.arange(sequence[-1] + 1, sequence[-1] + 1 + MOVING)
        yield batches


def moving_cost(query: Query, partitions: int, reports: int = 30) -> float:
    """CPU seconds for each row that comes, when the window is full: operator and expansion."""
    signature = shared_signature(query)
    assert signature is not None
    operator = shared_operator(signature, [query], MemoryStore())
    expansion = shared_expansion(signature, query, operator.life(query.name))
    return cost_of_rows(query, operator, expansion.expand, partitions, reports)


def whole_cost(query: Query, partitions: int, reports: int = 2) -> float:
    """The same by whole answers that are compared."""
    return cost_of_rows(query, operator_for(query, MemoryStore()), Expansion(query).expand_block, partitions, reports)


def cost_of_rows(query: Query, operator: Any, expand: Callable[[Any], Any], partitions: int, reports: int) -> float:
    streams = sorted({stream.name for stream in query.streams})
    cpu = 0.0
    for number, batches in enumerate(moving_rounds(partitions, streams, reports)):
        begin = time.process_time()
        for batch in batches:
            operator.insert(batch)
        for block in operator.advance(batches[0].highest):
            expand(block)
        cpu += time.process_time() - begin if number else 0
    return cpu / (reports * MOVING * len(streams))


def moving_goals() -> tuple[list[Goal], str]:
    """A row that moves costs the same in a window a hundred times as large."""
    lines = [
        "| changes of | 1,000 partitions | 100,000 partitions | by whole answers, 10,000 partitions |",
        "|---|---|---|---|",
    ]
    goals: list[Goal] = []
    for name, select in MOVING_SELECTS.items():
        query = moving_query(select)
        small = min(moving_cost(query, 1_000) for _ in range(RUNS))
        large = min(moving_cost(query, 100_000) for _ in range(RUNS))
        whole = whole_cost(query, 10_000)
        lines.append(f"| {name} | {small * 1e6:.1f} | {large * 1e6:.1f} | {whole * 1e6:.0f} |")
        figure = f"{large / small:.1f} × ({large * 1e6:.1f} µs a row)"
        title = f"changes of {name} over PARTITION BY, 1,000,000 rows beside 10,000"
        goals.append(Goal(title, "≤ 3 ×", figure, large <= 3 * small))
    return goals, "\n".join(lines)


# ── how results expire ──────────────────────────────────────────────────────────────────────────────────────


def expire_by_order(window: int, rows: int) -> float:
    """CPU seconds to keep the results of a join of the last ``window`` rows of either side, by their ends."""

    def keep(results: CalendarQueue, left: np.ndarray, right: np.ndarray, now: int) -> None:
        results.push(np.minimum(left, right) + window, left)
        results.pop(now)

    results = CalendarQueue(max(1, window // 64))
    return _maintain(window, rows, lambda _, left, right, now, __: keep(results, left, right, now))


def expire_by_negatives(window: int, rows: int) -> float:
    """The same by negative tuples: every row that leaves is joined once more."""
    results = ResultsByKey()

    def keep(keys: np.ndarray, left: np.ndarray, right: np.ndarray, now: int, sides: list[Chains]) -> None:
        results.add(keys, left, right)
        leaving = np.arange(max(0, now - window - STEP), max(0, now - window))
        for side in (0, 1):
            if len(leaving):
                gone = sides[side].keys.at(leaving)
                results.remove(side, leaving, gone, sides[1 - side], max(0, now - 2 * window - STEP))
        results.forget()

    return _maintain(window, rows, keep)


STEP = 1_000
"""Rows of either side between two reports."""


def _maintain(window: int, rows: int, keep: Callable[..., None]) -> float:
    """Rows number 0, 1, 2, ... of two sides, with as many keys as a window has rows; only the keeping is measured."""
    chance = np.random.default_rng(1)
    sides = [Chains(), Chains()]
    cpu = 0.0
    for start in range(0, rows, STEP):
        keys = [chance.integers(0, window, STEP) for _ in sides]
        lowest = np.full(STEP, max(0, start - window))
        sides[1].extend(keys[1])
        first, partner = sides[1].probe(keys[0], lowest)
        second, old = sides[0].probe(keys[1], lowest)
        sides[0].extend(keys[0])
        left, right = np.concatenate([first + start, old]), np.concatenate([partner, second + start])
        key = np.concatenate([keys[0][first], keys[1][second]])
        begin = time.process_time()
        keep(key, left, right, start + STEP, sides)
        cpu += time.process_time() - begin
        for side in sides:
            side.drop(max(0, start - 3 * window))
    return cpu


def expiry_goals() -> tuple[list[Goal], str]:
    lines = ["| rows in a window | in order of expiration | by negative tuples |", "|---|---|---|"]
    goals: list[Goal] = []
    for window in (1_000, 10_000, 100_000):
        rows = max(200_000, 3 * window)
        order = min(expire_by_order(window, rows) for _ in range(RUNS)) / rows * 1e9
        negatives = min(expire_by_negatives(window, rows) for _ in range(RUNS)) / rows * 1e9
        lines.append(f"| {window:,} | {order:.0f} | {negatives:.0f} |")
        ratio = negatives / order
        goals.append(Goal(f"negative tuples beside order, {window:,} rows", "≥ 2 ×", f"{ratio:.1f} ×", ratio >= 2))
    return goals, "\n".join(lines)


def plot(found: dict[str, dict[int, Measured]]) -> str:
    """Rows per CPU second against the number of windows, and the table of it."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "stairwise"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    lines = ["| windows | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    for name, by_count in found.items():
        axes.plot(list(by_count), [m.rate / 1e6 for m in by_count.values()], marker="o", label=name)
    for count in COUNTS:
        lines.append(f"| {count:,} | " + " | ".join(f"{by[count].rate / 1e6:.1f}" for by in found.values()) + " |")
    axes.set(xlabel="windows", xscale="log", ylabel="million rows per CPU second", ylim=(0, None))
    axes.legend()
    PLOTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOTS / "operators.svg", metadata={"Date": None})
    return "\n".join(lines)


def _rate(found: Measured) -> str:
    return f"{found.rate / 1e6:.1f} M rows/s"


def main() -> int:
    pa.array([1])  # the first array imports pandas where it is installed: start-up, not running
    distinct, by_distinct = sharing_goals(f"DISTINCT, {VALUES:,} values", distinct_load, DISTINCT_GOAL)
    join, by_join = sharing_goals("join, about one match a row", join_load, JOIN_GOAL)
    for count in COUNTS[1:-1]:
        by_distinct[count] = measure(distinct_load(count, 2_000_000))
        by_join[count] = measure(join_load(count, 1_000_000))
    moving, moves = moving_goals()
    expiry, table = expiry_goals()
    found = {"DISTINCT": dict(sorted(by_distinct.items())), "join": dict(sorted(by_join.items()))}
    text = (
        f"{__doc__}\nMillions of rows per CPU second:\n\n{plot(found)}\n\n![rates](plots/operators.svg)\n\n"
        f"Changes over `[PARTITION BY k ROWS {HELD}]`, {MOVING:,} rows a report, in microseconds of CPU a row: from\n"
        f"the rows that move, and by whole answers that are compared.\n\n{moves}\n\n"
        "Keeping the results of a join while rows leave its windows, in nanoseconds of CPU a row: results that are\n"
        "put under their end when they come, and results that are looked for again when a row leaves.\n\n" + table
    )
    return conclude("operators", "Shared operators", text, [*distinct, *join, changes_goal(), *moving, *expiry])


if __name__ == "__main__":
    sys.exit(main())
