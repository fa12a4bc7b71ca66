"""Windows of the last n rows, as windows of the last n instants of a clock that ticks once a row.

    time            10   10   13   20   20   20             the rows of the stream in order
    row number       1    2    3    4    5    6
    [ROWS 4 SLIDE 2]           (0, 4] at 4    (2, 6] at 6   is RANGE 4 SLIDE 2 by the number
    reports at                        20, first of its instant      20, third of its instant

    answers        SELECT, SELECT DISTINCT and groups over windows that slide by rows
    update         that of the operator by numbers: O(log r) a row, whatever the windows hold
    lookup         that of the operator by numbers; changes of rows and sets: O(what changed)
    space          that of the operator by numbers, and the rows above the watermark
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3 (a count-based window expires rows first in, first out, as a time-based one does)

Rows are numbered when their order is final. A filter applies to rows that are numbered already, so it changes nothing
about which rows the window reaches. The windows of a signature are nested as those by time are, and share one operator.

A query joins and leaves at an instant. That is the number of the last row up to it, which is known once the rows up to
it are numbered; until then the change waits:

    time            10   10   13 ┆ 20   20   20             joins after 15: from row 4 on
    row number       1    2    3 ┆  4    5    6
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Input, Query, Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.flow.operator import SharedFlow
from stairwise.operators.signature import DistinctSignature, FlowSignature, Signature
from stairwise.reports.contract import Batch, Joined, Left, Life, PlanChange
from stairwise.reports.emission import Emissions
from stairwise.reports.runs import Reach
from stairwise.schema import DAWN, DUSK, TIME_COLUMN, Column, Instant, Stream, Type
from stairwise.state.row_buffer import PLACE, TIME, RowBuffer
from stairwise.state.store import Store
from stairwise.windows.schedule import ordinals
from stairwise.windows.spec import RowsWindow, TimeWindow

NUMBER = "_number" * 20
"""Longer than a declared column's name may be, so that none is called so."""
_COUNT, _WAITING = b"N", b"W"

_EACH_ITS_OWN = -1
"""The lateness of numbers: no two rows have the same, so the watermark, highest − LATENESS − 1, is the last one."""


class _State(msgspec.Struct):
    """What has to survive beside the rows that wait and what the operator by numbers keeps."""

    count: int
    reached: Instant
    pending: list[tuple[str, Instant, bool]]
    lives: dict[str, Life]


@dataclass(frozen=True)
class CountedSignature:
    """What queries over windows of rows have to agree in: what they would have to if numbers were times."""

    stream: Stream
    by_number: Signature | DistinctSignature | FlowSignature

    @property
    def name(self) -> str:
        return f"{self.by_number.name}/rows"


def by_number(query: Query) -> Query:
    """The same query over the stream whose time is the number of a row."""
    select = query.relation
    assert isinstance(select, Select)
    (source,) = select.inputs
    window = source.window
    assert isinstance(window, RowsWindow)
    assert window.row_slide is not None
    over = Input(_numbered(source.stream), TimeWindow(window.rows, window.row_slide), source.alias)
    return replace(query, relation=replace(select, inputs=(over,)))


def _numbered(stream: Stream) -> Stream:
    """The stream with the number of each row behind its other columns, as its time."""
    time = () if stream.timestamp_by is not None else (Column(TIME_COLUMN, Type.TIMESTAMP, nullable=False),)
    columns = (*stream.columns, *time, Column(NUMBER, Type.TIMESTAMP, nullable=False))
    return replace(stream, columns=columns, timestamp_by=NUMBER, lateness=_EACH_ITS_OWN)


def _waiting_schema(stream: Stream) -> pa.Schema:
    """The stream's columns while they wait; those that are called as places are take names that none can declare."""
    return pa.schema([f.with_name(f.name * 100) if f.name in PLACE else f for f in stream.arrow_schema])


@dataclass(frozen=True)
class CountedBlock:
    """What a signature says at some rows, by their numbers, and where these rows stand in time."""

    by_number: Any
    first: int
    """The number of the first row of which the place is known."""
    row_times: Ints
    row_ordinals: Ints
    lives: dict[str, Life]
    """By query, between which rows it reports and how far back it sees: by their numbers."""

    @property
    def times(self) -> Ints:
        """The report times."""
        times: Ints = self.row_times[self.by_number.times - self.first]
        return times

    @property
    def ordinals(self) -> Ints:
        """Of each report, the number of its row among those of its instant."""
        places: Ints = self.row_ordinals[self.by_number.times - self.first]
        return places


@dataclass(frozen=True)
class _Joining:
    """A query that joins after an instant; it may miss rows that came before without being inserted here."""

    query: Query
    after: Instant
    misses_rows: bool


OperatorByNumber = Callable[[Signature | DistinctSignature | FlowSignature, Sequence[Query], Store], Any]
"""Makes the operator that evaluates queries whose rows are numbered."""


class SharedCounted:
    """Evaluates the queries of one signature over windows of rows."""

    def __init__(
        self, signature: CountedSignature, queries: Sequence[Query], store: Store, operator: OperatorByNumber
    ) -> None:
        """Goes on from what is in the store. A query that the store does not know begins with the stream."""
        self.signature = signature
        self.name = signature.name
        self._store = store
        page = store.get(_COUNT)
        state = _State(0, DAWN, [], {}) if page is None else msgspec.msgpack.decode(page, type=_State)
        self._known = {query.name: query for query in queries}
        self._lives = state.lives
        """Of the queries that have joined, by time."""
        pending = [entry for entry in state.pending if entry[0] in self._known]
        self._pending = [_Joining(self._known[name], after, misses) for name, after, misses in pending]
        """Queries that join where rows are not numbered yet, in their order."""
        waiting = {joining.query.name for joining in self._pending}
        numbered = [by_number(query) for query in queries if query.name not in waiting]
        self._operator = operator(signature.by_number, numbered, store)
        self._count, self._reached = state.count, state.reached
        """How many rows are numbered, and up to which instant."""
        self._buffer = RowBuffer(store, _WAITING, _waiting_schema(signature.stream), self._count)

    @property
    def algorithm(self) -> str:
        return f"{self._operator.algorithm}, by row numbers"

    @property
    def queries(self) -> list[Query]:
        here = {query.name for query in self._operator.queries} | {joining.query.name for joining in self._pending}
        return [query for name, query in self._known.items() if name in here]

    def life(self, query: str) -> Life:
        """From when to when a query reports, and its horizon, as it was told when it joined."""
        return self._lives.get(query, Life())

    def lives(self) -> dict[str, Life]:
        """The same by the numbers of rows, of the queries that do not wait for theirs."""
        return {query.name: self._operator.life(query.name) for query in self._operator.queries}

    def faults(self, query: Query) -> Faults:
        waits = any(joining.query.name == query.name for joining in self._pending)
        return Faults() if waits else self._operator.faults(query)

    @property
    def all_faults(self) -> Faults:
        faults: Faults = self._operator.all_faults
        return faults

    # ── queries come and go ──────────────────────────────────────────────────────────────────────────────────

    def plan(self, change: PlanChange) -> None:
        match change:
            case Joined():
                self._begin_with(change.before.get(self.signature.stream.name, 0))
                self._known[change.query.name] = change.query
                self._lives[change.query.name] = Life(change.after, DUSK, change.horizon)
                misses_rows = change.horizon > DAWN
                self._pending.append(_Joining(change.query, max(change.after, change.horizon), misses_rows))
                self._join()
            case Left():  # no row follows at or below where it leaves
                self._lives[change.query] = self.life(change.query)._replace(until=change.after)
                self._pending = [joining for joining in self._pending if joining.query.name != change.query]
                self._operator.plan(Left(change.query, self._count))

    def history(self, query: str) -> CountedBlock | None:
        """What the expansion of a query is made again from, at its last report; None where that needs nothing."""
        if not isinstance(self._operator, SharedFlow) or query not in self.lives():
            return None
        block = self._operator.history(query)
        return CountedBlock(block, int(block.times[-1]), np.array([self._reached]), np.zeros(1, np.int64), self.lives())

    def _begin_with(self, rows: int) -> None:
        """So many rows came before the first one that is inserted here."""
        if self._reached == DAWN and rows > self._count:
            self._count = rows
            self._buffer = RowBuffer(self._store, _WAITING, _waiting_schema(self.signature.stream), rows)

    def _join(self) -> None:
        """Let those join up to whose instant all rows are numbered. One that misses rows sees those from here on."""
        due = [joining for joining in self._pending if joining.after <= self._reached]
        self._pending = [joining for joining in self._pending if joining.after > self._reached]
        for joining in due:
            after = self._count if joining.after > DAWN else DAWN
            horizon = after if joining.misses_rows else DAWN
            self._operator.plan(Joined(by_number(joining.query), after, horizon))

    # ── rows in, blocks out ──────────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch) -> None:
        if batch.stream == self.signature.stream.name and batch.rows.num_rows:
            time = batch.rows.column(self.signature.stream.time_column)
            partition = pa.array(np.full(batch.rows.num_rows, batch.partition, np.int64))
            sequence = pa.array(np.asarray(batch.sequence, np.int64))
            columns = [*batch.rows.columns, time, partition, sequence]
            self._buffer.add(pa.RecordBatch.from_arrays(columns, names=self._buffer.schema.names))

    def reach(self, *, settled: bool) -> Reach | None:
        """Reports follow rows alone."""
        return None

    def next_due(self, instant: Instant) -> Instant:
        return DUSK

    def skip(self, until: Instant) -> None: ...

    def advance(self, watermark: Instant) -> Iterator[CountedBlock]:
        """The rows up to the watermark are numbered, and what is due by their numbers is said."""
        for instant in sorted({joining.after for joining in self._pending if joining.after < watermark}):
            yield from self._number(instant)
        yield from self._number(watermark)

    def _number(self, instant: Instant) -> Iterator[CountedBlock]:
        """The same up to an instant, at which queries may join."""
        self._buffer.settle(instant)
        rows = self._buffer.rows(self._count, self._buffer.end)
        self._reached = max(self._reached, instant)
        if rows.num_rows:
            first, self._count = self._count + 1, self._buffer.end
            self._buffer.drop(self._count)
            numbers = np.arange(first, self._count + 1)
            names = [*self.signature.stream.arrow_schema.names, NUMBER]
            columns = [*rows.columns[: len(names) - 1], pa.array(numbers)]
            named = pa.RecordBatch.from_arrays(columns, names=names)
            self._operator.insert(Batch(self.signature.stream.name, 0, named, numbers, first, self._count))
            times = int64_view(rows.column(TIME))
            places = ordinals(times).astype(np.int64)
            for block in self._operator.advance(self._count):
                yield CountedBlock(block, first, times, places, self.lives())
        self._join()

    def flush(self) -> None:
        self._operator.flush()
        self._buffer.flush()
        pending = [(joining.query.name, joining.after, joining.misses_rows) for joining in self._pending]
        lives = {query.name: self._lives[query.name] for query in self.queries if query.name in self._lives}
        self._store.put(_COUNT, msgspec.msgpack.encode(_State(self._count, self._reached, pending, lives)))


class CountedExpansion:
    """What one query shows of its signature's rows."""

    def __init__(self, query: Query, life: Life, expansion: Callable[[Query, Life], Any]) -> None:
        """It takes effect where the blocks say: ``life`` is what is known of it now. ``expansion`` makes that of the
        query by numbers."""
        self.query, self.life = query, life
        self._expansion_of = expansion
        self.faults = Faults()
        self._expansion: Any = None

    def expand(self, block: CountedBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        if self.query.name not in block.lives:
            return None  # it has not joined yet, or has left
        self.life = block.lives[self.query.name]
        if self._expansion is None:
            self._expansion = self._expansion_of(by_number(self.query), self.life)
            self.faults = self._expansion.faults
        self._expansion.life = self.life
        emitted: Emissions | None = self._expansion.expand(block.by_number)
        if emitted is None:
            return None
        at = emitted.times - block.first
        return replace(emitted, times=block.row_times[at], ordinals=block.row_ordinals[at])
