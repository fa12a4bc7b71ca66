"""One input of a query: the rows that its window may still hold, and which of them it holds at each moment.

    answers        for a block of moments, the pairs (moment, row) of the window's states
    update         that of the buffer
    lookup         O(m log n) for m moments over n buffered rows, plus the pairs themselves
    space          the rows that the window reaches
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3, seed 003 section III

Every state is as of the window's own last report at or before the moment. All windows but the partitioned one
hold a run of consecutive rows, so that a state is a pair of positions. A row of a partitioned window is held from
when it has passed until the n-th row after it of its partition has:

    partition a, ROWS 2      a0    a1    a2    a3
    a0 is held               ├───────────┤
    a1 is held                     ├───────────┤
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Input
from stairwise.expressions.codes import encode
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints, int64_view
from stairwise.reports.moments import Moments
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.row_buffer import TIME, RowBuffer
from stairwise.windows.schedule import at_or_before, ordinals, report_grids, row_reports
from stairwise.windows.scope import partitioned_scope
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
)

UNTIL = "_until"
"""The column that says until when a row of a non-retroactive relation counts."""


class Side:
    """The rows of one input and its window over them."""

    def __init__(
        self, source: Input, buffer: RowBuffer, *, counted: int = 0, reported: int = 0, horizon: Instant = DAWN
    ) -> None:
        """``counted`` rows came before those the buffer has seen; ``reported`` positions have been reported at."""
        assert source.window is not None
        self.window = source.window
        self.buffer = buffer
        self.counted = counted
        self.reported = max(reported, buffer.first)
        self.horizon = horizon
        self.stream = source.stream.name
        self.is_relation = isinstance(source.window, RelationWindow)
        self._grids = report_grids(source.window)
        self._grown = 0

    def row_moments(self) -> tuple[Ints, Ints]:
        """The places (times, ordinals) of the newly settled rows at which a row slide reports."""
        window = self.window
        end = self.buffer.end
        if not isinstance(window, RowsWindow) or window.row_slide is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        times = int64_view(self.buffer.rows(self.reported, end).column(TIME))
        at = row_reports(window, self.reported + self.counted, len(times))
        self.reported = end
        at = at[times[at] > self.horizon]  # below it some rows were never seen, and numbers are not known
        return times[at], ordinals(times)[at].astype(np.int64)

    def work(self, moments: Moments) -> Ints:
        """How many rows the window holds at each moment, at most."""
        if isinstance(self.window, PartitionedWindow | RelationWindow):
            return np.full(len(moments), min(self.buffer.end - self.buffer.first, 2**31), np.int64)
        start, stop = self._ranges(moments)
        return stop - start

    def pairs(self, moments: Moments) -> tuple[Ints, pa.RecordBatch]:
        """The rows held at each moment, in stream order: their moment's number, and the rows."""
        if isinstance(self.window, PartitionedWindow):
            return self._last_of_each(self.window, moments, self._own_reports(moments))
        if isinstance(self.window, RelationWindow):
            return self._last_of_each(self.window.latest, moments, moments.times, stays=not self.window.retroactive)
        start, stop = self._ranges(moments)
        low, high = (int(start.min()), int(stop.max())) if len(moments) else (0, 0)
        rows = self.buffer.rows(low, high)
        count = stop - start
        of = np.repeat(np.arange(len(moments)), count)
        if len(of) == rows.num_rows and np.array_equal(start[1:], stop[:-1]):
            return of, rows  # tumbling: every row in one state
        return of, rows.take(pa.array(expand_ranges(start - low, count)))

    def _ranges(self, moments: Moments) -> tuple[Ints, Ints]:
        """The positions start ≤ i < stop that the window holds at each moment."""
        window, passed = self.window, self.buffer.passed
        if isinstance(window, RowsWindow):
            upto = self._rows_passed(window, moments)
            visible = int(passed(np.array([self.horizon]))[0])
            return np.minimum(upto, np.maximum(upto - window.rows, visible)), upto
        own = self._own_reports(moments)
        match window:
            case TimeWindow():
                front = own - window.lag
                start, stop = passed(front - min(window.range, DUSK)), passed(front)
            case LandmarkWindow():
                stop = passed(np.minimum(own, DUSK if window.end is None else window.end))
                start = passed(np.full(len(own), DAWN if window.start is None else window.start - 1))
                if window.retain is not None:
                    start = np.maximum(start, stop - window.retain)
            case MultiWindow():
                ranges = np.array([level.range for level in window.levels])
                reach = ranges[moments.levels] if window.horizon is None else window.horizon
                start, stop = passed(own - reach), passed(own)
            case PartitionedWindow() | RelationWindow():
                raise TypeError("the last rows of each key are no run of rows")
        return np.minimum(start, stop), stop

    def _own_reports(self, moments: Moments) -> Ints:
        """The window's own last report time at or before each moment."""
        if len(self._grids) == 1:
            return at_or_before(self._grids[0], moments.times)
        own = np.empty(len(moments), np.int64)
        for level, grid in enumerate(self._grids):
            here = moments.levels == level
            own[here] = at_or_before(grid, moments.times[here])
        return own

    def _rows_passed(self, window: RowsWindow, moments: Moments) -> Ints:
        """The position behind the last row that the window had seen at its own last report."""
        if window.row_slide is None:
            return self.buffer.passed(self._own_reports(moments))
        before, upto = self.buffer.passed(moments.times - 1), self.buffer.passed(moments.times)
        number = np.minimum(before + moments.ordinals + 1, upto) + self.counted
        reported: Ints = number - number % window.row_slide - self.counted
        return np.maximum(reported, self.buffer.first)

    def _last_of_each(
        self, window: PartitionedWindow, moments: Moments, own: Ints, *, stays: bool = False
    ) -> tuple[Ints, pa.RecordBatch]:
        """The last rows of each partition at each moment, up to its own report; where they stay, the earlier ones too.

        A row that stays says until when it was the last: from then on the row that replaced it is.
        """
        rows = self.buffer.rows(self.buffer.first, self.buffer.end)
        upto = self.buffer.passed(own) - self.buffer.first
        leaves = self._leaves(window, rows)
        first = np.searchsorted(upto, np.arange(rows.num_rows), side="right")
        last = np.full(rows.num_rows, len(moments)) if stays else np.searchsorted(upto, leaves, side="right")
        if stays:
            rows = rows.append_column(UNTIL, pa.array(_until(rows, leaves)))
        count = np.maximum(last - first, 0)
        of = expand_ranges(first, count)
        at = np.repeat(np.arange(rows.num_rows), count)
        order = np.argsort(of, kind="stable")
        return of[order], rows.take(pa.array(at[order]))

    def _leaves(self, window: PartitionedWindow, rows: pa.RecordBatch) -> Ints:
        """For each row, the index of the n-th later row of its partition: when that has passed, it is gone."""
        codes = self._partition_codes(window, rows)
        order = np.argsort(codes, kind="stable")
        leaves = np.full(len(codes), len(codes) + 1, np.int64)
        n = window.rows
        if len(codes) > n:
            same = codes[order[:-n]] == codes[order[n:]]
            leaves[order[:-n][same]] = order[n:][same]
        return leaves

    def _partition_codes(self, window: PartitionedWindow, rows: pa.RecordBatch) -> Ints:
        codes, _ = encode([rows.column(f"w{i}") for i in range(len(window.keys))])
        return codes

    def evict(self, watermark: Instant) -> None:
        """Drop the rows that no moment above the watermark can need."""
        if watermark >= DUSK or watermark <= DAWN:
            return
        if isinstance(self.window, RelationWindow):
            if self.window.retroactive:
                upto = int(self.buffer.passed(np.array([watermark]))[0])
                self._evict_partitions(self.window.latest, upto)
            return
        window, passed = self.window, self.buffer.passed
        if isinstance(window, RowsWindow) and window.row_slide is not None:
            end = int(passed(np.array([watermark]))[0])
            self.buffer.drop(end - window.rows - window.row_slide)
            return
        own = np.array([int(at_or_before(grid, np.array([watermark + 1]))[0]) for grid in self._grids])
        match window:
            case TimeWindow():
                self.buffer.drop(int(passed(own - window.lag - min(window.range, DUSK))[0]))
            case LandmarkWindow():
                start = DAWN if window.start is None else window.start - 1
                low = int(passed(np.array([start]))[0])
                if window.retain is not None:
                    front = np.minimum(own, DUSK if window.end is None else window.end)
                    low = max(low, int(passed(front)[0]) - window.retain)
                self.buffer.drop(low)
            case MultiWindow():
                reach = [window.horizon] if window.horizon is not None else [lv.range for lv in window.levels]
                self.buffer.drop(int(passed(np.array([(own - np.array(reach)).min()]))[0]))
            case RowsWindow():
                self.buffer.drop(int(passed(own)[0]) - window.rows)
            case PartitionedWindow():
                self._evict_partitions(window, int(passed(own)[0]))

    @property
    def oldest(self) -> Instant | None:
        """The time of the first row that is kept."""
        rows = self.buffer.rows(self.buffer.first, self.buffer.first + 1)
        return int(int64_view(rows.column(TIME))[0]) if rows.num_rows else None

    def evict_replaced(self, upto: Instant) -> None:
        """Of a relation that is not retroactive: drop the rows that were replaced by this time; now and then."""
        assert isinstance(self.window, RelationWindow)
        held = self.buffer.end - self.buffer.first
        if self.window.retroactive or held < 2 * self._grown + 1024:
            return
        rows = self.buffer.rows(self.buffer.first, self.buffer.end)
        kept = _until(rows, self._leaves(self.window.latest, rows)) > upto
        self.buffer.replace(rows.filter(pa.array(kept)))
        self._grown = int(np.count_nonzero(kept))

    def _evict_partitions(self, window: PartitionedWindow, upto: int) -> None:
        """Keep the last n rows of each partition, and what came later; only now and then, since it rewrites."""
        held = self.buffer.end - self.buffer.first
        if held < 2 * self._grown + 1024:
            return
        rows = self.buffer.rows(self.buffer.first, self.buffer.end)
        passed = upto - self.buffer.first
        kept = partitioned_scope(window, self._partition_codes(window, rows.slice(0, passed)))
        kept = np.concatenate([kept, np.arange(passed, held)])
        self.buffer.replace(rows.take(pa.array(kept)))
        self._grown = len(kept)


def _until(rows: pa.RecordBatch, leaves: Ints) -> Ints:
    """When each row is replaced; DUSK while it is not."""
    times = np.append(int64_view(rows.column(TIME)), DUSK)
    until: Ints = times[np.minimum(leaves, rows.num_rows)]
    return until
