"""Frequent items in one pass: of every sub-window only its k most frequent items are kept.

    sub-windows of one slide    a 5  b 3 │ c 2      a 4  c 3 │ b 1      b 6  a 2 │ c 2        k = 2
    kept of each                a 5  b 3            a 4  c 3            b 6  a 2              the k-th: 3 + 3 + 2 = 8
    over the window             a 11  b 9  c 3                                                shown: a 11, b 9

    answers        APPROX_FREQUENT(x, k): the items of which more are known than an item could have that is in no list
    update         O(1) amortised a row
    lookup         O(k) for each sub-window of the window and group
    space          k counts for each sub-window and group, and the rows of the one that is open
    order          any, as long as no row comes at or below the watermark
    from           seed 001 chapter 6, algorithm 6

An item that is in no list of a sub-window occurs there at most as often as the k-th of it, and not at all where there
are fewer than k items. So what is shown has at least the count that it is shown with, and more than every item that
never made a list; an item may be missed that is just below the k-th everywhere. Sub-windows are those of the query's
own slide, whatever other queries do.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.algebra.query import Select
from stairwise.expressions.codes import encode
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.preparation import Preparation
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.moments import Moments
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.pages import concat, from_page, to_page
from stairwise.state.row_buffer import TIME, RowBuffer
from stairwise.state.store import Store
from stairwise.windows.expiry import admission_reports
from stairwise.windows.schedule import at_or_before, report_grids
from stairwise.windows.spec import TimeWindow

SUB_WINDOWED = "APPROX_FREQUENT"


def asks_for_sub_windows(select: Select) -> bool:
    return bool(select.aggregates) and select.aggregates[0].function == SUB_WINDOWED


class Frequent:
    """APPROX_FREQUENT over one time window whose range is a multiple of its slide."""

    algorithm = "frequent items of sub-windows"

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        window = select.inputs[0].window
        assert isinstance(window, TimeWindow)
        self.select, self._window = select, window
        self._grid = report_grids(window)[0]
        self._most = int(select.aggregates[0].parameter or 0)
        self._keys = len(select.keys)
        self._store, self._key, self._lists_key = store, prefix + b"m", prefix + b"l"
        self._preparation = Preparation(select, 0)
        self._grouping = Grouping(select)
        page = store.get(self._key)
        first = msgspec.msgpack.decode(page, type=int) if page else 0
        self._buffer = RowBuffer(store, prefix + b"0", self._preparation.schema, first)
        lists = store.get(self._lists_key)
        self._lists = self._kept(np.zeros(0, np.int64), self._buffer.rows(0, 0)) if lists is None else from_page(lists)
        """By sub-window: its end, then keys, item, count, and the count once more where it is the k-th, else 0."""

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        if batch.stream == self.select.inputs[0].stream.name:
            self._buffer.add(self._preparation.rows(batch, horizon, faults))

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        self._buffer.settle(watermark)

    def row_moments(self) -> tuple[Ints, Ints]:
        """Time windows report by the clock only."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def work(self, moments: Moments) -> Ints:
        own = at_or_before(self._grid, moments.times)
        held: Ints = self._buffer.passed(own - self._window.lag) - self._buffer.first + self._lists.num_rows
        return held

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        own = at_or_before(self._grid, moments.times)
        self._close(int(own[-1]))
        ends = int64_view(self._lists.column(0))
        start = np.searchsorted(ends, own - self._window.range, side="right")
        count = np.maximum(np.searchsorted(ends, own, side="right") - start, 0)
        at = pa.array(expand_ranges(start, count))
        of = np.repeat(np.arange(len(own)), count)
        _, *keys, item, known, floor = (column.take(at) for column in self._lists.columns)
        groups, _ = encode([pa.array(of), *keys])
        entries, first = encode([pa.array(groups), item])
        total = np.bincount(entries, weights=int64_view(known), minlength=len(first)).astype(np.int64)
        bound = np.bincount(groups, weights=int64_view(floor), minlength=len(groups))
        shown = np.flatnonzero(total > bound[groups[first]])
        rows = pa.array(first[shown])
        values = [*(key.take(rows) for key in keys), item.take(rows), pa.array(total[shown])]
        cells = self._grouping.group_rows(of[first[shown]], values[: self._keys], values[self._keys :])
        return cells.take(np.argsort(cells.of, kind="stable"))

    def _close(self, end: Instant) -> None:
        """Make lists of the sub-windows that end by then; their rows are needed no more."""
        stop = int(self._buffer.passed(np.array([end - self._window.lag]))[0])
        rows = self._buffer.rows(self._buffer.first, stop)
        if rows.num_rows:
            shown = admission_reports(self._window, int64_view(rows.column(TIME)))
            self._lists = concat([self._lists, self._kept(shown, rows)])
            self._buffer.drop(stop)

    def _kept(self, ends: Ints, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The lists of some sub-windows, each row of which says the end of its own; ends ascend."""
        keys = [rows.column(f"k{i}") for i in range(self._keys)]
        codes, first = encode([pa.array(ends), *keys])
        partials = self._grouping.lift(rows, _NOWHERE, codes, len(first))
        items = self._grouping.partials.items(partials)
        assert items is not None
        place = np.arange(len(items.group)) - np.searchsorted(items.group, items.group, side="left")
        floor = np.where(place == self._most - 1, int64_view(items.count), 0)
        of = pa.array(first[items.group])
        columns = [pa.array(ends).take(of), *(key.take(of) for key in keys), items.item, items.count, pa.array(floor)]
        return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])

    def evict(self, watermark: Instant) -> None:
        if DAWN < watermark < DUSK:
            last = int(at_or_before(self._grid, np.array([watermark]))[0])
            ends = int64_view(self._lists.column(0))
            self._lists = self._lists.slice(int(np.searchsorted(ends, last - self._window.range, side="right")))

    def flush(self) -> None:
        self._buffer.flush()
        self._store.put(self._key, msgspec.msgpack.encode(self._buffer.first))
        self._store.put(self._lists_key, to_page(self._lists))


_NOWHERE = Rows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
"""Counting items does not look at places."""
