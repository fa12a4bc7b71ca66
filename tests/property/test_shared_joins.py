"""Joins of time windows say what the rows in scope say, shared or not, whoever joins and leaves beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.algebra.query import Query, selects
from stairwise.cql.script import Catalogue
from stairwise.join import operator, probe
from stairwise.join.expansion import JoinExpansion
from stairwise.join.probe import Probe
from stairwise.plan.parts import operator_for
from stairwise.plan.shared import QueryExpansion
from stairwise.plan.signature import published_signature_of
from stairwise.recompute.evaluation import QueryOperator
from stairwise.recompute.recompute import Recompute
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.state.store import MemoryStore
from tests.property.shared import (
    Line,
    Published,
    Row,
    Shared,
    Visits,
    above_its_horizon,
    batch_of,
    drive,
    inside,
    said,
    watermarks_of,
)

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

Part = tuple[str, str, str, str]


def declared(
    parts: Sequence[Part], sources: Sequence[str], values: str, condition: str
) -> tuple[dict[str, Stream], list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(STREAMS)
    third = " AND b.k = c.k" if len(sources) == 3 else ""
    for i, (*windows, emit) in enumerate(parts):
        named = zip(sources, windows, "abc", strict=False)
        inputs = ", ".join(f"{stream} [{window}] {alias}" for stream, window, alias in named)
        catalogue.execute(f"CREATE QUERY q{i} AS SELECT {values} FROM {inputs} WHERE {condition}{third} EMIT {emit};")
    return dict(catalogue.streams), list(catalogue.queries.values())


def batches_in_turn(streams: Mapping[str, Stream], rows: Sequence[tuple[str, Row]]) -> list[Batch]:
    """Batches of one row each and on time, streams in turn as they come."""
    highest = dict.fromkeys(streams, DAWN)
    found: list[Batch] = []
    for number, (name, row) in enumerate(rows):
        if row[0] > highest[name] - streams[name].lateness - 1:
            found.append(batch_of(streams[name], [row], number))
        highest[name] = max(highest[name], row[0])
    return found


def by_scope(query: Query, batches: Sequence[Batch], joined: Joined | None = None) -> list[Line]:
    """The lines of a query from the rows in the scope of each report."""
    store = MemoryStore()
    parts = [Recompute(select, store, b"p%d/" % i) for i, select in enumerate(selects(query.relation))]
    return said(query, QueryOperator(query, list(parts), store), batches, joined)


def said_alone(
    query: Query, batches: Sequence[Batch], watermarks: Sequence[Instant], chance: random.Random
) -> list[Line]:
    """The lines of a query by itself, torn down and made anew now and then."""
    store, lines = MemoryStore(), []
    operator, expansion = operator_for(query, store), Expansion(query)
    for batch, watermark in zip([*batches, None], [*watermarks, DUSK], strict=True):
        if batch is not None:
            operator.insert(batch)
        for block in operator.advance(watermark):
            lines += line_dicts(query.name, expansion.expand_block(block))
        if chance.random() < 0.3:
            operator.flush()
            operator = operator_for(query, store)
    return lines


class SharedPairs(Shared):
    """A query that joins takes up what has been joined already."""

    def expansion(self, query: Query) -> QueryExpansion:
        expansion = JoinExpansion(query, self.operator.life(query.name))
        expansion.expand(self.operator.history(query.name))
        return expansion


@contextmanager
def any_strategy(chance: random.Random) -> Iterator[None]:
    """Rows probe at once or wait for a report, each by itself or by groups, in any order of inputs."""

    def shuffled(self: Probe, _: object) -> list[int]:
        return chance.sample(range(len(self.select.inputs)), len(self.select.inputs))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "WAIT", chance.choice((0, 5, operator.WAIT)))
        patch.setattr(probe, "ROWS_A_KEY", chance.choice((0, 1, 2, probe.ROWS_A_KEY)))
        if chance.random() < 0.7:
            patch.setattr(Probe, "_best_order", shuffled)
        yield


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
    streams, queries = declared(parts, sources, values, condition)
    batches = batches_in_turn(streams, rows)
    with any_strategy(chance):
        shared = SharedPairs(queries, chance)
        drive(shared, batches, watermarks_of(batches, [streams[name] for name in sources]))
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
    streams, (query, *_) = declared(parts[:1], sources, values, condition)
    batches = batches_in_turn(streams, rows)
    watermarks = watermarks_of(batches, [streams[name] for name in sources])
    with any_strategy(chance):
        lines = said_alone(query, batches, watermarks, chance)
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
    streams, queries = declared(parts, sources, values, condition)
    batches = batches_in_turn(streams, rows)
    steady, passing = queries[:1], queries[1:]
    watermarks = watermarks_of(batches, [streams[name] for name in sources])
    published = chance.random() < 0.5 and published_signature_of(queries[0]) is not None
    with any_strategy(chance):
        shared = Published(steady, chance) if published else SharedPairs(steady, chance)
        drive(shared, batches, watermarks, Visits(passing, len(batches), chance, longest=8))
    assert shared.lines[steady[0].name] == by_scope(steady[0], batches)
    for query in passing:
        if query.name in shared.lines:
            life = shared.expansions[query.name].life
            assert shared.lines[query.name] == inside(life, by_scope(query, batches, above_its_horizon(query, life)))
