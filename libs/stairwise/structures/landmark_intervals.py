"""L-INT: landmark intervals; an interval of w to 2w−1 rows is the union of two of them.

answers     MIN and MAX, as B-INT does, in constant time
requires    associative (distributive or algebraic)
update      O(γ) amortised a row, γ classes of width
lookup      O(1) an interval: at most two reads
space       8 bytes a slot for the values and 24 for each class
order       stream order within a key
source      seed 004 section 3.1.2, figures 4 and 5, with Wmin = w and Wmax = 2w−1 in each class

Of the class w, landmarks are the multiples of w. With a the first landmark at or after l:

              a−w          a           a+w
    ──────────┼──────●─────┼───────────┼────●──────
                     l     │           │    r
                     ├ tail┤ the rest of l's block, known when the block is complete
                           ├── head ───┤    from r's landmark, if that is a
                           ├──── long head ─┤ else from the landmark before

The rest of a block is at most w−1 rows, so a ≤ r for every interval of w rows or more; from a to r are fewer than
2w rows, so r's landmark is a or the one after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stairwise.aggregates.grouped import INT64_MAX, INT64_MIN
from stairwise.expressions.views import Bools, Ints
from stairwise.structures.contract import Arrivals, ByKey, Intervals, Move, moved

_NONE: Ints = np.empty(0, np.int64)
_NO_LEVEL = -1


@dataclass
class _Class:
    """The landmark intervals for intervals of 2^level rows or more, and less than twice as many."""

    level: int
    tail: Ints
    head: Ints
    long_head: Ints

    @property
    def width(self) -> int:
        return 1 << self.level


class LandmarkIntervals:
    """The greatest (or the least) value of landmark intervals of some classes: of 2^level rows for each level."""

    def __init__(self, levels: Iterable[int], *, largest: bool) -> None:
        self._better = np.maximum if largest else np.minimum
        self.nothing = INT64_MIN if largest else INT64_MAX
        """The answer for no rows, and the value of a NULL."""
        self._values = _NONE
        self._classes = {level: _Class(level, _NONE, _NONE, _NONE) for level in levels}

    @cached_property
    def levels(self) -> frozenset[int]:
        """The classes that are kept."""
        return frozenset(self._classes)

    @property
    def size_bytes(self) -> int:
        return self._values.nbytes * (1 + 3 * len(self._classes))

    def move(self, move: Move) -> None:
        self._values = moved(self._values, move)
        for each in self._classes.values():
            each.tail, each.head, each.long_head = (moved(c, move) for c in (each.tail, each.head, each.long_head))

    def update(self, arrivals: Arrivals, values: Ints) -> None:
        """Add a batch: the value of every row, in the order of the batch."""
        if not len(arrivals):
            return
        rows = arrivals.by_key()
        values = values[rows.order]
        self._values[rows.slot] = values
        for each in self._classes.values():
            self._add_heads(each, rows, values)
            self._add_tails(each, rows)

    def lookup(self, intervals: Intervals) -> Ints:
        """The best value of each interval. Its width must be of a class that is kept."""
        best = np.full(len(intervals), self.nothing)
        level = _levels(intervals)
        for asked in levels_of(intervals):
            if asked not in self._classes:
                raise ValueError(f"no landmarks are kept for intervals of {1 << asked} rows and more")
            self._look(self._classes[asked], intervals, np.flatnonzero(level == asked), best)
        return best

    def _look(self, each: _Class, intervals: Intervals, at: Ints, best: Ints) -> None:
        left, right = intervals.left[at], intervals.right[at]
        start, mask = intervals.start[at], intervals.mask[at]
        landmark = (left + each.width - 1) & -each.width
        tail = np.where(left < landmark, each.tail[start + (left & mask)], self.nothing)
        last = right - 1
        last_slot = start + (last & mask)
        head = np.where((last & -each.width) == landmark, each.head[last_slot], each.long_head[last_slot])
        best[at] = self._better(tail, np.where(right > landmark, head, self.nothing))

    def _add_heads(self, each: _Class, arrivals: ByKey, values: Ints) -> None:
        """From each row back to its landmark, and to the one before."""
        row, first_of_run = np.arange(len(arrivals)), arrivals.first_of_run
        into = arrivals.position & (each.width - 1)
        begin = np.maximum(first_of_run, row - into)
        head = self._scan(values.copy(), row - begin)
        goes_on = (begin == first_of_run) & (row - begin < into)
        if goes_on.any():
            before = self._before(arrivals, begin[goes_on])
            head[goes_on] = self._better(head[goes_on], each.head[before])
        each.head[arrivals.slot] = head
        each.long_head[arrivals.slot] = head
        start = arrivals.slot - (arrivals.position & arrivals.mask)
        landmark = arrivals.position - into
        longer = np.flatnonzero((landmark > 0) & (arrivals.mask >= each.width))
        previous = start[longer] + (landmark[longer] - 1 & arrivals.mask[longer])
        each.long_head[arrivals.slot[longer]] = self._better(head[longer], each.head[previous])

    def _scan(self, values: Ints, reach: Ints) -> Ints:
        """Each value with the ``reach`` values before it, by doubling: after step s it has seen 2s of them."""
        step, longest = 1, int(reach.max(initial=0))
        while step <= longest:
            far: Bools = reach >= step
            at = np.flatnonzero(far)
            values[at] = self._better(values[at], values[at - step])
            step *= 2
        return values

    def _before(self, arrivals: ByKey, row: Ints) -> Ints:
        """The slots of the positions before rows."""
        mask = arrivals.mask[row]
        start = arrivals.slot[row] - (arrivals.position[row] & mask)
        before: Ints = start + (arrivals.position[row] - 1 & mask)
        return before

    def _add_tails(self, each: _Class, arrivals: ByKey) -> None:
        """Of the blocks that are now complete: from each row to the end of its block.

        A ring may be smaller than a block, and grow before its rows are forgotten: it ends where the block does.
        """
        last = each.width - 1
        complete = arrivals.position & last == last
        ends, before = arrivals.slot[complete], np.minimum(arrivals.mask[complete], last)
        for rows in np.unique(before).tolist():
            block = (ends[before == rows] - rows)[:, None] + np.arange(rows + 1)
            each.tail[block] = self._better.accumulate(self._values[block][:, ::-1], axis=1)[:, ::-1]


def levels_of(intervals: Intervals) -> frozenset[int]:
    """The classes that intervals are of; one without rows is of none."""
    return frozenset(_levels(intervals).tolist()) - {_NO_LEVEL}


def _levels(intervals: Intervals) -> Ints:
    width = intervals.right - intervals.left
    level = np.log2(np.maximum(width, 1)).astype(np.int64)  # exact below 2^48
    return np.where(width > 0, level, _NO_LEVEL)
