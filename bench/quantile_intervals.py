"""B-INT-QNT: base intervals that keep their values sorted; a rank is found in many sorted arrays at once.

answers     QUANTILE and MEDIAN: the values at given ranks of an interval
requires    nothing (holistic)
update      O(log n) amortised a row: a block of level l is sorted when its 2^l rows are complete
lookup      O(log² W) steps, each over the at most 2·log W sorted arrays of the interval
space       8 bytes a slot and level
order       stream order within a key
source      seed 004 section 3.3

To find the value of rank k, all arrays are narrowed together: the weighted median of their middles is counted in
all of them, and the part of each array on the wrong side is cut off. A quarter of what is left goes at each step.
"""

from __future__ import annotations

import itertools

import numpy as np

from stairwise.aggregates.grouped import INT64_MAX
from stairwise.expressions.views import Ints
from stairwise.structures.contract import Arrivals, Intervals, Move, grown

NULL = INT64_MAX
"""The value of a NULL: above every value, so that ranks of values are not moved by it."""
_NONE: Ints = np.empty(0, np.int64)


class QuantileIntervals:
    """Sorted values of every base interval."""

    def __init__(self) -> None:
        self._levels: list[Ints] = [_NONE]
        """Level l has all slots, sorted within each block of 2^l."""

    @property
    def size_bytes(self) -> int:
        return sum(level.nbytes for level in self._levels)

    def move(self, move: Move) -> None:
        for level, column in enumerate(self._levels):
            width = (1 << level) - 1
            # A block moves as a whole, in its own order: from the slot of its first position on.
            kept = move.mask >= width
            source, target = move.source[kept], move.target[kept]
            begins = (move.position[kept] & width) == 0
            source, target = source[begins], target[begins]
            block = np.arange(width + 1)
            whole = np.zeros(move.size, np.int64) if move.fresh else grown(column, move.size)
            fits = source + width < len(column)
            source, target = source[fits], target[fits]
            whole[target[:, None] + block] = column[source[:, None] + block]
            self._levels[level] = whole

    def update(self, arrivals: Arrivals, values: Ints) -> None:
        """Add a batch: the value of every row, in the order of the batch."""
        position, slot, mask = arrivals.position, arrivals.slot, arrivals.mask
        self._levels[0][slot] = values
        for level in itertools.count(1):
            width = (1 << level) - 1
            complete = np.flatnonzero(((position + 1) & width == 0) & (mask >= width))
            if not len(complete):
                return
            if level == len(self._levels):
                self._levels.append(np.zeros(len(self._levels[0]), np.int64))
            position, slot, mask = position[complete], slot[complete], mask[complete]
            block = (slot - width)[:, None] + np.arange(width + 1)
            self._levels[level][block] = np.sort(self._levels[level - 1][block], axis=1)

    def lookup(self, intervals: Intervals, number: int) -> SortedArrays:
        """The values of one interval."""
        left, right = int(intervals.left[number]), int(intervals.right[number])
        start, mask = int(intervals.start[number]), int(intervals.mask[number])
        arrays = []
        level = 0
        while left < right:
            width = 1 << level
            if left & width:
                arrays.append(self._block(level, start + (left & mask)))
                left += width
            if left < right and right & width:
                right -= width
                arrays.append(self._block(level, start + (right & mask)))
            level += 1
        return SortedArrays(arrays)

    def _block(self, level: int, slot: int) -> Ints:
        return self._levels[level][slot : slot + (1 << level)]


class SortedArrays:
    """The values of an interval as a few sorted arrays. NULLs are last."""

    def __init__(self, arrays: list[Ints]) -> None:
        self._arrays = [array[: np.searchsorted(array, NULL)] for array in arrays]

    def __len__(self) -> int:
        """How many values there are, without NULLs."""
        return sum(map(len, self._arrays))

    def __add__(self, other: SortedArrays) -> SortedArrays:
        return SortedArrays(self._arrays + other._arrays)

    def at(self, rank: int) -> int:
        """The value that has ``rank`` values before it in order."""
        arrays = [array for array in self._arrays if len(array)]
        while True:
            pivot = _middle(arrays)
            below = [int(np.searchsorted(array, pivot)) for array in arrays]
            if rank < sum(below):
                arrays = [array[:cut] for array, cut in zip(arrays, below, strict=True) if cut]
                continue
            upto = [int(np.searchsorted(array, pivot, side="right")) for array in arrays]
            if rank < sum(upto):
                return pivot
            rank -= sum(upto)
            arrays = [array[cut:] for array, cut in zip(arrays, upto, strict=True) if cut < len(array)]


def _middle(arrays: list[Ints]) -> int:
    """The median of the arrays' medians, each weighted by its length."""
    middles = np.array([array[len(array) // 2] for array in arrays])
    order = np.argsort(middles)
    weight = np.cumsum(np.array([len(array) for array in arrays])[order])
    return int(middles[order[np.searchsorted(weight, weight[-1] / 2)]])
