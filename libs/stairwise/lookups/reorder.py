"""The reorder buffer: rows of one partition wait until the watermark passes them, and leave in stream order.

answers     the rows at or below a watermark, in (time, sequence) order, each once
update      O(log r) a row that comes out of order, r rows that wait; rows that come in order are not sorted
space       the rows above the watermark
order       any, as long as no row comes at or below the watermark
source      the order of a stream is (time, partition, sequence); within a partition the last two are one

    came          9  7  12  11 │ 14  10  15             lateness 5: the watermark is 9 after these
    leaves        7  9         │                        waits: 10  11  12  14  15

The order among partitions is settled where their answers meet: an answer at T takes from each partition the rows
at or below T, and aggregates are combined by algebras to which order does not matter or which carry it along.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.pages import concat, empty
from stairwise.schema import DAWN, Instant, Stream

_CLOSE = 2**32
"""Milliseconds; sorting by numbers below it takes at most two passes."""


class ReorderBuffer:
    """What of a partition's rows the watermark has not passed yet. Rows that wait are sorted already."""

    def __init__(self, stream: Stream) -> None:
        self._time = stream.time_column
        self._nothing = empty(stream.arrow_schema)
        self._waiting = self._nothing
        self._times: Ints = np.empty(0, np.int64)
        """Those of the rows that wait."""
        self.watermark: Instant = DAWN

    @property
    def waiting(self) -> int:
        return len(self._times)

    @property
    def size_bytes(self) -> int:
        size: int = self._waiting.nbytes
        return size

    def add(self, rows: pa.RecordBatch, watermark: Instant) -> pa.RecordBatch:
        """Rows in sequence order, and the watermark after them; gives those that it passes, in stream order."""
        self.watermark = max(self.watermark, watermark)
        if rows.num_rows:
            self._take(rows)
        passed = int(self._times.searchsorted(self.watermark, side="right"))
        ripe = self._waiting.slice(0, passed)
        self._waiting = self._waiting.slice(passed) if passed < len(self._times) else self._nothing
        self._times = self._times[passed:]
        return ripe

    def _take(self, rows: pa.RecordBatch) -> None:
        both = concat([self._waiting, rows]) if len(self._times) else rows
        times = int64_view(both.column(self._time))
        if (times[1:] < times[:-1]).any():
            both = both.take(pa.array(_order(times)))
            times = int64_view(both.column(self._time))
        self._waiting, self._times = both, times


def _order(times: Ints) -> Ints:
    """A stable order by time. What waits together is close together, so that a few radix passes do it."""
    since = times - times.min()
    span = int(since.max()) + 1
    return grouped.sort_codes(since, span) if span < _CLOSE else np.argsort(times, kind="stable")
