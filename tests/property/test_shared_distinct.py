"""DISTINCT queries that share one log of appearances say what each says alone, whoever joins and leaves beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.distinct.operator import Appearances
from stairwise.plan.signature import distinct_signature_of
from stairwise.schema import Instant, Stream
from tests.property.shared import (
    Published,
    Row,
    Shared,
    Visits,
    above_its_horizon,
    alone,
    batches_of,
    drive,
    inside,
    watermarks_of,
)

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


def declared(parts: Sequence[tuple[str, str]], values: str, lag: str) -> tuple[Stream, list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(STREAM)
    for i, (window, emit) in enumerate(parts):
        lagged = window + lag if window.startswith("RANGE ") else window
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT DISTINCT {values} FROM s [{lagged}] EMIT {emit};")
    queries = list(catalogue.queries.values())
    first = distinct_signature_of(queries[0])
    return catalogue.streams["s"], [q for q in queries if distinct_signature_of(q) == first]


class SharedLog(Shared):
    """Phantoms are looked for at every report."""

    def _make(self, queries: Sequence[Query]) -> None:
        super()._make(queries)
        self._be_due()

    def blocks(self, watermark: Instant) -> Iterator[Appearances]:
        for block in self.operator.advance(watermark):
            yield block
            self._be_due()

    def _be_due(self) -> None:
        self.operator._log._compacted = -(10**6)


class PublishedLog(Published):
    """The same by way of published reports."""

    def _make(self, queries: Sequence[Query]) -> None:
        super()._make(queries)
        self.operator._log._compacted = -(10**6)

    def blocks(self, watermark: Instant) -> Iterator[Appearances]:
        for block in super().blocks(watermark):
            yield block
            self.operator._log._compacted = -(10**6)


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


given_queries = given(parts_drawn, st.sampled_from(LISTS), lags, streams_of_rows(), st.randoms(use_true_random=False))


@given_queries
def test_distinct_queries_of_a_signature_say_what_each_says_alone(
    parts: list[tuple[str, str]], values: str, lag: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, values, lag)
    batches = batches_of(stream, rows)
    shared = SharedLog(queries, chance)
    drive(shared, batches, watermarks_of(batches, [stream]))
    for query in queries:
        assert shared.lines[query.name] == alone(query, batches)


@given_queries
def test_no_distinct_query_notices_the_others_that_join_and_leave(
    parts: list[tuple[str, str]], values: str, lag: str, rows: list[Row], chance: random.Random
) -> None:
    stream, queries = declared(parts, values, lag)
    batches = batches_of(stream, rows)
    steady, passing = queries[:1], queries[1:]
    shared = chance.choice((SharedLog, PublishedLog))(steady, chance)
    drive(shared, batches, watermarks_of(batches, [stream]), Visits(passing, len(batches), chance))
    assert shared.lines[steady[0].name] == alone(steady[0], batches)
    for query in passing:
        if query.name in shared.lines:
            life = shared.expansions[query.name].life
            assert shared.lines[query.name] == inside(life, alone(query, batches, above_its_horizon(query, life)))
