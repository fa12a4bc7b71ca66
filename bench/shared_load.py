"""Loads for shared operators: windows over a stream of generated rows, fed by the batch and timed in CPU seconds.

                         │ round 1                          │ round 2
    load A   ├ warm up ┤ ├ turn ┤        ├ turn ┤├ turn ┤   ├ ...
    load B   ├ warm up ┤         ├ turn ┤├ turn ┤        ├ turn ┤

Loads that are compared take short turns, first one of them first, then the other, so that what else the machine does
falls on all of them. A rate is the median over the rounds, a ratio the median of the ratios within a round. Generating
rows is not timed; inserting them, advancing and making the stairs that are published is.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair import Stair
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.algebra.query import Query, Select
from stairwise.cql.script import Catalogue
from stairwise.plan.signature import signature_of
from stairwise.reports.contract import Batch, Joined, Left, Life
from stairwise.schema import DAWN
from stairwise.state.pages import to_page
from stairwise.state.store import MemoryStore
from stairwise.windows.spec import MultiWindow, TimeWindow

Window = TimeWindow | MultiWindow

BATCH = 16_384
RATE = 100_000
HOUR = 3_600_000
START = 1_700_000_000_000 // HOUR * HOUR
TURN = 500_000
"""Rows of a turn: some tens of milliseconds."""

SETTLING = 16
"""So many batches pass after windows have joined before they are measured: their first reports look back once."""

SAMPLE = 8
"""Of so many stairs the size of the published reports is taken."""


@dataclass(frozen=True)
class Load:
    """Windows of one or more signatures, the rows they see, and how long they see them before they are measured."""

    windows: Sequence[Window]
    keys: int = 0
    """Group keys; 0 is one global group."""
    aggregates: str = "SUM(x)"
    type: str = "BIGINT"
    rate: int = RATE
    """Rows per second of event time."""
    batch: int = BATCH
    warm_up: int = 0
    """Seconds of event time before the first round: until windows are full."""
    warm_up_rate: int = RATE
    """Rows per second meanwhile: a window is as full of partials with fewer rows, as long as they have all keys."""
    signatures: int = 1
    """Over how many filters the windows are dealt out."""
    joins_late: bool = False
    """Do the windows join when the warm-up ends? Then one window keeps the history for them until then."""
    items: int = 1
    """Distinct values of k where it is no group key."""
    expands: bool = False
    """Is what every query makes of the stairs timed too?"""
    beside: tuple[Load, ...] = ()
    """Loads whose queries see the same rows."""

    def queries(self) -> list[Query]:
        templates = [self._template(f"x <> {5_000 + i}" if i else "") for i in range(self.signatures)]
        own = [_over(templates[i % self.signatures], f"q{i}", window) for i, window in enumerate(self.windows)]
        others = [query for load in self.beside for query in load.queries()]
        return own + [replace(query, name=f"other{i}") for i, query in enumerate(others)]

    def keeper(self) -> Query:
        """A window that keeps as much history as the widest one needs, cut where any of them needs it; the end of the
        warm-up must be a multiple of the widest range."""
        plain = [window for window in self.windows if isinstance(window, TimeWindow)]
        widest, finest = max(w.range for w in plain), min(w.slide for w in plain)
        return _over(self._template(""), "keeper", TimeWindow(widest, finest))

    def _template(self, where: str) -> Query:
        catalogue = Catalogue()
        keys, grouping = ("k, ", " GROUP BY k") if self.keys else ("", "")
        condition = f" WHERE {where}" if where else ""
        window = "RANGES 2s, 1s SLIDES 1s, 1s" if "RECURRING" in self.aggregates else "RANGE 1s"
        catalogue.execute(
            f"CREATE STREAM s (ts TIMESTAMP, k STRING, x {self.type}) TIMESTAMP BY ts;"
            f"CREATE QUERY q AS SELECT {keys}{self.aggregates} FROM s [{window}]{condition}{grouping};"
        )
        return catalogue.queries["q"]

    @property
    def _templates(self) -> int:
        """After how many batches keys and values come round again."""
        return max(4, (400_000 if self.keys <= 1_000 else 3_000_000) // self.batch)

    def batches(self) -> Iterator[Batch]:
        """Rows in order of time, without end; keys and values come round again after some batches."""
        first, clock = 0, START - self.warm_up * 1000
        while True:
            warms_up = clock < START
            rate = self.warm_up_rate if warms_up else self.rate
            size = min(self.batch, (START - clock) * rate // 1000) if warms_up else self.batch
            times = clock + np.arange(size) * 1000 // rate
            columns = _columns(self.keys or self.items, self.type, size, first // self.batch % self._templates)
            rows = pa.RecordBatch.from_arrays([pa.array(times), *columns], names=["ts", "k", "x"])
            yield Batch("s", 0, rows, np.arange(first, first + size), int(times[0]), int(times[-1]))
            first, clock = first + size, clock + size * 1000 // rate


@dataclass
class Measured:
    """What one load came to, round by round."""

    rates: list[float] = field(default_factory=list)
    """Rows per CPU second."""
    state: int = 0
    """Bytes of partials at the end."""
    report_bytes: float = 0.0
    """Of a published report, as it goes into a message."""
    steps: float = 0.0
    """Of a published report."""

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def share_of(self, other: Measured) -> float:
        return statistics.median(mine / its for mine, its in zip(self.rates, other.rates, strict=True))


class Running:
    """A load on its operators."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._batches = load.batches()
        queries = load.queries()
        begun = [load.keeper()] if load.joins_late else queries
        self._operators = _operators(begun)
        self._sampled: list[Stair] = []
        self._expansions = [SharedExpansion(query, Life()) for query in queries] if load.expands else []
        self._clock = DAWN
        self._spent, self._taken = 0.0, 0
        """CPU seconds and rows of this round."""
        self.measured = Measured()
        while self._clock < START - 1000 * load.batch // load.warm_up_rate - 1 and load.warm_up:
            self._take()
        if load.joins_late:
            (operator,) = self._operators
            for query in queries:
                operator.plan(Joined(query, self._clock))
            for keeper in begun:
                operator.plan(Left(keeper.name, self._clock))
            for _ in range(SETTLING):
                self._take()

    def turn(self, rows: int) -> None:
        """Up to so many rows of the round."""
        while self._taken < rows:
            spent, count = self._take()
            self._spent, self._taken = self._spent + spent, self._taken + count

    def end_round(self) -> None:
        self.measured.rates.append(self._taken / self._spent)
        self._spent, self._taken = 0.0, 0

    def finish(self) -> Measured:
        self.measured.state = sum(operator.nbytes for operator in self._operators)
        reports = [report for stair in self._sampled for report in stair.reports()]
        if reports:
            self.measured.report_bytes = statistics.fmean(len(to_page(report.rows)) for report in reports)
            self.measured.steps = sum(len(stair.steps) for stair in self._sampled) / len(reports)
        return self.measured

    def _take(self) -> tuple[float, int]:
        """One batch: CPU seconds and rows."""
        batch = next(self._batches)
        stairs: list[Stair] = []
        begin = time.process_time()
        for operator in self._operators:
            operator.insert(batch)
            for stair in operator.advance(batch.highest - 1):
                for expansion in self._expansions:
                    expansion.reports(stair)
                stairs.append(stair)
        spent = time.process_time() - begin
        self._clock = batch.highest - 1
        self._sampled = (self._sampled + stairs)[-SAMPLE:]
        return spent, batch.rows.num_rows


def compare(*loads: Load, rows: int, rounds: int = 3) -> list[Measured]:
    """The loads in turns, each with so many rows a round."""
    running = [Running(load) for load in loads]
    for _ in range(rounds):
        for number, upto in enumerate(range(TURN, rows + TURN, TURN)):
            for each in running if number % 2 == 0 else reversed(running):
                each.turn(min(upto, rows))
        for each in running:
            each.end_round()
    return [each.finish() for each in running]


def _operators(queries: Sequence[Query]) -> list[SharedAggregation]:
    by_signature: dict[object, list[Query]] = {}
    for query in queries:
        by_signature.setdefault(signature_of(query), []).append(query)
    found: list[SharedAggregation] = []
    for members in by_signature.values():
        signature = signature_of(members[0])
        assert signature is not None
        found.append(SharedAggregation(signature, members, MemoryStore()))
    return found


def _over(template: Query, name: str, window: Window) -> Query:
    """The template over another window, without parsing ten thousand statements."""
    select = template.relation
    assert isinstance(select, Select)
    relation = replace(select, inputs=(replace(select.inputs[0], window=window),))
    return replace(template, name=name, relation=relation)


@lru_cache(maxsize=256)
def _columns(keys: int, kind: str, size: int, number: int) -> list[pa.Array]:
    """Keys and values of one batch."""
    chance = np.random.default_rng((keys, number))
    codes = chance.integers(0, keys, size)
    x = chance.integers(-1000, 1000, size) if kind == "BIGINT" else chance.normal(size=size) * 1000
    return [_names(keys).take(pa.array(codes)), pa.array(x)]


@lru_cache(maxsize=4)
def _names(keys: int) -> pa.Array:
    return pa.array([f"key{i:07d}" for i in range(keys)])
