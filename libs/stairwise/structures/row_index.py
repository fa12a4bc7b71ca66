"""Which rows are a key's: for aggregates that no structure sums up, the rows themselves, without those of other keys.

answers     the numbers of the rows of an interval, of which any aggregate can be computed; and the interval of the
            rows with numbers in a range, which is how windows by rows of the stream are found in each key
requires    nothing (holistic)
update      O(1) a row
lookup      O(W) for the numbers of an interval of W rows of its key; O(log n) for an interval, n rows of the key
space       8 bytes a slot
order       stream order within a key
source      seed 004 section 1.2: the extreme at which all computation is left to the lookup, kept apart by key; and
            section 3, tuple-based windows over all keys
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.contract import Arrivals, Intervals, Move, moved, spread
from stairwise.structures.rings import Rings

_NONE: Ints = np.empty(0, np.int64)


class RowIndex:
    """The number of every row, by its place in its key's ring."""

    def __init__(self) -> None:
        self.numbers = _NONE
        """By slot."""

    @property
    def size_bytes(self) -> int:
        return self.numbers.nbytes

    def move(self, move: Move) -> None:
        self.numbers = moved(self.numbers, move)

    def update(self, arrivals: Arrivals, numbers: Ints) -> None:
        """Add a batch: the number of every row, in the order of the batch."""
        self.numbers[arrivals.slot] = numbers

    def between(self, rings: Rings, key: Ints, first: int, end: int) -> Intervals:
        """Of each key, the rows with numbers in [first, end)."""
        left = rings.rank(self.numbers, np.full(len(key), first - 1))
        right = rings.rank(self.numbers, np.full(len(key), end - 1))
        return Intervals(key, left, np.maximum(left, right), rings.start, rings.mask)

    def lookup(self, intervals: Intervals) -> Ints:
        """The numbers of all rows in any of the intervals, in order."""
        length = intervals.right - intervals.left
        position = spread(intervals.left, length)
        slots = np.repeat(intervals.start, length) + (position & np.repeat(intervals.mask, length))
        return np.sort(self.numbers[slots])
