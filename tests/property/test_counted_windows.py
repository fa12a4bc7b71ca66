"""Queries over windows of the last rows share one operator and say what the oracle says, whoever comes and goes."""

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
from stairwise.expressions.views import int64_view
from stairwise.flow.counted import NUMBER, CountedSignature, by_number
from stairwise.plan.shared import shared_expansion, shared_operator, shared_signature
from stairwise.reports.contract import Batch, Joined, Life
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.store import MemoryStore
from tests.oracle import run
from tests.property.shared import Line, Shared, Visits, alone, batches_of, drive, inside, watermarks_of
from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 3ms;"
SELECTS = (
    "SELECT DISTINCT k FROM s [{}]",
    "SELECT DISTINCT x, k FROM s [{}] WHERE x > -1",
    "SELECT DISTINCT ts FROM s [{}]",
    "SELECT k, x FROM s [{}] WHERE x > -1",
    "SELECT ts, x + 1 AS y FROM s [{}]",
    "SELECT k, COUNT(*), SUM(x), FIRST(x), LAST(ts) FROM s [{}] WHERE x < 2 GROUP BY k",
    "SELECT COUNT(*), MEDIAN(x), MAX(ts) FROM s [{}]",
    "SELECT TOP(k, 2) FROM s [{}]",
)
EMITS = ("ISTREAM", "DSTREAM", "CHANGES")
rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-3, 12),
            "k": st.sampled_from(["a", "b", "a value that is longer than two words", None]),
            "x": st.none() | st.integers(-2, 2),
        }
    ),
    max_size=30,
)
windows = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7), st.sampled_from(EMITS)), min_size=1, max_size=4)


@given(rows, windows, st.sampled_from(SELECTS), st.booleans(), st.randoms(use_true_random=False))
def test_windows_of_rows_give_the_oracles_lines(
    rows: list[dict[str, Any]],
    windows: list[tuple[int, int, str]],
    select: str,
    remake: bool,
    chance: Any,
) -> None:
    queries = [f"{select.format(f'ROWS {n} SLIDE {m}')} EMIT {emit};" for n, m, emit in windows]
    script = STREAM + "".join(queries)
    messages = {"s": sorted(rows, key=lambda row: row["ts"] // 4)}
    catalogue = Catalogue()
    catalogue.execute(script)
    (signature,) = {shared_signature(query) for query in catalogue.queries.values()}
    assert isinstance(signature, CountedSignature)
    assert engine_lines(script, messages, chance=chance, remake=remake) == run(script, messages)


class SharedRows(Shared):
    """Some queries join where the rows are not numbered yet: other partitions had come further."""

    def __init__(self, queries: Sequence[Query], chance: random.Random) -> None:
        super().__init__(queries, chance)
        self.spans = {query.name: (DAWN, DUSK) for query in queries}
        """After which instant each query reports, and until when."""

    def join(self, query: Query, after: Instant) -> None:
        after += self._chance.choice((0, 0, 2, 5)) if after > DAWN else 0
        self.spans[query.name] = (after, DUSK)
        super().join(query, after)

    def leave(self, query: Query, after: Instant) -> None:
        self.spans[query.name] = (self.spans[query.name][0], after)
        super().leave(query, after)


def by_rows(query: Query, batches: Sequence[Batch], span: tuple[Instant, Instant], horizon: int) -> list[Line]:
    """The lines of a query alone over rows whose times are their numbers."""
    rows = pa.Table.from_batches([batch.rows for batch in batches]).combine_chunks().to_batches()[0]
    rows = rows.take(pa.array(np.argsort(int64_view(rows.column(0)), kind="stable")))
    times, numbers = int64_view(rows.column(0)), np.arange(1, rows.num_rows + 1)
    numbered = pa.RecordBatch.from_arrays([*rows.columns, pa.array(numbers)], names=[*rows.schema.names, NUMBER])
    after, until = (0 if at == DAWN else int(np.searchsorted(times, at, side="right")) for at in span)
    one = by_number(query)
    joined = None if span[0] == DAWN else Joined(one, after, horizon)
    lines = alone(one, [Batch("s", 0, numbered, numbers, 1, len(numbers))], joined)
    return [{**line, "time": int(times[line["time"] - 1])} for line in inside(Life(after, until), lines)]


@given(
    st.lists(st.tuples(st.integers(-3, 12), st.sampled_from("ab"), st.none() | st.integers(-2, 2)), max_size=40),
    windows,
    st.sampled_from(SELECTS),
    st.randoms(use_true_random=False),
)
def test_queries_that_come_and_go_say_what_they_say_alone(
    values: list[tuple[int, str, int | None]], windows: list[tuple[int, int, str]], select: str, chance: random.Random
) -> None:
    catalogue = Catalogue()
    catalogue.execute(STREAM)
    for i, (n, m, emit) in enumerate(windows):
        catalogue.execute(f"CREATE QUERY q{i} AS {select.format(f'ROWS {n} SLIDE {m}')} EMIT {emit};")
    queries = list(catalogue.queries.values())
    stream = catalogue.streams["s"]
    batches = batches_of(stream, [(4 * i // 3 + row[0], *row[1:]) for i, row in enumerate(values)])  # type: ignore[misc]
    if not batches:
        return
    shared = SharedRows(queries[:1], chance)
    drive(shared, batches, watermarks_of(batches, [stream]), Visits(queries[1:], len(batches), chance))
    for query in queries:
        if query.name in shared.spans:
            life = shared.expansions[query.name].life
            horizon = 0 if life.horizon == DUSK else life.horizon  # one that has not been due is not told
            assert shared.lines[query.name] == by_rows(query, batches, shared.spans[query.name], horizon)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.none() | st.integers(-2, 2)), max_size=20),
    st.tuples(st.integers(1, 6), st.integers(1, 7), st.sampled_from(EMITS)),
    st.sampled_from(SELECTS),
    st.integers(1, 20),
)
def test_the_first_query_of_a_signature_may_join_late(
    values: list[tuple[int, str, int | None]], window: tuple[int, int, str], select: str, before: int
) -> None:
    """Then some rows came before without being inserted, and rows up to its horizon have no number."""
    n, m, emit = window
    catalogue = Catalogue()
    catalogue.execute(f"{STREAM} CREATE QUERY q AS {select.format(f'ROWS {n} SLIDE {m}')} EMIT {emit};")
    stream, query = catalogue.streams["s"], catalogue.queries["q"]
    batches = batches_of(stream, [(100 + i + row[0], *row[1:]) for i, row in enumerate(values)])  # type: ignore[misc]
    joined = Joined(query, 98, 102, {"s": before})
    signature = shared_signature(query)
    assert signature is not None
    operator = shared_operator(signature, [], MemoryStore())
    operator.plan(joined)
    expansion = shared_expansion(signature, query, operator.life("q"))
    lines: list[Line] = []
    for batch, watermark in zip([*batches, None], [*watermarks_of(batches, [stream]), DUSK], strict=True):
        if batch is not None:
            operator.insert(batch)
        for block in operator.advance(watermark):
            emitted = expansion.expand(block)
            lines += [] if emitted is None else line_dicts("q", emitted)
    assert lines == alone(query, batches, joined)
