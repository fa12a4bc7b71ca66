"""Rows on their way to windows: what SELECT, UNION ALL and EXCEPT over windows that report by time read, prepared once.

    insert ──▶ filter, outputs, once for each SELECT ──▶ rows wait
    advance ─▶ what is due ─▶ rows up to the front are published with their times, and forgotten,
               or kept as long as a window holds them, where expansions may have to be made again

    answers        selection, projection, UNION ALL and EXCEPT over RANGE, ROWS and PARTITION BY windows that slide by
                   time, where only changes are shown
    update         O(log r) amortised a row, r rows between the watermark and the newest
    lookup         each query's own affair: see ``flow_expansion``
    space          the rows that wait for a report; those that windows hold, where they are kept (``kept_rows``)
    order          any, as long as no row comes at or below the watermark
    from           seed 002 sections 4.1 and 4.3

What a window lets go is known from the times of rows, or from how many come after them, so nothing is kept here to
announce it. Where a window counts rows, those that WHERE does not keep count too. The expansions of queries have state
of their own. It follows from the rows in their windows: a driver that starts again from the store shows the ``history``
of a query to a new expansion, which then stands where the old one stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.query import Query, inputs
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Bools, Ints, bool_values, int64_view
from stairwise.flow.kept_rows import KeptRows
from stairwise.operators.preparation import KEEP, Preparation
from stairwise.operators.roster import Roster, Rostered
from stairwise.operators.signature import FlowSignature
from stairwise.reports.cells import canonical_column
from stairwise.reports.contract import Batch, Joined, PlanChange
from stairwise.reports.moments import Moments, merged
from stairwise.reports.runs import Reach
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.row_buffer import PLACE, TIME, RowBuffer
from stairwise.state.store import Store
from stairwise.windows.schedule import ordinals, row_reports
from stairwise.windows.spec import RowsWindow

_STATE, _ROWS = b"m", b"r"


class _State(msgspec.Struct):
    """What has to survive beside the rows and the queries."""

    firsts: list[int]
    reached: Instant
    overflow: int
    division: int
    published: list[int] = []
    """Behind the rows of each SELECT that are published; all that are settled, where windows report by time alone."""
    last: tuple[Instant, int] = (DAWN, 0)
    """The last moment that was published."""


@dataclass(frozen=True)
class Flow:
    """Rows of one SELECT in stream order: their places in it, and their outputs in the one spelling of each value.

    Of a window that counts rows, what partitions it, and which rows WHERE keeps where it does not keep all.
    """

    first: int
    """The position of the first one in the stream."""
    places: Rows
    values: list[pa.Array]
    keys: list[pa.Array]
    kept: Bools | None

    def above(self, horizon: Instant) -> Flow:
        """The rows that are seen from a horizon."""
        seen = self.places.time > horizon
        return self if seen.all() else self._only(seen, self.kept, self.first + int(np.count_nonzero(~seen)))

    def shown(self) -> Flow:
        """The rows that WHERE keeps."""
        return self if self.kept is None else self._only(self.kept, None, self.first)

    def _only(self, some: Bools, kept: Bools | None, first: int) -> Flow:
        mask = pa.array(some)
        values, keys = ([column.filter(mask) for column in columns] for columns in (self.values, self.keys))
        places = Rows(self.places.time[some], self.places.partition[some], self.places.sequence[some])
        return Flow(first, places, values, keys, None if kept is None else kept[some])


@dataclass(frozen=True)
class FlowBlock:
    """What a signature says at some report times: for each SELECT, the rows that have come since those before."""

    signature: str
    times: Ints
    ordinals: Ints
    at_rows: Bools
    """Which of these reports are made because a window slides by rows."""
    flows: list[Flow]
    first_row: Instant
    sealed_at: Instant | None


class SharedFlow(Rostered):
    """Prepares the rows of all queries of one signature."""

    algorithm = "rows that enter and leave"

    def __init__(
        self, signature: FlowSignature, queries: Sequence[Query], store: Store, *, keeps_history: bool = False
    ) -> None:
        """Goes on from what is in the store. A query that the store does not know begins with the streams."""
        self.signature = signature
        self.name = signature.name
        self._store = store
        self._selects = signature.selects
        page = store.get(_STATE)
        none = _State([0] * len(self._selects), DAWN, 0, 0)
        state = none if page is None else msgspec.msgpack.decode(page, type=_State)
        super().__init__(Roster(queries, store), Faults(state.overflow, state.division))
        self._reached = state.reached
        """Rows up to here are published."""
        self._tables = {flow.stream.name for flow in signature.flows if flow.stream.is_table}
        """Their rows neither begin nor end the reports."""
        windows = [flow.window for flow in signature.flows]
        self._slid = [i for i, w in enumerate(windows) if isinstance(w, RowsWindow) and w.row_slide is not None]
        """The inputs whose windows slide by rows."""
        self._preparations = [Preparation(select, 0) for select in self._selects]
        self._buffers = [
            RowBuffer(store, _ROWS + b"%d" % i, preparation.schema, first)
            for i, (preparation, first) in enumerate(zip(self._preparations, state.firsts, strict=True))
        ]
        self._published = state.published or [buffer.end for buffer in self._buffers]
        self._last = state.last
        self._kept = [KeptRows(buffer) for buffer in self._buffers] if keeps_history else None
        """What is published stays in the buffers where it is kept."""

    def plan(self, change: PlanChange) -> None:
        """A query that joins sees what is published from then on."""
        if isinstance(change, Joined):
            for i in self._slid:
                self._begin_with(i, change.before.get(self.signature.flows[i].stream.name, 0))
        self._change(change, self._reached)

    def _begin_with(self, i: int, rows: int) -> None:
        """So many rows of a stream came before the first one that is inserted here."""
        if self._reached == DAWN and rows > self._buffers[i].end:
            self._buffers[i] = RowBuffer(self._store, _ROWS + b"%d" % i, self._preparations[i].schema, rows)
            self._published[i] = rows
            if self._kept is not None:
                self._kept[i] = KeptRows(self._buffers[i])

    def insert(self, batch: Batch) -> None:
        streams = [select.inputs[0].stream.name for select in self._selects]
        if batch.stream not in streams:
            return
        if batch.highest > DAWN and batch.stream not in self._tables:
            self._roster.observe(batch.lowest, batch.highest)
        if not self._roster.queries and batch.stream not in self._tables:  # who joins later sees what comes after
            self._reached = max(self._reached, batch.highest)
        elif batch.rows.num_rows:
            for stream, buffer, preparation in zip(streams, self._buffers, self._preparations, strict=True):
                if stream == batch.stream:
                    buffer.add(preparation.rows(batch, DAWN, self._faults))

    def advance(self, watermark: Instant) -> Iterator[FlowBlock]:
        if watermark < self._next_due and not self._slid:
            self._roster.passed(watermark)
            return
        for moments, at_rows in self._due(watermark):
            self._settle(int(moments.times[-1]))
            flows = [self._flow(i, self._published[i], buffer.end) for i, buffer in enumerate(self._buffers)]
            self._published = [buffer.end for buffer in self._buffers]
            self._last = int(moments.times[-1]), int(moments.ordinals[-1])
            self._let_go()
            self._roster.passed(self._last[0])
            first_row, last_row = self._roster.course[1:]
            sealed_at = last_row if watermark >= DUSK else None
            yield FlowBlock(self.name, moments.times, moments.ordinals, at_rows, flows, first_row, sealed_at)
        if DAWN < watermark < DUSK:
            self._roster.passed(watermark)
            self._roster.drop_ended(watermark)
            self._next_due = self._roster.next_after(watermark)

    def _due(self, watermark: Instant) -> Iterator[tuple[Moments, Bools]]:
        """Every moment that is now due, and which of them are those of rows."""
        if not self._slid:
            for times in self._roster.due(watermark):
                yield Moments.of(times), np.zeros(len(times), bool)
            return
        starts = [buffer.end for buffer in self._buffers]
        self._settle(min(watermark, self._roster.course.last_row))
        found = [self._row_moments(i, starts[i]) for i in self._slid]
        times, places = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.lexsort([places, times])
        rows = Moments.of(times[order], places[order])
        for moments in merged(self._roster.due(watermark), rows.times, rows.ordinals):
            place = rows.place_of(moments.times, moments.ordinals)
            there = np.minimum(place, max(len(rows) - 1, 0))
            at_rows = np.zeros(len(moments), bool)
            if len(rows):
                at_rows = (rows.times[there] == moments.times) & (rows.ordinals[there] == moments.ordinals)
            yield moments, at_rows

    def _row_moments(self, i: int, start: int) -> tuple[Ints, Ints]:
        """Of the rows of a SELECT from a position on, those at which its window reports: times and ordinals."""
        window = self.signature.flows[i].window
        assert isinstance(window, RowsWindow)
        times = int64_view(self._buffers[i].rows(start, self._buffers[i].end).column(TIME))
        at = row_reports(window, start, len(times))
        return times[at], ordinals(times)[at].astype(np.int64)

    def _settle(self, reached: Instant) -> None:
        """The order of all rows up to an instant is final."""
        self._reached = max(self._reached, reached)
        for buffer in self._buffers:
            buffer.settle(self._reached)

    def _flow(self, i: int, start: int, stop: int) -> Flow:
        """The rows of a SELECT from one position to another, as far as they are kept."""
        start = max(start, self._buffers[i].first)
        rows = self._buffers[i].rows(start, stop)
        values = [canonical_column(rows.column(j)) for j in range(len(self._selects[i].outputs))]
        keys = [canonical_column(rows.column(name)) for name in rows.schema.names if name.startswith("w")]
        kept = bool_values(rows.column(KEEP)) if KEEP in rows.schema.names else None
        time, partition, sequence = (int64_view(rows.column(name)) for name in PLACE)
        return Flow(start, Rows(time, partition.astype(np.int32), sequence), values, keys, kept)

    def _let_go(self) -> None:
        """Drop the published rows that nobody needs behind the last report."""
        if self._kept is None:
            for buffer, published in zip(self._buffers, self._published, strict=True):
                buffer.drop(published)
            return
        streams = [one for one, flow in zip(self._kept, self.signature.flows, strict=True) if not flow.stream.is_table]
        for i, kept in enumerate(self._kept):
            if kept.are_many:
                asked = min(self._last[0] if (oldest := one.oldest) is None else oldest for one in streams)
                windows = [list(inputs(query.relation))[i].window for query in self.queries]
                kept.let_go(windows, self._last[0], asked)

    def reach(self, *, settled: bool) -> Reach | None:
        """An update of a table shows at once, whatever the lag of the windows, and so do reports at rows."""
        reach = super().reach(settled=settled)
        return reach._replace(enters=0) if reach is not None and (self._tables or self._slid) else reach

    def history(self, query: str) -> FlowBlock:
        """The rows that a query's windows hold, as a block at its last report: what has been published of it."""
        flows = [self._flow(i, buffer.first, self._published[i]) for i, buffer in enumerate(self._buffers)]
        time, ordinal = self._last if self._slid else (int(self._roster.last_report(query)[0]), 0)
        at_rows, first_row = np.array([bool(self._slid)]), self._roster.course.first_row
        return FlowBlock(self.name, np.array([time]), np.array([ordinal]), at_rows, flows, first_row, None)

    def flush(self) -> None:
        for buffer in self._buffers:
            buffer.flush()
        self._roster.flush()
        firsts = [buffer.first for buffer in self._buffers]
        counted = (self._faults.overflow, self._faults.division)
        state = _State(firsts, self._reached, *counted, self._published, self._last)
        self._store.put(_STATE, msgspec.msgpack.encode(state))
