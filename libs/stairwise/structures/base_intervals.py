"""B-INT: base intervals, the dyadic ones; any interval is a union of at most 2·log W of them.

answers     MIN and MAX, as the least or greatest of integers in value order (``aggregates.ranks``)
requires    associative (distributive or algebraic)
update      O(1) amortised a row: level l is combined from two of level l−1 whenever 2^l rows are complete
lookup      O(log W) an interval of W rows
space       16 bytes a slot (8 + 4 + 2 + ...)
order       stream order within a key
source      seed 004 section 3.1.1, figures 2 and 3

    level 2   ├───────────0───────────┼───────────1──
    level 1   ├─────0─────┼─────1─────┼─────2─────┼──
    level 0   │  0  │  1  │  2  │  3  │  4  │  5  │       [1, 6) = 1 at level 0, 1 at level 1, 2 at level 1

All intervals of a batch go up the levels together: at each, those whose left end is odd take one base interval
there, and those whose right end is odd another, so both ends are even for the next.
"""

from __future__ import annotations

import numpy as np

from stairwise.aggregates.grouped import INT64_MAX, INT64_MIN
from stairwise.expressions.views import Ints
from stairwise.structures.contract import SMALLEST, Arrivals, Intervals, Move, moved

_NONE: Ints = np.empty(0, np.int64)


class BaseIntervals:
    """The greatest (or the least) value of every base interval."""

    def __init__(self, *, largest: bool) -> None:
        self._better = np.maximum if largest else np.minimum
        self.nothing = INT64_MIN if largest else INT64_MAX
        """The answer for no rows, and the value of a NULL."""
        self._levels: list[Ints] = [_NONE]

    @property
    def size_bytes(self) -> int:
        return sum(level.nbytes for level in self._levels)

    def move(self, move: Move) -> None:
        depth = max(1, move.size.bit_length())
        self._levels += [_NONE] * (depth - len(self._levels))
        self._levels = [moved(column, move, level) for level, column in enumerate(self._levels)]

    def update(self, arrivals: Arrivals, values: Ints) -> None:
        """Add a batch: the value of every row, in the order of the batch."""
        slot, mask = arrivals.slot, arrivals.mask
        self._levels[0][slot] = values
        for level in range(1, len(self._levels)):
            width = (1 << level) - 1
            # Rings start at multiples of their size: where a slot ends an interval, so does its position.
            ends = slot & width == width
            if width >= SMALLEST:
                ends &= mask >= width
            complete = np.flatnonzero(ends)
            if not len(complete):
                return
            slot, mask = slot[complete], mask[complete]
            right = slot >> (level - 1)
            below = self._levels[level - 1]
            self._levels[level][right >> 1] = self._better(below[right - 1], below[right])

    def values(self, slot: Ints) -> Ints:
        """The values of single rows."""
        return self._levels[0][slot]

    def lookup(self, intervals: Intervals) -> Ints:
        """The best value of each interval."""
        best = np.full(len(intervals), self.nothing)
        left, right = intervals.left.copy(), intervals.right.copy()
        start, mask = intervals.start.copy(), intervals.mask.copy()
        for column in self._levels:
            if not (left < right).any():
                break
            odd = left < right
            odd &= (left & 1) == 1
            self._take(best, column, np.flatnonzero(odd), left, start, mask)
            left += odd
            odd = left < right
            odd &= (right & 1) == 1
            right -= odd
            self._take(best, column, np.flatnonzero(odd), right, start, mask)
            for ends in (left, right, start, mask):
                ends >>= 1
        return best

    def _take(self, best: Ints, column: Ints, at: Ints, place: Ints, start: Ints, mask: Ints) -> None:
        if len(at):
            best[at] = self._better(best[at], column[start[at] + (place[at] & mask[at])])
