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
from stairwise.expressions.views import Ints
from stairwise.lookups.pieces import Piece, Settled, joined_ints
from stairwise.operators.pages import concat
from stairwise.schema import DAWN, Instant, Stream

_CLOSE = 2**32
"""Milliseconds; sorting by numbers below it takes at most two passes."""
_NOTHING = Settled((), np.empty(0, np.int64))


class ReorderBuffer:
    """What of a partition's rows nobody has taken yet. They are put in order when somebody does."""

    def __init__(self, stream: Stream) -> None:
        self._time = stream.time_column
        self._pieces: list[Piece] = []
        """The first may be what was left when rows were taken; they are in order then."""
        self.fresh = 0
        """Rows that came since."""
        self.watermark: Instant = DAWN

    @property
    def waiting(self) -> int:
        return sum(len(piece) for piece in self._pieces)

    @property
    def size_bytes(self) -> int:
        return sum(piece.rows.nbytes for piece in self._pieces)

    def put(self, rows: pa.RecordBatch, watermark: Instant) -> None:
        """Rows in sequence order, and the watermark after them."""
        self.watermark = max(self.watermark, watermark)
        if rows.num_rows:
            self._pieces.append(Piece(rows))
            self.fresh += rows.num_rows

    def take(self) -> Settled:
        """The rows that the watermark has passed and that were not taken before, in stream order."""
        pieces = self._pieces
        if not pieces:
            return _NOTHING
        times = joined_ints([piece.ints(self._time) for piece in pieces])
        if self.fresh and np.count_nonzero(times[1:] < times[:-1]):
            rows = concat([piece.rows for piece in pieces]).take(pa.array(_order(times)))
            pieces = [Piece(rows)]
            times = pieces[0].ints(self._time)
        passed = int(times.searchsorted(self.watermark, side="right"))
        taken, self._pieces = _split(pieces, passed)
        self.fresh = 0
        return Settled(taken, times[:passed])


def _split(pieces: list[Piece], at: int) -> tuple[list[Piece], list[Piece]]:
    """The first ``at`` rows, and the others."""
    for number, piece in enumerate(pieces):
        if at < len(piece):
            if not at:
                return pieces[:number], pieces[number:]
            before, after = piece.split(at)
            return [*pieces[:number], before], [after, *pieces[number + 1 :]]
        at -= len(piece)
    return pieces, []


def _order(times: Ints) -> Ints:
    """A stable order by time. What waits together is close together, so that a few radix passes do it."""
    since = times - times.min()
    span = int(since.max()) + 1
    return grouped.sort_codes(since, span) if span < _CLOSE else np.argsort(times, kind="stable")
