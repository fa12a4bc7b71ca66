"""Rows, UNION ALL, EXCEPT, groups and joins: their changes by positive and negative tuples are those of rows in scope.

Windows count time, rows or the rows of partitions. Whatever is forgotten when there is much of it is forgotten at every
report here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.flow.expansion import FlowExpansion
from stairwise.flow.operator import SharedFlow
from stairwise.plan.parts import operator_for
from stairwise.plan.signature import flow_signature_of
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK
from stairwise.state.store import MemoryStore
from tests.property.forgetting import forgetful

STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;" for name in "stu")
WINDOWS = {
    "time": (
        "RANGE 4ms SLIDE 2ms",
        "RANGE 7ms SLIDE 3ms LAG 2ms",
        "RANGE 9ms SLIDE 5ms OFFSET 1ms",
        "RANGE 2ms SLIDE 5ms",
        "TUMBLE 6ms",
        "RANGE 50ms SLIDE 10ms",
    ),
    "rows": ("ROWS 1 SLIDE 2ms", "ROWS 3 SLIDE 3ms", "ROWS 50 SLIDE 5ms"),
    "partition": (
        "PARTITION BY k ROWS 1 SLIDE 2ms",
        "PARTITION BY k ROWS 2 SLIDE 3ms",
        "PARTITION BY k ROWS 9 SLIDE 5ms",
    ),
    "rows by rows": ("ROWS 1 SLIDE 2", "ROWS 4 SLIDE 2", "ROWS 50 SLIDE 2"),
    "partition by two": ("PARTITION BY x, k ROWS 1 SLIDE 3ms", "PARTITION BY x, k ROWS 2 SLIDE 2ms"),
}
COUNTED = ("rows", "partition", "partition by two")
SHAPES = (
    "SELECT k, x FROM s [{}] WHERE x > 0",
    "SELECT k FROM s [{}] EXCEPT SELECT k FROM t [{}]",
    "SELECT k FROM s [{}] UNION ALL SELECT k FROM t [{}] EXCEPT SELECT k FROM u [{}]",
    "SELECT x FROM s [{}] EXCEPT (SELECT x FROM s [{}] UNION ALL SELECT x FROM u [{}])",
    "SELECT DISTINCT k FROM s [{}] EXCEPT SELECT k FROM t [{}]",
    "SELECT DISTINCT x FROM s [{}] WHERE x > 0 UNION ALL SELECT DISTINCT x FROM t [{}]",
)
COUNTED_SHAPES = (
    "SELECT DISTINCT k, x > 0 AS y FROM s [{}]",
    "SELECT k, COUNT(*), SUM(x), AVG(x) FROM s [{}] GROUP BY k",
    "SELECT COUNT(x), VARIANCE(x) FROM s [{}] WHERE x > -1",
    "SELECT x, k, COUNT(*) FROM s [{}] GROUP BY k, x HAVING COUNT(*) > 1",
    "SELECT k, MIN(x), FIRST(x), LAST(ts), COUNT(*) FROM s [{}] WHERE x < 2 GROUP BY k",
    "SELECT MEDIAN(x), COUNT(DISTINCT k) FROM s [{}]",
    "SELECT a.x, b.x AS y FROM s [{}] a JOIN t [{}] b ON a.k = b.k WHERE a.x > -1",
    "SELECT a.k, b.x FROM s [{}] a, t [{}] b WHERE a.x < b.x AND b.x > 0",
    "SELECT DISTINCT b.k FROM s [{}] a, s [{}] b WHERE a.k = b.k AND a.x = b.x",
    "SELECT a.x, c.x AS y FROM s [{}] a, t [{}] b, u [{}] c WHERE a.k = b.k AND b.k = c.k AND a.x <= c.x",
    "SELECT a.k, COUNT(*), SUM(b.x) FROM s [{}] a JOIN t [{}] b ON a.k = b.k GROUP BY a.k",
)
"""Those that come from moves where the first window, at least, counts rows."""
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
    blocks = operator.advance(DUSK)
    return [line for block in blocks for line in line_dicts(query.name, expansion.expand_block(block))]


@st.composite
def rows_drawn(draw: st.DrawFn) -> list[Row]:
    clock = np.cumsum(draw(st.lists(st.integers(0, 5), min_size=1, max_size=40))) - 20
    values = st.tuples(
        st.sampled_from(["a", "b", "a value longer than two words", None]), st.none() | st.integers(-1, 2)
    )
    return [(draw(st.sampled_from("stu")), int(t), *draw(values)) for t in clock]


@st.composite
def scripts_drawn(draw: st.DrawFn) -> list[str]:
    """One to four queries of one signature: they differ in windows of the same kinds, and in EMIT."""
    shape = draw(st.sampled_from(SHAPES) | st.sampled_from(COUNTED_SHAPES))
    first = draw(st.sampled_from(list(COUNTED if shape in COUNTED_SHAPES else WINDOWS)).filter(_slides_by_time))
    kinds = [first, *draw(st.lists(st.sampled_from(list(WINDOWS)), min_size=2, max_size=2))]
    part = st.tuples(st.tuples(*(st.sampled_from(WINDOWS[kind]) for kind in kinds)), st.sampled_from(EMITS))
    return [f"{shape.format(*windows)} EMIT {emit}" for windows, emit in draw(st.lists(part, min_size=1, max_size=4))]


def _slides_by_time(kind: str) -> bool:
    """One window alone that slides by rows is counted instead (``flow.counted``)."""
    return kind != "rows by rows"


@given(scripts_drawn(), rows_drawn(), st.booleans(), st.randoms(use_true_random=False))
def test_queries_of_a_flow_say_what_their_rows_in_scope_say(
    selects: list[str], rows: list[Row], at_once: bool, chance: random.Random
) -> None:
    catalogue = Catalogue()
    catalogue.execute(STREAMS)
    for i, select in enumerate(selects):
        catalogue.execute(f"CREATE QUERY q{i} AS {select};")
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
    with forgetful():
        for number, batch in enumerate([*batches, None]):
            if number == joins_at and late is not None:
                operator.plan(Joined(late, watermark))
                expansions[late.name] = FlowExpansion(late, operator.life(late.name))
            if batch is not None:
                operator.insert(batch)
                if at_once and chance.random() < 0.7:
                    continue  # many reports come in one block
            watermark = DUSK if batch is None else batch.highest - 1
            for block in operator.advance(watermark):
                for name, expansion in expansions.items():
                    emitted = expansion.expand(block)
                    lines[name] += [] if emitted is None else line_dicts(name, emitted)
            if chance.random() < 0.3:
                operator.flush()
                operator = SharedFlow(signature, operator.queries, store)
    for query in queries:
        life = expansions[query.name].life
        joined = None if life.after == DAWN and life.horizon == DAWN else Joined(query, life.after, life.horizon)
        assert lines[query.name] == by_scope(query, batches, joined)
