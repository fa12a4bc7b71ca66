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
from stairwise.reports.contract import Batch, PlanChange
from stairwise.reports.runs import Reach
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.row_buffer import PLACE, RowBuffer
from stairwise.state.store import Store

_STATE, _ROWS = b"m", b"r"


class _State(msgspec.Struct):
    """What has to survive beside the rows and the queries."""

    firsts: list[int]
    reached: Instant
    overflow: int
    division: int


@dataclass(frozen=True)
class Flow:
    """Rows of one SELECT in stream order: their places in it, and their outputs in the one spelling of each value.

    Of a window that counts rows, what partitions it, and which rows WHERE keeps where it does not keep all.
    """

    places: Rows
    values: list[pa.Array]
    keys: list[pa.Array]
    kept: Bools | None

    def above(self, horizon: Instant) -> Flow:
        """The rows that are seen from a horizon."""
        seen = self.places.time > horizon
        return self if seen.all() else self._only(seen, self.kept)

    def shown(self) -> Flow:
        """The rows that WHERE keeps."""
        return self if self.kept is None else self._only(self.kept, None)

    def _only(self, some: Bools, kept: Bools | None) -> Flow:
        mask = pa.array(some)
        values, keys = ([column.filter(mask) for column in columns] for columns in (self.values, self.keys))
        places = Rows(self.places.time[some], self.places.partition[some], self.places.sequence[some])
        return Flow(places, values, keys, None if kept is None else kept[some])


@dataclass(frozen=True)
class FlowBlock:
    """What a signature says at some report times: for each SELECT, the rows that have come since those before."""

    signature: str
    times: Ints
    flows: list[Flow]
    first_row: Instant
    sealed_at: Instant | None

    @property
    def ordinals(self) -> Ints:
        return np.zeros(len(self.times), np.int64)


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
        self._preparations = [Preparation(select, 0) for select in self._selects]
        self._buffers = [
            RowBuffer(store, _ROWS + b"%d" % i, preparation.schema, first)
            for i, (preparation, first) in enumerate(zip(self._preparations, state.firsts, strict=True))
        ]
        self._kept = [KeptRows(buffer) for buffer in self._buffers] if keeps_history else None
        """What is settled is published; it stays in the buffers where it is kept."""

    def plan(self, change: PlanChange) -> None:
        """A query that joins sees what is published from then on."""
        self._change(change, self._reached)

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
        if watermark < self._next_due:
            self._roster.passed(watermark)
            return
        for times in self._roster.due(watermark):
            self._reached = max(self._reached, int(times[-1]))
            flows = [self._drawn(i) for i in range(len(self._buffers))]
            self._let_go()
            self._roster.passed(int(times[-1]))
            first_row, last_row = self._roster.course[1:]
            yield FlowBlock(self.name, times, flows, first_row, last_row if watermark >= DUSK else None)
        if DAWN < watermark < DUSK:
            self._roster.passed(watermark)
            self._roster.drop_ended(watermark)
            self._next_due = self._roster.next_after(watermark)

    def _drawn(self, i: int) -> Flow:
        """The rows of a SELECT up to where all is reached."""
        start = self._buffers[i].end
        self._buffers[i].settle(self._reached)
        return self._flow(i, start)

    def _flow(self, i: int, start: int) -> Flow:
        """The published rows of a SELECT from a position on."""
        rows = self._buffers[i].rows(start, self._buffers[i].end)
        values = [canonical_column(rows.column(j)) for j in range(len(self._selects[i].outputs))]
        keys = [canonical_column(rows.column(name)) for name in rows.schema.names if name.startswith("w")]
        kept = bool_values(rows.column(KEEP)) if KEEP in rows.schema.names else None
        time, partition, sequence = (int64_view(rows.column(name)) for name in PLACE)
        return Flow(Rows(time, partition.astype(np.int32), sequence), values, keys, kept)

    def _let_go(self) -> None:
        """Drop the published rows that nobody needs."""
        if self._kept is None:
            for buffer in self._buffers:
                buffer.drop(buffer.end)
            return
        streams = [one for one, flow in zip(self._kept, self.signature.flows, strict=True) if not flow.stream.is_table]
        for i, kept in enumerate(self._kept):
            if kept.are_many:
                asked = min(self._reached if (oldest := one.oldest) is None else oldest for one in streams)
                windows = [list(inputs(query.relation))[i].window for query in self.queries]
                kept.let_go(windows, self._reached, asked)

    def reach(self, *, settled: bool) -> Reach | None:
        """An update of a table shows at once, whatever the lag of the windows."""
        reach = super().reach(settled=settled)
        return reach._replace(enters=0) if reach is not None and self._tables else reach

    def history(self, query: str) -> FlowBlock:
        """The rows that a query's windows hold, as a block at its last report: what has been published of it."""
        flows = [self._flow(i, buffer.first) for i, buffer in enumerate(self._buffers)]
        return FlowBlock(self.name, self._roster.last_report(query), flows, self._roster.course.first_row, None)

    def flush(self) -> None:
        for buffer in self._buffers:
            buffer.flush()
        self._roster.flush()
        firsts = [buffer.first for buffer in self._buffers]
        state = _State(firsts, self._reached, self._faults.overflow, self._faults.division)
        self._store.put(_STATE, msgspec.msgpack.encode(state))
