"""Published rows that windows still hold: what the expansion of a query is made from when it is made again.

    published            ●●●●●●●●●●●●●●●●●●●●●●●┃ last report
    [RANGE ..]                     ├────────────┤        from the rear of the widest window on
    [ROWS n ..]                        ├────────┤        the last n rows, and those since the window's own report
    [PARTITION BY ..]    ●   ●  ●       ├───────┤        the same of each partition
    a table              ●    ●        ●                 the last update of each key; of one that is not retroactive
                                                         also those that held since the first row of the streams

    answers        which published rows a query that goes on needs
    update         O(1) amortised a row: rows are looked through when there are twice as many as were needed
    space          at most twice the rows that windows hold, and a few more
    order          report times ascend
    from           seed 002 section 3 (a window's state as a queue in order of expiration)

The first two kinds are a suffix of the stream: the buffer drops pages from the front. For partitions the buffer is
written as a whole, so this happens only now and then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.views import int64_view
from stairwise.schema import Instant
from stairwise.state.row_buffer import TIME, RowBuffer
from stairwise.windows.expiry import bounded
from stairwise.windows.schedule import at_or_before, report_grids
from stairwise.windows.scope import partitioned_scope
from stairwise.windows.spec import PartitionedWindow, RelationWindow, RowsWindow, TimeWindow, Window

_MANY = 1024
"""Up to so many rows are not looked through."""


class KeptRows:
    """The published rows of one input, as its buffer has them."""

    def __init__(self, buffer: RowBuffer) -> None:
        self._buffer = buffer
        self._needed = 0
        """How many rows were needed when they were last looked through."""

    @property
    def are_many(self) -> bool:
        return self._buffer.end - self._buffer.first > 2 * self._needed + _MANY

    @property
    def oldest(self) -> Instant | None:
        """The time of the first row that is kept."""
        rows = self._buffer.rows(self._buffer.first, self._buffer.first + 1)
        return int(int64_view(rows.column(TIME))[0]) if rows.num_rows else None

    def let_go(self, windows: Sequence[Window | None], reached: Instant, asked: Instant) -> None:
        """Drop the rows that none of some windows, all of one kind, holds after the reports up to an instant, and that
        no row of a stream asks for that came at another one or later."""
        own = [int(at_or_before(grid, np.array([reached]))[0]) for window in windows for grid in report_grids(window)]
        match windows[0]:
            case TimeWindow():
                reach = [w.lag + w.range for w in map(bounded, (w for w in windows if isinstance(w, TimeWindow)))]
                self._buffer.drop(self._passed(min(at - back for at, back in zip(own, reach, strict=True))))
            case RowsWindow(row_slide=int(slide)):
                most = max(window.rows for window in windows if isinstance(window, RowsWindow))
                self._buffer.drop(self._passed(reached) - most - slide)
            case RowsWindow():
                most = max(window.rows for window in windows if isinstance(window, RowsWindow))
                self._buffer.drop(self._passed(min(own)) - most)
            case PartitionedWindow(keys=keys):
                most = max(window.rows for window in windows if isinstance(window, PartitionedWindow))
                self._keep_last(PartitionedWindow(keys, most, 1), self._passed(min(own)))
            case RelationWindow() as table:
                self._keep_last(table.latest, self._passed(reached if table.retroactive else min(asked, reached)))
            case other:
                raise TypeError(f"{other} does not report by time")
        self._needed = self._buffer.end - self._buffer.first

    def _passed(self, instant: Instant) -> int:
        return int(self._buffer.passed(np.array([instant]))[0])

    def _keep_last(self, window: PartitionedWindow, upto: int) -> None:
        """Keep the last rows of each partition up to a position, and all behind it."""
        rows = self._buffer.rows(self._buffer.first, self._buffer.end)
        passed = rows.slice(0, upto - self._buffer.first)
        codes, _ = encode([passed.column(f"w{i}") for i in range(len(window.keys))])
        kept = np.concatenate([partitioned_scope(window, codes), np.arange(passed.num_rows, rows.num_rows)])
        self._buffer.replace(rows.take(pa.array(kept)))
