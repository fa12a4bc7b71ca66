"""Shared operators under test: driven batch by batch, torn down and made anew, while queries join and leave.

batches      │ 0  │ 1  │ 2  │ 3  │ 4  │ ...
steady       ├────────────────────────────▶      beside it others pass by, and it must not notice
passing           ├─────────┤                    joins before batch 1, leaves before batch 3
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.operators.signature import DistinctSignature, JoinSignature, Signature
from stairwise.plan.parts import operator_for
from stairwise.plan.published import Taking, block_of, publication_of, taking_of
from stairwise.plan.shared import QueryExpansion, shared_expansion, shared_operator, shared_signature
from stairwise.recompute.evaluation import QueryOperator
from stairwise.reports.contract import Batch, Joined, Left, Life
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.state.pages import from_page, to_page
from stairwise.state.store import MemoryStore

Line = dict[str, Any]
Row = tuple[int, str | None, int | None, float | None]
"""Time and values of (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE)."""


class Shared:
    """A shared operator, torn down and made anew from its store now and then, with what each query says."""

    def __init__(self, queries: Sequence[Query], chance: random.Random) -> None:
        signature = shared_signature(queries[0])
        assert signature is not None
        self._signature, self._chance, self._store = signature, chance, MemoryStore()
        self.operator: Any = None
        self._make(queries)
        self.expansions: dict[str, QueryExpansion] = {q.name: self.expansion(q) for q in queries}
        self.lines: dict[str, list[Line]] = {q.name: [] for q in queries}

    def _make(self, queries: Sequence[Query]) -> None:
        self.operator = shared_operator(self._signature, queries, self._store)

    def expansion(self, query: Query) -> QueryExpansion:
        """Of a query that begins or joins now."""
        return shared_expansion(self._signature, query, self.operator.life(query.name))

    def blocks(self, watermark: Instant) -> Iterator[Any]:
        """What the operator publishes."""
        yield from self.operator.advance(watermark)

    def join(self, query: Query, after: Instant) -> None:
        self.operator.plan(Joined(query, after))
        self.expansions[query.name] = self.expansion(query)
        self.lines[query.name] = []

    def leave(self, query: Query, after: Instant) -> None:
        self.operator.plan(Left(query.name, after))
        expansion = self.expansions[query.name]
        expansion.life = expansion.life._replace(until=after)

    def advance(self, watermark: Instant) -> None:
        for block in self.blocks(watermark):
            for name, expansion in self.expansions.items():
                emitted = expansion.expand(block)
                if emitted is not None:
                    self.lines[name] += line_dicts(name, emitted)
        if self._chance.random() < 0.3:
            self.operator.flush()
            self._make(self.operator.queries)


class Taken:
    """One query out of what is published, each report for itself."""

    def __init__(self, taking: Taking, query: Query) -> None:
        self._taking, self._expansion = taking, Expansion(query)
        self.life, self.faults = taking.life, self._expansion.faults

    def expand(self, block: Any) -> Emissions | None:
        self._taking.life = self.life
        found = self._taking.reports(block)
        assert self._taking.is_due(block) == (found is not None)
        return None if found is None else self._expansion.expand_block(found)


class Published(Shared):
    """The same by way of published reports, which pass through bytes."""

    def _make(self, queries: Sequence[Query]) -> None:
        super()._make(queries)
        self._publication = publication_of(self.operator)

    def expansion(self, query: Query) -> QueryExpansion:
        assert isinstance(self._signature, Signature | DistinctSignature | JoinSignature)
        return Taken(taking_of(self._signature, query, self.operator.life(query.name)), query)

    def blocks(self, watermark: Instant) -> Iterator[Any]:
        for block in self.operator.advance(watermark):
            for report in self._publication(block):
                yield block_of(replace(report, rows=from_page(to_page(report.rows))))


class Visits:
    """When queries join and leave: before which batch, drawn at random."""

    def __init__(self, queries: Sequence[Query], batches: int, chance: random.Random, longest: int = 4) -> None:
        self._queries = queries
        self._joins = {query.name: chance.randrange(batches + 1) for query in queries}
        self._leaves = {name: joins + chance.randint(0, longest) for name, joins in self._joins.items()}

    def before(self, number: int, shared: Shared, watermark: Instant) -> None:
        """Of a batch."""
        for query in self._queries:
            if self._joins[query.name] == number:
                shared.join(query, watermark)
            if self._leaves[query.name] == number and query.name in shared.lines:
                shared.leave(query, watermark)


def drive(
    shared: Shared, batches: Sequence[Batch], watermarks: Sequence[Instant], visits: Visits | None = None
) -> None:
    """Through all batches up to the end of the streams."""
    reached = DAWN
    for number, (batch, watermark) in enumerate(zip(batches, watermarks, strict=True)):
        if visits is not None:
            visits.before(number, shared, reached)
        shared.operator.insert(batch)
        shared.advance(watermark)
        reached = watermark
    shared.advance(DUSK)


def batches_of(stream: Stream, rows: Sequence[Row]) -> list[Batch]:
    """Batches of a few rows each, out of order inside the lateness bound, without rows that are late."""
    highest, kept = DAWN, []
    for row in rows:
        if row[0] > highest - stream.lateness - 1:
            kept.append(row)
        highest = max(highest, row[0])
    return [batch_of(stream, kept[start : start + 4], start) for start in range(0, len(kept), 4)]


def batch_of(stream: Stream, rows: Sequence[Row], first: int) -> Batch:
    """Some rows, numbered from ``first`` on."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, stream.arrow_schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=stream.arrow_schema)
    return Batch(stream.name, 0, batch, np.arange(first, first + len(rows)), min(columns[0]), max(columns[0]))


def watermarks_of(batches: Sequence[Batch], streams: Iterable[Stream]) -> list[Instant]:
    """The watermark of these streams, each with one partition, after each batch."""
    reached = {stream.name: DAWN for stream in streams}
    lateness = {stream.name: stream.lateness for stream in streams}
    found: list[Instant] = []
    for batch in batches:
        if batch.stream in reached:
            reached[batch.stream] = max(reached[batch.stream], batch.highest - lateness[batch.stream] - 1)
        found.append(min(reached.values()))
    return found


def alone(
    query: Query, batches: Sequence[Batch], joined: Joined | None = None, watermarks: Sequence[Instant] = ()
) -> list[Line]:
    """The lines of a query that is evaluated by itself: watermark by watermark, or all at the end."""
    return said(query, operator_for(query, MemoryStore()), batches, joined, watermarks)


def said(
    query: Query,
    operator: QueryOperator,
    batches: Sequence[Batch],
    joined: Joined | None = None,
    watermarks: Sequence[Instant] = (),
) -> list[Line]:
    """The lines of a query from an operator of its own."""
    expansion = Expansion(query)
    lines: list[Line] = []
    if joined is not None:
        operator.plan(joined)
    for number, batch in enumerate(batches):
        operator.insert(batch)
        for watermark in watermarks[number : number + 1]:
            for block in operator.advance(watermark):
                lines += line_dicts(query.name, expansion.expand_block(block))
    for block in operator.advance(DUSK):
        lines += line_dicts(query.name, expansion.expand_block(block))
    return lines


def above_its_horizon(query: Query, life: Life) -> Joined | None:
    """What tells an operator of its own that a query took effect late, if it did."""
    return None if life.after == DAWN else Joined(query, life.after, life.horizon)


def inside(life: Life, lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if life.after < line["time"] <= life.until]
