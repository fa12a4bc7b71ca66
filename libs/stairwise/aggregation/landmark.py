"""Groups over a landmark window: one accumulator per key, into which every passed slice folds.

    answers        GROUP BY and aggregates over [FROM t1], [UNTIL t2] and [FROM t1 UNTIL t2]
    aggregates     any with associative partials, which all are
    update         O(1) per row and aggregate
    lookup         O(k log m) merges per report for k keys, in blocks of m reports
    space          k partials, and those of the slices above the watermark
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3.2 (landmark windows)

The reports of a block are the running merges of the accumulator and the slices behind it. They are made by
doubling, so that every step is one merge of whole columns:

    slices         s1     s2     s3     s4
    step 1         1      1·2    2·3    3·4          merged with the one before
    step 2         1      1·2    1·2·3  1·2·3·4      merged with the one two before
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.aggregation.slices import Slices, dense, joined, merged, no_slices
from stairwise.algebra.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.preparation import Preparation
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.moments import Moments
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.key_table import KeyTable
from stairwise.state.pages import from_page, to_page
from stairwise.state.row_buffer import PLACE
from stairwise.state.store import Store
from stairwise.windows.schedule import at_or_before, report_grids
from stairwise.windows.spec import LandmarkWindow

_PASSED = -(2**62)
"""The number of the slice that holds everything passed: below all others."""
_BYTES_PER_WORK = 64


class ComingSlices:
    """The rows of a landmark that no report has shown yet, as partials of slices between its reports."""

    def __init__(self, select: Select) -> None:
        window = select.inputs[0].window
        assert isinstance(window, LandmarkWindow)
        self._select, self._window = select, window
        self._preparation = Preparation(select, 0)
        self.grouping = Grouping(select)
        self.partials = self.grouping.partials
        self.keys = KeyTable([key.type.arrow for key in select.keys])
        self.slices = no_slices(self.partials.schema)

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        if batch.stream != self._select.inputs[0].stream.name:
            return
        rows = self._inside(self._preparation.rows(batch, horizon, faults))
        if not rows.num_rows:
            return
        time, partition, sequence = (int64_view(rows.column(name)) for name in PLACE)
        keys = [rows.column(f"k{i}") for i in range(len(self._select.keys))]
        numbers = self.keys.numbers(keys, rows.num_rows)
        codes, number, key = dense(-(-time // self._window.slide), numbers, len(self.keys))
        places = Rows(time, partition.astype(np.int32), sequence)
        lifted = Slices(number, key, self.grouping.lift(rows, places, codes, len(number)))
        self.slices = joined([self.slices, lifted])

    def _inside(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        time = int64_view(rows.column(PLACE[0]))
        start = DAWN if self._window.start is None else self._window.start
        end = DUSK if self._window.end is None else self._window.end
        inside = (time >= start) & (time <= end)
        return rows if inside.all() else rows.filter(pa.array(inside))

    def settle(self) -> None:
        self.slices = merged(self.slices, self.partials, len(self.keys))

    def take(self, front: int) -> Slices:
        """The slices up to a front, which pass."""
        due = int(np.searchsorted(self.slices.number, front, side="right"))
        taken, self.slices = self.slices.slice(0, due), self.slices.slice(due, len(self.slices))
        return taken


class Landmark:
    """A grouped SELECT over one landmark window."""

    algorithm = "one accumulator a group"

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        window = select.inputs[0].window
        assert isinstance(window, LandmarkWindow)
        self.select = select
        self._window = window
        self._grid = report_grids(window)[0]
        self._store, self._key = store, prefix + b"l"
        self._coming = ComingSlices(select)
        self._grouping, self._partials, self._keys = self._coming.grouping, self._coming.partials, self._coming.keys
        self._passed = no_slices(self._partials.schema)
        """The accumulator: everything up to the last moment asked for."""
        self._load()

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        self._coming.insert(batch, horizon, faults)

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        self._coming.settle()

    def row_moments(self) -> tuple[Ints, Ints]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def work(self, moments: Moments) -> Ints:
        size = len(self._keys) + self._passed.nbytes // _BYTES_PER_WORK
        return np.full(len(moments), size, np.int64)

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        slide = self._window.slide
        front = -(-at_or_before(self._grid, moments.times) // slide)
        taken = self._coming.take(int(front[-1]))
        version, versions = self._versions(front, taken)
        running = self._running(version, taken)
        self._passed = running.take(np.flatnonzero(running.number == versions[-1]))
        return self._answers(moments, versions, running)

    def _versions(self, front: Ints, taken: Slices) -> tuple[Ints, Ints]:
        """The version that each taken slice is first part of, and the version that each moment shows.

        A version is a state that some moment shows; 0 is the accumulator as it stands.
        """
        count = np.searchsorted(taken.number, front, side="right")
        states = np.unique(np.concatenate(([0], count)))
        return np.searchsorted(states, np.arange(len(taken)), side="right"), np.searchsorted(states, count)

    def _running(self, version: Ints, taken: Slices) -> Slices:
        """All versions in full, by doubling."""
        accumulator = self._passed.renumbered(np.zeros(len(self._passed), np.int64))
        running = merged(joined([accumulator, taken.renumbered(version)]), self._partials, len(self._keys))
        last = int(version[-1]) if len(version) else 0
        reach = 1
        while reach <= last:
            earlier = running.take(np.flatnonzero(running.number + reach <= last))
            earlier = earlier.renumbered(earlier.number + reach)
            running = merged(joined([running, earlier]), self._partials, len(self._keys))
            reach *= 2
        return running

    def _answers(self, moments: Moments, versions: Ints, running: Slices) -> Cells:
        start = np.searchsorted(running.number, versions, side="left")
        count = np.searchsorted(running.number, versions, side="right") - start
        cell = np.repeat(np.arange(len(moments)), count)
        at = np.arange(len(cell)) - np.repeat(np.cumsum(count) - count - start, count)
        shown = running.take(at)
        if not self.select.keys:
            columns = self._partials.combine(shown.columns, cell, len(moments))
            return self._grouping.lowered(np.arange(len(moments)), [], columns, moments.times)
        order = np.lexsort([self._keys.rank()[shown.key], cell])
        shown, cell = shown.take(order), cell[order]
        return self._grouping.lowered(cell, self._keys.columns(shown.key), shown.columns, moments.times)

    def evict(self, watermark: Instant) -> None:
        """Nothing ever leaves a landmark; what has passed is folded already."""

    def flush(self) -> None:
        passed = self._passed.renumbered(np.full(len(self._passed), _PASSED))
        rows = joined([passed, self._coming.slices])
        columns = [pa.array(rows.number), *self._keys.columns(rows.key), *rows.columns]
        page = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        self._store.put(self._key, to_page(page))

    def _load(self) -> None:
        page = self._store.get(self._key)
        if page is None:
            return
        number, *columns = from_page(page).columns
        width = len(self.select.keys)
        key = self._keys.numbers(columns[:width], len(number))
        rows = Slices(int64_view(number), key, columns[width:])
        passed = int((rows.number == _PASSED).sum())
        self._passed = rows.slice(0, passed)
        self._coming.slices = rows.slice(passed, len(rows))
