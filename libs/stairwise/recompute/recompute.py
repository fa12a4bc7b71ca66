"""Any SELECT over any windows, by the definition: the rows in scope, taken afresh for every report.

    answers        selection, projection, DISTINCT, joins and groups over every kind of window
    aggregates     any
    update         that of the buffers: O(log r) amortised per row
    lookup         O(rows in scope) per report, vectorised over blocks of reports
    space          the rows that the windows reach
    order          any, as long as no row comes at or below the watermark
    from           seed 002 sections 3 and 4

It is what the quicker algorithms are measured against, and what everything runs on that has none. A block of
reports is one evaluation: each row stands once for every report whose window holds it, and the number of the
report is the first of its keys.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.algebra.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, bool_values, int64_view
from stairwise.operators.preparation import KEEP, Preparation, computed, row_expressions
from stairwise.recompute.cell_join import Join
from stairwise.recompute.side import UNTIL, Side
from stairwise.reports.cells import Cells, distinct
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.moments import Moments
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.row_buffer import PARTITION, PLACE, SEQUENCE, TIME, RowBuffer
from stairwise.state.store import Store


class _SideState(msgspec.Struct):
    """What has to survive of a side beside its rows."""

    first: int = 0
    counted: int = 0
    reported: int = 0
    horizon: Instant = DAWN


class Recompute:
    """A SELECT recomputed from the rows in scope."""

    algorithm = "recomputed from the rows in scope"

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        self.select = select
        self._store = store
        self._key = prefix + b"m"
        page = store.get(self._key)
        states = msgspec.msgpack.decode(page, type=list[_SideState]) if page else [_SideState() for _ in select.inputs]
        self._states = states
        self._preparations = [Preparation(select, i) for i in range(len(select.inputs))]
        self._sides = [
            Side(
                source,
                RowBuffer(store, prefix + b"%d" % i, self._preparations[i].schema, states[i].first),
                counted=states[i].counted,
                reported=states[i].reported,
                horizon=states[i].horizon,
            )
            for i, source in enumerate(select.inputs)
        ]
        self._join = Join(select) if len(select.inputs) > 1 else None
        self._grouping = Grouping(select) if select.is_grouped else None

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        for i, source in enumerate(self.select.inputs):
            if source.stream.name == batch.stream:
                self._sides[i].buffer.add(self._preparations[i].rows(batch, horizon, faults))

    def joined(self, change: Joined) -> None:
        for side in self._sides:
            side.horizon = change.horizon
            side.counted = change.before.get(side.stream, 0)

    def settle(self, watermark: Instant) -> None:
        for side in self._sides:
            side.buffer.settle(watermark)

    def row_moments(self) -> tuple[Ints, Ints]:
        found = [side.row_moments() for side in self._sides]
        return np.concatenate([times for times, _ in found]), np.concatenate([places for _, places in found])

    def work(self, moments: Moments) -> Ints:
        total: Ints = np.sum([side.work(moments) for side in self._sides], axis=0)
        return total

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        of, rows, places = self._joined(moments, faults) if self._join else self._alone(moments)
        if self._grouping is not None:
            return self._grouping.groups(moments.times, of, rows, places)
        outputs = [pa.field(f"o{i}", o.type.arrow) for i, o in enumerate(self.select.outputs)]
        cells = Cells(of, rows.select([field.name for field in outputs]))
        return distinct(cells) if self.select.distinct else cells

    def _alone(self, moments: Moments) -> tuple[Ints, pa.RecordBatch, Rows]:
        of, rows = self._sides[0].pairs(moments)
        if KEEP in rows.schema.names:
            keep = bool_values(rows.column(KEEP))
            of, rows = of[keep], rows.filter(pa.array(keep))
        time, partition, number = (int64_view(rows.column(name)) for name in PLACE)
        return of, rows, Rows(time, partition.astype(np.int32), number)

    def _joined(self, moments: Moments, faults: Faults) -> tuple[Ints, pa.RecordBatch, Rows]:
        assert self._join is not None
        cells, taken = [], []
        columns: list[pa.Array | None] = [None] * sum(len(i.stream.columns) for i in self.select.inputs)
        for side in self._sides:
            of, rows = side.pairs(moments)
            cells.append(of)
            taken.append(rows)
            for name, column in zip(rows.schema.names, rows.columns, strict=True):
                if name.startswith("f"):
                    columns[int(name[1:])] = column
        of, at = self._join.pairs(cells, columns, faults)
        of, at = self._as_of_their_rows(of, at, taken)
        order, places = _stream_order(of, taken, at)
        of, at = of[order], [rows[order] for rows in at]
        side_by_side: list[pa.Array | None] = [None] * len(columns)
        for rows, index in zip(taken, at, strict=True):
            for name, column in zip(rows.schema.names, rows.columns, strict=True):
                if name.startswith("f"):
                    side_by_side[int(name[1:])] = column.take(pa.array(index))
        found = computed(self.select, side_by_side, len(of), faults)
        names = [name for name, _ in row_expressions(self.select)]
        return of, pa.RecordBatch.from_arrays([column for _, column in found], names=names), places

    def _as_of_their_rows(self, of: Ints, at: list[Ints], taken: list[pa.RecordBatch]) -> tuple[Ints, list[Ints]]:
        """Of relations that are not retroactive, keep the row that held when the rows of the streams came together."""
        if not any(UNTIL in rows.schema.names for rows in taken):
            return of, at
        times = [int64_view(rows.column(TIME))[index] for rows, index in zip(taken, at, strict=True)]
        came = np.max([t for t, s in zip(times, self._sides, strict=True) if not s.is_relation], axis=0)
        holds = np.ones(len(of), bool)
        for rows, index, since in zip(taken, at, times, strict=True):
            if UNTIL in rows.schema.names:
                holds &= (since <= came) & (came < int64_view(rows.column(UNTIL))[index])
        return of[holds], [index[holds] for index in at]

    def evict(self, watermark: Instant) -> None:
        for side in self._sides:
            side.evict(watermark)
        if not DAWN < watermark < DUSK:
            return
        oldest = [side.oldest for side in self._sides if not side.is_relation]
        for side in self._sides:
            if side.is_relation:
                side.evict_replaced(min([watermark, *(time for time in oldest if time is not None)]))

    def flush(self) -> None:
        for state, side in zip(self._states, self._sides, strict=True):
            side.buffer.flush()
            state.first, state.counted, state.reported = side.buffer.first, side.counted, side.reported
            state.horizon = side.horizon
        self._store.put(self._key, msgspec.msgpack.encode(self._states))


def _stream_order(of: Ints, taken: list[pa.RecordBatch], at: list[Ints]) -> tuple[Ints, Rows]:
    """Joined rows in the order in which they came about, and their places in it.

    A joined row's time is that of its latest row; between equal times the rows themselves decide, the first
    input's first.
    """
    columns = [
        int64_view(rows.column(name))[index]
        for rows, index in zip(taken, at, strict=True)
        for name in (TIME, PARTITION, SEQUENCE)
    ]
    time = np.max(columns[::3], axis=0)
    order = np.lexsort([*reversed(columns), time, of])
    number = np.arange(len(of), dtype=np.int64)
    return order, Rows(time[order], np.zeros(len(of), np.int32), number)
