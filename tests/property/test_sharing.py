"""Queries that share say what they would say alone, whoever joins and leaves beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregation.stair import Stair, stair_of
from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.reports.contract import Batch, Joined
from stairwise.schema import DAWN, DUSK, Instant, Stream
from tests.property.shared import Row, Shared, Visits, alone, batches_of, drive, inside, watermarks_of

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
    "RANGE 40 MILLISECONDS SLIDE 12 MILLISECONDS",
    "RANGE 2 MILLISECONDS SLIDE 1 MILLISECONDS",
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


def declared(parts: Sequence[tuple[str, str]], grouping: str) -> tuple[Stream, list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(STREAM)
    for i, (window, aggregates) in enumerate(parts):
        keys = "k, " if grouping else ""
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT {keys}{aggregates} FROM s [{window}] {grouping};")
    return catalogue.streams["s"], list(catalogue.queries.values())


class SharedStairs(Shared):
    """What is published goes through its published form."""

    def blocks(self, watermark: Instant) -> Iterator[Stair]:
        return (stair_of(report) for stair in self.operator.advance(watermark) for report in stair.reports())


@st.composite
def streams_of_rows(draw: st.DrawFn) -> list[Row]:
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


given_queries = given(queries_drawn, st.sampled_from(GROUPINGS), streams_of_rows(), st.randoms(use_true_random=False))


@given_queries
def test_queries_of_a_signature_say_what_each_says_alone(
    parts: list[tuple[str, str]], grouping: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, grouping)
    batches = batches_of(stream, rows)
    watermarks = watermarks_of(batches, [stream])
    shared = SharedStairs(queries, chance)
    drive(shared, batches, watermarks)
    for query in queries:
        assert shared.lines[query.name] == alone(query, batches, watermarks=watermarks)


@given_queries
def test_no_query_notices_the_others_that_join_and_leave(
    parts: list[tuple[str, str]], grouping: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, grouping)
    batches = batches_of(stream, rows)
    watermarks = watermarks_of(batches, [stream])
    steady, passing = queries[:1], queries[1:]
    shared = SharedStairs(steady, chance)
    drive(shared, batches, watermarks, Visits(passing, len(batches), chance))
    assert shared.lines[steady[0].name] == alone(steady[0], batches, watermarks=watermarks)
    for query in passing:
        if query.name in shared.lines:
            _is_right_above_its_horizon(query, shared, batches, watermarks)


@given_queries
def test_what_a_query_that_joins_can_see_does_not_depend_on_how_far_a_run_has_come(
    parts: list[tuple[str, str]], grouping: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, grouping)
    batches = batches_of(stream, rows)
    steady, passing = queries[:1], queries[1:]
    visits = Visits(passing, len(batches), chance)
    prompt, lazy = SharedStairs(steady, chance), SharedStairs(steady, chance)
    reached = DAWN
    for number, (batch, watermark) in enumerate(zip(batches, watermarks_of(batches, [stream]), strict=True)):
        for shared in (prompt, lazy):
            visits.before(number, shared, reached)
            shared.operator.insert(batch)
        prompt.advance(watermark)
        if chance.random() < 0.3:
            lazy.advance(watermark)
        reached = watermark
    prompt.advance(DUSK)
    lazy.advance(DUSK)
    assert {n: e.life for n, e in prompt.expansions.items()} == {n: e.life for n, e in lazy.expansions.items()}
    assert repr(prompt.lines) == repr(lazy.lines)  # NaN is not equal to itself


def _is_right_above_its_horizon(query: Query, shared: Shared, batches: list[Batch], watermarks: list[Instant]) -> None:
    """A query that joined late says what it would say of the rows above its horizon."""
    life = shared.expansions[query.name].life
    lines = shared.lines[query.name]
    if life.horizon == DAWN:
        times = {line["time"] for line in lines}
        assert lines == [line for line in alone(query, batches, watermarks=watermarks) if line["time"] in times]
        return
    assert lines == inside(life, alone(query, batches, Joined(query, life.after, life.horizon)))
