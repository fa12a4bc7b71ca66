"""SELECT without a window: every row that WHERE keeps is reported once, at its own time.

    answers        projection and selection over a stream
    update         O(log r) amortised per row, r rows between the watermark and the newest
    lookup         O(1) per row reported
    space          the rows above the watermark
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 2.2 (monotonic queries, append-only results)

Nothing ever leaves such an answer, so a report holds what its time has added, not everything so far, and a row
that has been reported is needed no more.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.preparation import Preparation
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.moments import Moments
from stairwise.schema import Instant
from stairwise.state.row_buffer import TIME, RowBuffer
from stairwise.state.store import Store


class Append:
    """A SELECT over a stream without a window."""

    algorithm = "rows as they pass"

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        self.select = select
        self._store = store
        self._key = prefix + b"m"
        self._preparation = Preparation(select, 0)
        page = store.get(self._key)
        first = msgspec.msgpack.decode(page, type=int) if page else 0
        self._buffer = RowBuffer(store, prefix + b"0", self._preparation.schema, first)

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        if batch.stream == self.select.inputs[0].stream.name:
            self._buffer.add(self._preparation.rows(batch, horizon, faults))

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        self._buffer.settle(watermark)

    def row_moments(self) -> tuple[Ints, Ints]:
        """Every instant at which there are rows."""
        rows = self._buffer.rows(self._buffer.first, self._buffer.end)
        times = np.unique(int64_view(rows.column(TIME)))
        return times, np.zeros(len(times), np.int64)

    def work(self, moments: Moments) -> Ints:
        start, stop = self._ranges(moments)
        return stop - start

    def _ranges(self, moments: Moments) -> tuple[Ints, Ints]:
        """The positions of the rows of each moment's instant."""
        return self._buffer.passed(moments.times - 1), self._buffer.passed(moments.times)

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        start, stop = self._ranges(moments)
        rows = self._buffer.rows(int(start[0]), int(stop[-1]))
        of = np.repeat(np.arange(len(moments)), stop - start)
        outputs = rows.select([f"o{i}" for i in range(len(self.select.outputs))])
        if outputs.num_rows != len(of):
            outputs = outputs.take(pa.array(expand_ranges(start - start[0], stop - start)))
        return Cells(of, outputs)

    def evict(self, watermark: Instant) -> None:
        self._buffer.drop(self._buffer.end)

    def flush(self) -> None:
        self._buffer.flush()
        self._store.put(self._key, msgspec.msgpack.encode(self._buffer.first))
