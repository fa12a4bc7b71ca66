"""Queries that share say what they would say alone, whoever joins and leaves beside them."""

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
from stairwise.sharing.expansion import SharedExpansion
from stairwise.sharing.operator import SharedAggregation
from stairwise.sharing.signature import signature_of
from stairwise.sharing.stair import stair_of

STREAM = (
    "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE)"
    " TIMESTAMP BY ts LATENESS 3 MILLISECONDS GRANULE 1 MILLISECOND;"
)
WINDOWS = (
    "RANGE 4 MILLISECONDS SLIDE 2 MILLISECONDS",
    "RANGE 7 MILLISECONDS SLIDE 3 MILLISECONDS",
    "RANGE 12 MILLISECONDS SLIDE 4 MILLISECONDS LAG 2 MILLISECONDS",
    "RANGE 9 MILLISECONDS SLIDE 5 MILLISECONDS OFFSET 1 MILLISECONDS",
    "TUMBLE 6 MILLISECONDS",
    "RANGE 50 MILLISECONDS SLIDE 10 MILLISECONDS",
    "RANGES 12 MILLISECONDS, 4 MILLISECONDS SLIDES 4 MILLISECONDS, 2 MILLISECONDS",
)
AGGREGATES = ("SUM(x)", "COUNT(*)", "MIN(y), MAX(x)", "AVG(y), COUNT(x)", "MEDIAN(x)", "FIRST(k)", "STDDEV(y)")
UNEVEN = "RANGES 15 MILLISECONDS, 8 MILLISECONDS, 3 MILLISECONDS SLIDES 5 MILLISECONDS, 4 MILLISECONDS, 3 MILLISECONDS"
STEPPED = (
    (f"{UNEVEN} WEIGHTED BY (1, 0.3, 0.1)", "SUM(y), COUNT(*)"),
    (f"{WINDOWS[-1]} WEIGHTED BY (0, 1e-9)", "AVG(y), SUM(x), COUNT(x)"),
    (f"{UNEVEN} CONTINUOUS HORIZON 9 MILLISECONDS WEIGHTED BY (2, 0, 5)", "AVG(x), AVG(y)"),
    (WINDOWS[-1], "RECURRING(x)"),
    (UNEVEN, "RECURRING(y)"),
    (f"{UNEVEN} CONTINUOUS HORIZON 9 MILLISECONDS", "RECURRING(k)"),
)
"""Windows whose steps are looked at, with aggregates that do."""
GROUPINGS = ("GROUP BY k", "")

Line = dict[str, Any]


def declared(parts: Sequence[tuple[str, str]], grouping: str) -> tuple[Stream, list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(STREAM)
    for i, (window, aggregates) in enumerate(parts):
        keys = "k, " if grouping else ""
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT {keys}{aggregates} FROM s [{window}] {grouping};")
    return catalogue.streams["s"], list(catalogue.queries.values())


def batches_of(stream: Stream, rows: Sequence[tuple[int, str | None, int | None, float | None]]) -> list[Batch]:
    """Batches of a few rows each, out of order inside the lateness bound."""
    found: list[Batch] = []
    for start in range(0, len(rows), 4):
        columns = list(zip(*rows[start : start + 4], strict=True))
        arrays = [pa.array(c, f.type) for c, f in zip(columns, stream.arrow_schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=stream.arrow_schema)
        numbers = np.arange(start, start + batch.num_rows)
        found.append(Batch("s", 0, batch, numbers, min(columns[0]), max(columns[0])))
    return found


def alone(query: Query, batches: Sequence[Batch], stream: Stream) -> list[Line]:
    """The lines of a query that begins with the stream and is evaluated by itself."""
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    lines: list[Line] = []
    highest = DAWN
    for batch in batches:
        operator.insert(batch)
        highest = max(highest, batch.highest)
        for block in operator.advance_blocks(highest - stream.lateness - 1):
            lines += line_dicts(query.name, expansion.expand_block(block))
    for block in operator.advance_blocks(DUSK):
        lines += line_dicts(query.name, expansion.expand_block(block))
    return lines


class Shared:
    """A shared operator under test, torn down and made anew from its store now and then."""

    def __init__(self, queries: Sequence[Query], chance: random.Random) -> None:
        signature = signature_of(queries[0])
        assert signature is not None
        self._chance, self._store = chance, MemoryStore()
        self.operator = SharedAggregation(signature, queries, self._store)
        self.expansions = {q.name: SharedExpansion(q, self.operator.life(q.name)) for q in queries}
        self.lines: dict[str, list[Line]] = {q.name: [] for q in queries}

    def join(self, query: Query, after: int) -> None:
        self.operator.plan(Joined(query, after))
        self.expansions[query.name] = SharedExpansion(query, self.operator.life(query.name))
        self.lines[query.name] = []

    def leave(self, query: Query, after: int) -> None:
        self.operator.plan(Left(query.name, after))
        expansion = self.expansions[query.name]
        expansion.life = expansion.life._replace(until=after)

    def advance(self, watermark: int) -> None:
        for report in self.operator.advance(watermark):
            stair = stair_of(report)
            for name, expansion in self.expansions.items():
                emitted = expansion.expand(stair)
                if emitted is not None:
                    self.lines[name] += line_dicts(name, emitted)
        if self._chance.random() < 0.3:
            self.operator.flush()
            self.operator = SharedAggregation(self.operator.signature, self.operator.queries, self._store)


@st.composite
def streams_of_rows(draw: st.DrawFn) -> list[tuple[int, str | None, int | None, float | None]]:
    steps = draw(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    clock = np.cumsum(steps) - 20
    values = st.tuples(
        st.sampled_from(["a", "b", "a key that is longer than two words", "", None]),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)),
        st.one_of(st.none(), st.floats(), st.floats(-9, 9)),
    )
    late = st.integers(0, 3)
    return [(int(t) - draw(late), *draw(values)) for t in clock]


plain = st.tuples(st.sampled_from(WINDOWS), st.sampled_from(AGGREGATES))
queries_drawn = st.lists(plain | st.sampled_from(STEPPED), min_size=2, max_size=8)


@given(queries_drawn, st.sampled_from(GROUPINGS), streams_of_rows(), st.randoms(use_true_random=False))
def test_queries_of_a_signature_say_what_each_says_alone(
    parts: list[tuple[str, str]],
    grouping: str,
    rows: list[tuple[int, str | None, int | None, float | None]],
    chance: random.Random,
) -> None:
    stream, queries = declared(parts, grouping)
    batches = _on_time(batches_of(stream, rows), stream)
    shared = Shared(queries, chance)
    highest = DAWN
    for batch in batches:
        shared.operator.insert(batch)
        highest = max(highest, batch.highest)
        shared.advance(highest - stream.lateness - 1)
    shared.advance(DUSK)
    for query in queries:
        assert shared.lines[query.name] == alone(query, batches, stream)


@given(queries_drawn, st.sampled_from(GROUPINGS), streams_of_rows(), st.randoms(use_true_random=False))
def test_no_query_notices_the_others_that_join_and_leave(
    parts: list[tuple[str, str]],
    grouping: str,
    rows: list[tuple[int, str | None, int | None, float | None]],
    chance: random.Random,
) -> None:
    stream, queries = declared(parts, grouping)
    batches = _on_time(batches_of(stream, rows), stream)
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
    assert shared.lines[steady[0].name] == alone(steady[0], batches, stream)
    for query in passing:
        if query.name in shared.lines:
            _is_right_above_its_horizon(query, shared, batches, stream)


@given(queries_drawn, st.sampled_from(GROUPINGS), streams_of_rows(), st.randoms(use_true_random=False))
def test_what_a_query_that_joins_can_see_does_not_depend_on_how_far_a_run_has_come(
    parts: list[tuple[str, str]],
    grouping: str,
    rows: list[tuple[int, str | None, int | None, float | None]],
    chance: random.Random,
) -> None:
    stream, queries = declared(parts, grouping)
    batches = _on_time(batches_of(stream, rows), stream)
    steady, passing = queries[:1], queries[1:]
    joins = {query.name: chance.randrange(len(batches) + 1) for query in passing}
    leaves = {query.name: joins[query.name] + chance.randint(0, 4) for query in passing}
    prompt, lazy = Shared(steady, chance), Shared(steady, chance)
    highest, watermark = DAWN, DAWN
    for number, batch in enumerate(batches):
        for shared in (prompt, lazy):
            for query in passing:
                if joins[query.name] == number:
                    shared.join(query, watermark)
                if leaves[query.name] == number and query.name in shared.lines:
                    shared.leave(query, watermark)
            shared.operator.insert(batch)
        highest = max(highest, batch.highest)
        watermark = highest - stream.lateness - 1
        prompt.advance(watermark)
        if chance.random() < 0.3:
            lazy.advance(watermark)
    prompt.advance(DUSK)
    lazy.advance(DUSK)
    assert {n: e.life for n, e in prompt.expansions.items()} == {n: e.life for n, e in lazy.expansions.items()}
    assert repr(prompt.lines) == repr(lazy.lines)  # NaN is not equal to itself


def _is_right_above_its_horizon(query: Query, shared: Shared, batches: list[Batch], stream: Stream) -> None:
    """A query that joined late says what it would say of the rows above its horizon."""
    life = shared.expansions[query.name].life
    whole = alone(query, batches, stream)
    said = shared.lines[query.name]
    if life.horizon == DAWN:
        times = {line["time"] for line in said}
        assert said == [line for line in whole if line["time"] in times]
        return
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    operator.plan(Joined(query, life.after, life.horizon))
    lines: list[Line] = []
    for batch in batches:
        operator.insert(batch)
    for block in operator.advance_blocks(DUSK):
        lines += line_dicts(query.name, expansion.expand_block(block))
    assert said == [line for line in lines if life.after < line["time"] <= life.until]


def _on_time(batches: list[Batch], stream: Stream) -> list[Batch]:
    """Without rows that are late, row by row."""
    kept: list[Batch] = []
    highest = DAWN
    for batch in batches:
        times = batch.rows.column("ts").to_pylist()
        on_time: list[bool] = []
        for time in times:
            on_time.append(time > highest - stream.lateness - 1)
            highest = max(highest, time)
        rows = batch.rows.filter(pa.array(on_time))
        if rows.num_rows:
            stay = rows.column("ts").to_pylist()
            kept.append(Batch("s", 0, rows, batch.sequence[np.array(on_time)], min(stay), max(stay)))
    return kept
