"""DISTINCT queries that share one log of appearances say what each says alone, whoever joins and leaves beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.cql.query import Query
from stairwise.cql.script import Catalogue
from stairwise.operators.build import operator_for
from stairwise.operators.contract import Batch, Joined, Left
from stairwise.operators.expansion import Expansion
from stairwise.operators.lines import line_dicts
from stairwise.operators.store import MemoryStore
from stairwise.schema import DAWN, DUSK, Stream
from stairwise.sharing.distinct import SharedDistinct
from stairwise.sharing.distinct_expansion import DistinctExpansion
from stairwise.sharing.signature import distinct_signature_of

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE) TIMESTAMP BY ts LATENESS 3 MILLISECONDS;"
WINDOWS = (
    "RANGE 4ms SLIDE 2ms",
    "RANGE 7ms SLIDE 3ms",
    "RANGE 12ms SLIDE 4ms",
    "RANGE 9ms SLIDE 5ms OFFSET 1ms",
    "RANGE 2ms SLIDE 5ms",
    "TUMBLE 6ms",
    "RANGE 50ms SLIDE 10ms",
    "RANGES 12ms, 4ms SLIDES 4ms, 2ms",
)
EMITS = ("RSTREAM", "ISTREAM", "DSTREAM", "CHANGES")
LISTS = ("k", "x", "y", "k, y", "x > 0, k")

Line = dict[str, Any]
Row = tuple[int, str | None, int | None, float | None]


def declared(parts: Sequence[tuple[str, str]], values: str, lag: str) -> tuple[Stream, list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(STREAM)
    for i, (window, emit) in enumerate(parts):
        lagged = window + lag if window.startswith("RANGE ") else window
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT DISTINCT {values} FROM s [{lagged}] EMIT {emit};")
    queries = list(catalogue.queries.values())
    first = distinct_signature_of(queries[0])
    return catalogue.streams["s"], [q for q in queries if distinct_signature_of(q) == first]


def batches_of(stream: Stream, rows: Sequence[Row]) -> list[Batch]:
    """Batches of a few rows each, out of order inside the lateness bound, without rows that are late."""
    highest, kept = DAWN, []
    for row in rows:
        if row[0] > highest - stream.lateness - 1:
            kept.append(row)
        highest = max(highest, row[0])
    found: list[Batch] = []
    for start in range(0, len(kept), 4):
        columns = list(zip(*kept[start : start + 4], strict=True))
        arrays = [pa.array(c, f.type) for c, f in zip(columns, stream.arrow_schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=stream.arrow_schema)
        found.append(Batch("s", 0, batch, np.arange(start, start + len(columns[0])), min(columns[0]), max(columns[0])))
    return found


def alone(query: Query, batches: Sequence[Batch], joined: Joined | None = None) -> list[Line]:
    """The lines of a query that is evaluated from the rows in scope."""
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    if joined is not None:
        operator.plan(joined)
    for batch in batches:
        operator.insert(batch)
    blocks = operator.advance_blocks(DUSK)
    return [line for block in blocks for line in line_dicts(query.name, expansion.expand_block(block))]


class Shared:
    """A shared operator under test, torn down and made anew from its store now and then."""

    def __init__(self, queries: Sequence[Query], chance: random.Random) -> None:
        signature = distinct_signature_of(queries[0])
        assert signature is not None
        self._chance, self._store = chance, MemoryStore()
        self.operator = SharedDistinct(signature, queries, self._store)
        self.operator._log._compacted = -(10**6)  # phantoms are looked for at every report
        self.expansions = {q.name: DistinctExpansion(q, self.operator.life(q.name)) for q in queries}
        self.lines: dict[str, list[Line]] = {q.name: [] for q in queries}

    def join(self, query: Query, after: int) -> None:
        self.operator.plan(Joined(query, after))
        self.expansions[query.name] = DistinctExpansion(query, self.operator.life(query.name))
        self.lines[query.name] = []

    def leave(self, query: Query, after: int) -> None:
        self.operator.plan(Left(query.name, after))
        expansion = self.expansions[query.name]
        expansion.life = expansion.life._replace(until=after)

    def advance(self, watermark: int) -> None:
        for block in self.operator.advance_blocks(watermark):
            for name, expansion in self.expansions.items():
                emitted = expansion.expand(block)
                if emitted is not None:
                    self.lines[name] += line_dicts(name, emitted)
            self.operator._log._compacted = -(10**6)
        if self._chance.random() < 0.3:
            self.operator.flush()
            self.operator = SharedDistinct(self.operator.signature, self.operator.queries, self._store)


@st.composite
def streams_of_rows(draw: st.DrawFn) -> list[Row]:
    clock = np.cumsum(draw(st.lists(st.integers(0, 6), min_size=1, max_size=40))) - 20
    values = st.tuples(
        st.sampled_from(["a", "b", "a value that is longer than two words", "", None]),
        st.one_of(st.none(), st.integers(-2, 2)),
        st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1.5, None]),
    )
    return [(int(t) - draw(st.integers(0, 3)), *draw(values)) for t in clock]


parts_drawn = st.lists(st.tuples(st.sampled_from(WINDOWS), st.sampled_from(EMITS)), min_size=2, max_size=8)
lags = st.sampled_from(["", " LAG 2ms", " LAG 30ms"])


@given(parts_drawn, st.sampled_from(LISTS), lags, streams_of_rows(), st.randoms(use_true_random=False))
def test_distinct_queries_of_a_signature_say_what_each_says_alone(
    parts: list[tuple[str, str]], values: str, lag: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, values, lag)
    batches = batches_of(stream, rows)
    shared = Shared(queries, chance)
    highest = DAWN
    for batch in batches:
        shared.operator.insert(batch)
        highest = max(highest, batch.highest)
        shared.advance(highest - stream.lateness - 1)
    shared.advance(DUSK)
    for query in queries:
        assert shared.lines[query.name] == alone(query, batches)


@given(parts_drawn, st.sampled_from(LISTS), lags, streams_of_rows(), st.randoms(use_true_random=False))
def test_no_distinct_query_notices_the_others_that_join_and_leave(
    parts: list[tuple[str, str]], values: str, lag: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, values, lag)
    batches = batches_of(stream, rows)
    steady, passing = queries[:1], queries[1:]
    joins = {query.name: chance.randrange(len(batches) + 1) for query in passing}
    leaves = {query.name: joins[query.name] + chance.randint(0, 4) for query in passing}
    shared = Shared(steady, chance)
    highest, watermark = DAWN, DAWN
    for number, batch in enumerate(batches):
        for query in passing:
            if joins[query.name] == number:
                shared.join(query, watermark)
            if leaves[query.name] == number and query.name in shared.lines:
                shared.leave(query, watermark)
        shared.operator.insert(batch)
        highest = max(highest, batch.highest)
        watermark = highest - stream.lateness - 1
        shared.advance(watermark)
    shared.advance(DUSK)
    assert shared.lines[steady[0].name] == alone(steady[0], batches)
    for query in passing:
        if query.name in shared.lines:
            life = shared.expansions[query.name].life
            if life.after == DAWN:
                said = alone(query, batches)
            else:
                said = alone(query, batches, Joined(query, life.after, life.horizon))
            assert shared.lines[query.name] == [line for line in said if life.after < line["time"] <= life.until]
