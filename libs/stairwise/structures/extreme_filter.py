"""The keys that have a large value in a window, without looking at the others.

answers     {k : MAX(window of k) > v} for any window by time; MIN(window of k) < v by the same, values turned round
requires    MAX or MIN
update      O(log² N) amortised a row: blocks of rows are sorted by value, and merged two by two
lookup      O(log² N + answer · log N): a search in each of the blocks that make up the window, at most 2·log N
space       O(N log N), less where keys repeat: a block has each key once
order       stream order
error       none
source      seed 004 gives the bounds in figure 1 and leaves the algorithm to its full version; this is one of our own

A key is in the answer if any of its rows in the window is above v. So base intervals are laid over the rows of all
keys together, and each keeps the best value of each of its keys, in order of value:

    level 1   ├───────────────0───────────────┼────────
    level 0   ├───────0───────┼───────1───────┼──── 2 (open)
    rows       ts ............│..............│.........
               └ looked through └ base intervals: keys from v on └ looked through

Only the two blocks at the window's edges are looked through row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stairwise.aggregates import grouped
from stairwise.expressions.views import Ints
from stairwise.schema import Instant

LEAF = 1024
"""Rows of the smallest block."""


@dataclass(frozen=True)
class _Block:
    """Each key once with its best value, in order of value."""

    value: Ints
    key: Ints

    def above(self, bound: int) -> Ints:
        return self.key[np.searchsorted(self.value, bound, side="right") :]


@dataclass(frozen=True)
class _Leaf:
    """Rows as they came."""

    time: Ints
    key: Ints
    value: Ints

    def above(self, rear: Instant, front: Instant, bound: int) -> Ints:
        return self.key[(self.time > rear) & (self.time <= front) & (self.value > bound)]


@dataclass
class ExtremeFilter:
    """Keys by their greatest values."""

    _leaves: dict[int, _Leaf] = field(default_factory=dict)
    _levels: list[dict[int, _Block]] = field(default_factory=lambda: [{}])
    _first: int = 0
    _next: int = 0
    """The leaf that is filled next. The one at ``_next`` may be there already, not full."""

    @property
    def size_bytes(self) -> int:
        entries = sum(len(block.key) for level in self._levels for block in level.values())
        return 16 * entries + 24 * sum(len(leaf.key) for leaf in self._leaves.values())

    def update(self, key: Ints, times: Ints, values: Ints) -> None:
        """Add a batch in stream order; rows that have no value are left out by the caller."""
        open_leaf = self._leaves.pop(self._next, None)
        if open_leaf is not None:
            times, key, values = (
                np.concatenate(pair)
                for pair in ((open_leaf.time, times), (open_leaf.key, key), (open_leaf.value, values))
            )
        for start in range(0, len(key), LEAF):
            rows = slice(start, start + LEAF)
            # A copy, so that what it was cut from can be freed.
            leaf = _Leaf(times[rows].copy(), key[rows].copy(), values[rows].copy())
            self._leaves[self._next] = leaf
            if len(leaf.key) == LEAF:
                self._complete(leaf)

    def lookup(self, rear: Instant, front: Instant, bound: int) -> Ints:
        """The keys that have a value above ``bound`` in (rear, front]."""
        found: list[Ints] = []
        begin, end = self._first, self._next
        after = end
        if end in self._leaves:
            found.append(self._leaves[end].above(rear, front, bound))
        # A leaf is inside if all its rows are: the edges are the leaves at both ends that are not.
        while begin < end and self._leaves[begin].time[0] <= rear:
            step = self._wholly_outside(begin, end, rear)
            if not step:
                found.append(self._leaves[begin].above(rear, front, bound))
                begin += 1
            begin += step
        end = begin + self._wholly_outside(begin, end, front)  # leaves from here on have rows after the front
        if end < after:
            found.append(self._leaves[end].above(rear, front, bound))
            upto = end + 1
            while upto < after and self._leaves[upto].time[0] <= front:  # rows of one instant may be in several
                found.append(self._leaves[upto].above(rear, front, bound))
                upto += 1
        level = 0
        while begin < end:
            if begin & 1:
                found.append(self._levels[level][begin].above(bound))
                begin += 1
            if begin < end and end & 1:
                end -= 1
                found.append(self._levels[level][end].above(bound))
            begin, end, level = begin >> 1, end >> 1, level + 1
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def forget(self, horizon: Instant) -> None:
        """No lookup reaches to or below ``horizon`` any more."""
        while self._first < self._next and self._leaves[self._first].time[-1] <= horizon:
            del self._leaves[self._first]
            self._first += 1
        for level, blocks in enumerate(self._levels):
            for number in [number for number in blocks if (number + 1) << level <= self._first]:
                del blocks[number]

    def _wholly_outside(self, begin: int, end: int, rear: Instant) -> int:
        """How many leaves from ``begin`` on end at or before ``rear``: bisection."""
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if self._leaves[middle].time[-1] <= rear:
                low = middle + 1
            else:
                high = middle
        return low - begin

    def _complete(self, leaf: _Leaf) -> None:
        """A leaf is full: it becomes a block, and so does every wider interval that ends with it."""
        block = _best_of_each(leaf.value, leaf.key)
        number, level = self._next, 0
        self._next += 1
        self._levels[0][number] = block
        while number & 1 and number - 1 in self._levels[level]:
            before = self._levels[level][number - 1]
            block = _best_of_each(np.concatenate([before.value, block.value]), np.concatenate([before.key, block.key]))
            number, level = number >> 1, level + 1
            if level == len(self._levels):
                self._levels.append({})
            self._levels[level][number] = block


def _best_of_each(value: Ints, key: Ints) -> _Block:
    order = np.lexsort([value, key])
    last = np.append(grouped.run_starts(key[order])[1:], len(key)) - 1
    best = order[last]
    best = best[np.argsort(value[best], kind="stable")]
    return _Block(value[best], key[best])
