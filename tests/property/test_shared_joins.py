"""Joins of time windows say what the rows in scope say, shared or not, whoever joins and leaves beside them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.cql.query import Query, selects
from stairwise.cql.script import Catalogue
from stairwise.operators.build import operator_for
from stairwise.operators.contract import Batch, Joined, Left
from stairwise.operators.evaluation import QueryOperator
from stairwise.operators.expansion import Expansion
from stairwise.operators.lines import line_dicts
from stairwise.operators.recompute import Recompute
from stairwise.operators.store import MemoryStore
from stairwise.schema import DAWN, DUSK
from stairwise.sharing.join import SharedJoin
from stairwise.sharing.join_expansion import JoinExpansion
from stairwise.sharing.signature import join_signature_of

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE) TIMESTAMP BY ts LATENESS 3ms;" for name in "stu"
)
WINDOWS = (
    "RANGE 4ms SLIDE 2ms",
    "RANGE 7ms SLIDE 3ms LAG 2ms",
    "RANGE 12ms SLIDE 4ms",
    "RANGE 9ms SLIDE 5ms OFFSET 1ms",
    "RANGE 2ms SLIDE 5ms",
    "TUMBLE 6ms",
    "RANGE 50ms SLIDE 10ms",
)
EMITS = ("RSTREAM", "ISTREAM", "DSTREAM", "CHANGES")
LISTS = (
    "a.k, b.x AS y",
    "a.x + b.x AS z",
    "DISTINCT b.x",
    "COUNT(*), SUM(a.x), FIRST(b.k), LAST(b.k)",
)
CONDITIONS = (
    "a.k = b.k",
    "a.k = b.k AND a.x = b.x",
    "a.y = b.y AND a.x < b.x",
    "a.x + 1 = b.x AND b.k = 'a'",
    "CAST(a.ts AS DOUBLE) BETWEEN CAST(b.ts AS DOUBLE) - 2 AND CAST(b.ts AS DOUBLE) + 1",
    "a.x < b.x",
)
SOURCES = (("s", "t"), ("s", "s"), ("s", "t", "u"), ("s", "t", "s"))

Line = dict[str, Any]
Row = tuple[int, str | None, int | None, float | None]
Part = tuple[str, str, str, str]


def declared(parts: Sequence[Part], sources: Sequence[str], values: str, condition: str) -> list[Query]:
    catalogue = Catalogue()
    catalogue.execute(STREAMS)
    third = " AND b.k = c.k" if len(sources) == 3 else ""
    for i, (*windows, emit) in enumerate(parts):
        named = zip(sources, windows, "abc", strict=False)
        inputs = ", ".join(f"{stream} [{window}] {alias}" for stream, window, alias in named)
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT {values} FROM {inputs} WHERE {condition}{third} EMIT {emit};")
    return list(catalogue.queries.values())


def batches_of(rows: Sequence[tuple[str, Row]]) -> list[Batch]:
    """Batches of one row each and on time, streams in turn as they come."""
    schema = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("x", pa.int64()), ("y", pa.float64())])
    highest = dict.fromkeys("stu", DAWN)
    found: list[Batch] = []
    for number, (stream, row) in enumerate(rows):
        if row[0] > highest[stream] - 4:
            arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            found.append(Batch(stream, 0, batch, np.array([number]), row[0], row[0]))
        highest[stream] = max(highest[stream], row[0])
    return found


def watermarks(batches: Sequence[Batch], streams: Iterable[str]) -> list[int]:
    """The watermark of these streams after each batch."""
    highest = dict.fromkeys(streams, DAWN)
    found: list[int] = []
    for batch in batches:
        if batch.stream in highest:
            highest[batch.stream] = max(highest[batch.stream], batch.highest)
        found.append(max(DAWN, min(highest.values()) - 4))
    return found


def by_scope(query: Query, batches: Sequence[Batch], joined: Joined | None = None) -> list[Line]:
    """The lines of a query from the rows in the scope of each report."""
    store = MemoryStore()
    parts = [Recompute(select, store, b"p%d/" % i) for i, select in enumerate(selects(query.relation))]
    operator, expansion = QueryOperator(query, list(parts), store), Expansion(query)
    if joined is not None:
        operator.plan(joined)
    for batch in batches:
        operator.insert(batch)
    blocks = operator.advance_blocks(DUSK)
    return [line for block in blocks for line in line_dicts(query.name, expansion.expand_block(block))]


class Shared:
    """A shared join under test, torn down and made anew from its store now and then."""

    def __init__(self, queries: Sequence[Query], chance: random.Random) -> None:
        signature = join_signature_of(queries[0])
        assert signature is not None
        self._chance, self._store = chance, MemoryStore()
        self.operator = SharedJoin(signature, queries, self._store)
        self.expansions = {q.name: JoinExpansion(q, self.operator.life(q.name)) for q in queries}
        self.lines: dict[str, list[Line]] = {q.name: [] for q in queries}

    def join(self, query: Query, after: int) -> None:
        self.operator.plan(Joined(query, after))
        history = self.operator.history(query.name)
        self.expansions[query.name] = JoinExpansion(query, self.operator.life(query.name), history)
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
        if self._chance.random() < 0.3:
            self.operator.flush()
            self.operator = SharedJoin(self.operator.signature, self.operator.queries, self._store)


@st.composite
def rows_drawn(draw: st.DrawFn) -> list[tuple[str, Row]]:
    clock = np.cumsum(draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))) - 20
    values = st.tuples(
        st.sampled_from(["a", "b", "a key that is longer than two words", None]),
        st.one_of(st.none(), st.integers(-2, 2)),
        st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
    )
    return [(draw(st.sampled_from("sstu")), (int(t) - draw(st.integers(0, 3)), *draw(values))) for t in clock]


windows_drawn = st.sampled_from(WINDOWS)
parts_drawn = st.lists(
    st.tuples(windows_drawn, windows_drawn, windows_drawn, st.sampled_from(EMITS)), min_size=1, max_size=3
)
given_joins = given(
    parts_drawn,
    st.sampled_from(SOURCES),
    st.sampled_from(LISTS),
    st.sampled_from(CONDITIONS),
    rows_drawn(),
    st.randoms(use_true_random=False),
)


@given_joins
def test_joins_of_a_signature_say_what_their_rows_in_scope_say(
    parts: list[Part],
    sources: tuple[str, ...],
    values: str,
    condition: str,
    rows: list[tuple[str, Row]],
    chance: random.Random,
) -> None:
    queries = declared(parts, sources, values, condition)
    batches = batches_of(rows)
    shared = Shared(queries, chance)
    for batch, watermark in zip(batches, watermarks(batches, sources), strict=True):
        shared.operator.insert(batch)
        shared.advance(watermark)
    shared.advance(DUSK)
    for query in queries:
        assert shared.lines[query.name] == by_scope(query, batches)


@given_joins
def test_a_join_by_itself_says_what_its_rows_in_scope_say(
    parts: list[Part],
    sources: tuple[str, ...],
    values: str,
    condition: str,
    rows: list[tuple[str, Row]],
    chance: random.Random,
) -> None:
    query = declared(parts[:1], sources, values, condition)[0]
    batches = batches_of(rows)
    store, lines = MemoryStore(), []
    operator, expansion = operator_for(query, store), Expansion(query)
    for batch, watermark in zip([*batches, None], [*watermarks(batches, sources), DUSK], strict=True):
        if batch is not None:
            operator.insert(batch)
        for block in operator.advance_blocks(watermark):
            lines += line_dicts(query.name, expansion.expand_block(block))
        if chance.random() < 0.3:
            operator.flush()
            operator = operator_for(query, store)
    assert lines == by_scope(query, batches)


@given_joins
def test_no_join_notices_the_others_that_join_and_leave(
    parts: list[Part],
    sources: tuple[str, ...],
    values: str,
    condition: str,
    rows: list[tuple[str, Row]],
    chance: random.Random,
) -> None:
    queries = declared(parts, sources, values, condition)
    batches = batches_of(rows)
    steady, passing = queries[:1], queries[1:]
    joins = {query.name: chance.randrange(len(batches) + 1) for query in passing}
    leaves = {query.name: joins[query.name] + chance.randint(0, 8) for query in passing}
    shared = Shared(steady, chance)
    reached = DAWN
    for number, (batch, watermark) in enumerate(zip(batches, watermarks(batches, sources), strict=True)):
        for query in passing:
            if joins[query.name] == number:
                shared.join(query, reached)
            if leaves[query.name] == number and query.name in shared.lines:
                shared.leave(query, reached)
        shared.operator.insert(batch)
        shared.advance(watermark)
        reached = watermark
    shared.advance(DUSK)
    assert shared.lines[steady[0].name] == by_scope(steady[0], batches)
    for query in passing:
        if query.name in shared.lines:
            life = shared.expansions[query.name].life
            joined = None if life.after == DAWN else Joined(query, life.after, life.horizon)
            said = by_scope(query, batches, joined)
            assert shared.lines[query.name] == [line for line in said if life.after < line["time"] <= life.until]
