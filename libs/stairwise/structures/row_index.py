"""Which rows are a key's: for aggregates that no structure sums up, the rows themselves, without those of other keys.

answers     the numbers of the rows of an interval; any aggregate can be computed from them
requires    nothing (holistic)
update      O(1) a row
lookup      O(W) an interval of W rows of its key
space       8 bytes a slot
order       stream order within a key
source      seed 004 section 1.2: the extreme at which all computation is left to the lookup, kept apart by key
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.contract import Arrivals, Intervals, Move, moved, spread

_NONE: Ints = np.empty(0, np.int64)


class RowIndex:
    """The number of every row, by its place in its key's ring."""

    def __init__(self) -> None:
        self._numbers = _NONE

    @property
    def size_bytes(self) -> int:
        return self._numbers.nbytes

    def move(self, move: Move) -> None:
        self._numbers = moved(self._numbers, move)

    def update(self, arrivals: Arrivals, numbers: Ints) -> None:
        """Add a batch: the number of every row, in the order of the batch."""
        self._numbers[arrivals.slot] = numbers

    def lookup(self, intervals: Intervals) -> Ints:
        """The numbers of all rows in any of the intervals, in order."""
        length = intervals.right - intervals.left
        position = spread(intervals.left, length)
        slots = np.repeat(intervals.start, length) + (position & np.repeat(intervals.mask, length))
        return np.sort(self._numbers[slots])
