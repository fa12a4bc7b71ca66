"""The reorder buffer: rows of one partition wait until the watermark passes them, and leave in stream order.

answers     the rows at or below a watermark, in (time, sequence) order, each once
update      O(1) a batch; when rows are taken, a copy of each, and a few radix passes if they came out of order
space       the rows above the watermark, and those that nobody has taken
order       any, as long as no row comes at or below the watermark
source      the order of a stream is (time, partition, sequence); within a partition the last two are one

    came          9  7  12  11 │ 14  10  15             lateness 5: the watermark is 9 after these
    leaves        7  9         │                        waits: 10  11  12  14  15

Batches are merged and sorted when rows are taken, not when they come: whoever takes rows less often pays less.

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
    """What of a partition's rows nobody has taken yet. They are put in order when somebody does."""

    def __init__(self, stream: Stream) -> None:
        self._time = stream.time_column
        self._nothing = empty(stream.arrow_schema)
        self._batches: list[pa.RecordBatch] = []
        """The first may be what was left when rows were taken; it is sorted then."""
        self.fresh = 0
        """Rows that came since."""
        self.watermark: Instant = DAWN

    @property
    def waiting(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    @property
    def size_bytes(self) -> int:
        return sum(batch.nbytes for batch in self._batches)

    def put(self, rows: pa.RecordBatch, watermark: Instant) -> None:
        """Rows in sequence order, and the watermark after them."""
        self.watermark = max(self.watermark, watermark)
        if rows.num_rows:
            self._batches.append(rows)
            self.fresh += rows.num_rows

    def take(self) -> pa.RecordBatch:
        """The rows that the watermark has passed and that were not taken before, in stream order."""
        if not self._batches:
            return self._nothing
        rows = concat(self._batches)
        times = int64_view(rows.column(self._time))
        if self.fresh and (times[1:] < times[:-1]).any():
            rows = rows.take(pa.array(_order(times)))
            times = int64_view(rows.column(self._time))
        passed = int(times.searchsorted(self.watermark, side="right"))
        self._batches = [rows.slice(passed)] if passed < len(times) else []
        self.fresh = 0
        return rows.slice(0, passed)


def _order(times: Ints) -> Ints:
    """A stable order by time. What waits together is close together, so that a few radix passes do it."""
    since = times - times.min()
    span = int(since.max()) + 1
    return grouped.sort_codes(since, span) if span < _CLOSE else np.argsort(times, kind="stable")
