"""The reorder buffer: rows of one partition wait until the watermark passes them, and leave in stream order.

answers     the rows at or below a watermark, in (time, sequence) order, each once
update      O(1) a batch; when rows are taken, a look at their times, and if they came out of order a copy of each
            and a few radix passes
space       the rows above the watermark, and those that nobody has taken
order       any, as long as no row comes at or below the watermark
source      the order of a stream is (time, partition, sequence); within a partition the last two are one

    came          9  7  12  11 │ 14  10  15             lateness 5: the watermark is 9 after these
    leaves        7  9         │                        waits: 10  11  12  14  15

Batches are sorted when rows are taken, not when they come: whoever takes rows less often pays less.

The order among partitions is settled where their answers meet: an answer at T takes from each partition the rows
at or below T, and aggregates are combined by algebras to which order does not matter or which carry it along.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.expressions.views import Ints, int64_view
from stairwise.lookups.settled_rows import BatchRows, SettledRows, joined_ints
from stairwise.schema import DAWN, Instant, Stream
from stairwise.state.pages import concat

_CLOSE = 2**32
"""Milliseconds; sorting by numbers below it takes at most two passes."""
_NONE: Ints = np.empty(0, np.int64)


class ReorderBuffer:
    """What of a partition's rows nobody has taken yet. They are put in order when somebody does."""

    def __init__(self, stream: Stream) -> None:
        self._time = stream.arrow_schema.get_field_index(stream.time_column)
        self._left: list[BatchRows] = []
        """What was left when rows were taken, in order, and what was seen of it as numbers."""
        self._seen: dict[int, Ints] = {}
        self._new: list[pa.RecordBatch] = []
        """What came since."""
        self.fresh = 0
        """How many rows that is."""
        self.watermark: Instant = DAWN

    @property
    def waiting(self) -> int:
        return sum(piece.length for piece in self._left) + self.fresh

    @property
    def size_bytes(self) -> int:
        return sum(rows.nbytes for rows in (*(piece.rows for piece in self._left), *self._new))

    def put(self, rows: pa.RecordBatch, watermark: Instant) -> None:
        """Rows in sequence order, and the watermark after them."""
        self.watermark = max(self.watermark, watermark)
        if rows.num_rows:
            self._new.append(rows)
            self.fresh += rows.num_rows

    def take(self, *read: int) -> SettledRows:
        """The rows that the watermark has passed and that were not taken before, in stream order.

        ``read`` are columns of int64 that will be read: to look at them here, all together, is cheaper.
        """
        pieces = [*self._left, *map(BatchRows.of, self._new)]
        if not pieces:
            return SettledRows((), {self._time: _NONE}, self._time)
        seen = {column: self._joined(column) for column in (self._time, *read)}
        times = seen[self._time]
        if self._new and np.count_nonzero(times[1:] < times[:-1]):
            rows = concat([piece.rows for piece in pieces]).take(pa.array(_order(times)))
            pieces = [BatchRows.of(rows)]
            seen = {column: int64_view(rows.column(column)) for column in seen}
            times = seen[self._time]
        passed = int(times.searchsorted(self.watermark, side="right"))
        taken, self._left = _split(pieces, passed)
        self._seen = {column: values[passed:] for column, values in seen.items()}
        self._new.clear()
        self.fresh = 0
        return SettledRows(taken, {column: values[:passed] for column, values in seen.items()}, self._time)

    def _joined(self, column: int) -> Ints:
        """A column of all rows that are here."""
        parts = [int64_view(rows.column(column)) for rows in self._new]
        if self._left:
            left = self._seen.get(column)
            parts.insert(0, joined_ints([p.ints(column) for p in self._left]) if left is None else left)
        return joined_ints(parts)


def _split(pieces: list[BatchRows], at: int) -> tuple[list[BatchRows], list[BatchRows]]:
    """The first ``at`` rows, and the others."""
    for number, piece in enumerate(pieces):
        if at < piece.length:
            if not at:
                return pieces[:number], pieces[number:]
            edge = piece.start + at
            before, after = BatchRows(piece.batch, piece.start, edge), BatchRows(piece.batch, edge, piece.stop)
            return [*pieces[:number], before], [after, *pieces[number + 1 :]]
        at -= piece.length
    return pieces, []


def _order(times: Ints) -> Ints:
    """A stable order by time. What waits together is close together, so that a few radix passes do it."""
    since = times - times.min()
    span = int(since.max()) + 1
    return grouped.sort_codes(since, span) if span < _CLOSE else np.argsort(times, kind="stable")
