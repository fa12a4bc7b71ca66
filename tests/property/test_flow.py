"""Changes of rows, UNION ALL and EXCEPT by positive and negative tuples say what their rows in scope say."""

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
from stairwise.operators.contract import Batch, Joined
from stairwise.operators.expansion import Expansion
from stairwise.operators.lines import line_dicts
from stairwise.operators.store import MemoryStore
from stairwise.schema import DAWN, DUSK
from stairwise.sharing import copies
from stairwise.sharing.flow import SharedFlow
from stairwise.sharing.flow_expansion import FlowExpansion
from stairwise.sharing.signature import flow_signature_of

STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;" for name in "stu")
WINDOWS = (
    "RANGE 4ms SLIDE 2ms",
    "RANGE 7ms SLIDE 3ms LAG 2ms",
    "RANGE 9ms SLIDE 5ms OFFSET 1ms",
    "RANGE 2ms SLIDE 5ms",
    "TUMBLE 6ms",
    "RANGE 50ms SLIDE 10ms",
)
SHAPES = (
    "SELECT k, x FROM s [{}] WHERE x > 0",
    "SELECT k FROM s [{}] EXCEPT SELECT k FROM t [{}]",
    "SELECT k FROM s [{}] UNION ALL SELECT k FROM t [{}] EXCEPT SELECT k FROM u [{}]",
    "SELECT x FROM s [{}] EXCEPT (SELECT x FROM s [{}] UNION ALL SELECT x FROM u [{}])",
    "SELECT DISTINCT k FROM s [{}] EXCEPT SELECT k FROM t [{}]",
    "SELECT DISTINCT x FROM s [{}] WHERE x > 0 UNION ALL SELECT DISTINCT x FROM t [{}]",
)
EMITS = ("ISTREAM", "DSTREAM", "CHANGES")

Line = dict[str, Any]
Row = tuple[str, int, str | None, int | None]


def batches_of(rows: Sequence[Row]) -> list[Batch]:
    schema = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
    found: list[Batch] = []
    for number, (stream, *row) in enumerate(rows):
        arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        found.append(Batch(stream, 0, batch, np.array([number]), int(row[0]), int(row[0])))  # type: ignore[arg-type]
    return found


def by_scope(query: Query, batches: Sequence[Batch], joined: Joined | None = None) -> list[Line]:
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    if joined is not None:
        operator.plan(joined)
    for batch in batches:
        operator.insert(batch)
    blocks = operator.advance_blocks(DUSK)
    return [line for block in blocks for line in line_dicts(query.name, expansion.expand_block(block))]


@st.composite
def rows_drawn(draw: st.DrawFn) -> list[Row]:
    clock = np.cumsum(draw(st.lists(st.integers(0, 5), min_size=1, max_size=40))) - 20
    values = st.tuples(
        st.sampled_from(["a", "b", "a value longer than two words", None]), st.none() | st.integers(-1, 2)
    )
    return [(draw(st.sampled_from("stu")), int(t), *draw(values)) for t in clock]


parts_drawn = st.lists(
    st.tuples(st.lists(st.sampled_from(WINDOWS), min_size=3, max_size=3), st.sampled_from(EMITS)),
    min_size=1,
    max_size=4,
)


@given(parts_drawn, st.sampled_from(SHAPES), rows_drawn(), st.randoms(use_true_random=False))
def test_queries_of_a_flow_say_what_their_rows_in_scope_say(
    parts: list[tuple[list[str], str]], shape: str, rows: list[Row], chance: random.Random
) -> None:
    catalogue = Catalogue()
    catalogue.execute(STREAMS)
    for i, (windows, emit) in enumerate(parts):
        catalogue.execute(f"CREATE QUERY q{i} AS {shape.format(*windows)} EMIT {emit};")
    queries = list(catalogue.queries.values())
    read = {stream.name for stream in queries[0].streams}
    batches = batches_of([row for row in rows if row[0] in read])
    *steady, late = queries if len(queries) > 1 else [*queries, None]
    signature = flow_signature_of(queries[0])
    assert signature is not None
    store = MemoryStore()
    operator = SharedFlow(signature, steady, store)
    expansions = {query.name: FlowExpansion(query, operator.life(query.name)) for query in steady}
    lines: dict[str, list[Line]] = {query.name: [] for query in queries}
    joins_at = chance.randrange(len(batches) + 1)
    watermark = DAWN
    many, copies._MANY = copies._MANY, -(10**6)  # values are forgotten at every report
    try:
        for number, batch in enumerate([*batches, None]):
            if number == joins_at and late is not None:
                operator.plan(Joined(late, watermark))
                expansions[late.name] = FlowExpansion(late, operator.life(late.name))
            if batch is not None:
                operator.insert(batch)
            watermark = DUSK if batch is None else batch.highest - 1
            for block in operator.advance_blocks(watermark):
                for name, expansion in expansions.items():
                    emitted = expansion.expand(block)
                    lines[name] += [] if emitted is None else line_dicts(name, emitted)
            if chance.random() < 0.3:
                operator.flush()
                operator = SharedFlow(signature, operator.queries, store)
    finally:
        copies._MANY = many
    for query in queries:
        life = expansions[query.name].life
        joined = None if life.after == DAWN and life.horizon == DAWN else Joined(query, life.after, life.horizon)
        assert lines[query.name] == by_scope(query, batches, joined)
