"""CI-COUNT: the keys that have many rows in a recent window, without looking at the others.

answers     {k : COUNT(window of k) ≥ n}, for a window by time that ends with the newest row
requires    COUNT
update      O(log K) amortised a key of the batch and level in use: a mark's time is read, its place in order kept
lookup      O(log² K + answer)
space       24 bytes a key and level in use; the times are those of ``substreams``
order       stream order within a key
error       a superset; every key in it has more than n · (1 − 2/p) rows in the window
source      seed 004 section 4.1

The seed keeps all O(p log N) levels up to date. Here a level begins to be kept when it is first asked for: its
marks can be read from the times that are kept anyway. Levels that nobody has asked for lately are given up.
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, Instant
from stairwise.structures.contract import Arrivals
from stairwise.structures.index_levels import FINE, IndexLevel, level_for
from stairwise.structures.sorted_runs import SortedRuns
from stairwise.structures.substreams import Substreams

MOST_LEVELS = 16
"""Levels that are kept at a time."""


class CountFilter:
    """Keys by how many rows they have."""

    def __init__(self, substreams: Substreams, p: int = FINE) -> None:
        self._substreams = substreams
        self._p = p
        self._levels: dict[IndexLevel, SortedRuns] = {}
        """The one that was asked last comes last."""

    @property
    def size_bytes(self) -> int:
        return sum(level.size_bytes for level in self._levels.values())

    def update(self, arrivals: Arrivals) -> None:
        """Rows were added to the substreams."""
        if self._levels and len(arrivals):
            key = arrivals.touched()
            for level, runs in self._levels.items():
                self._put(level, runs, key)

    def lookup(self, least: int, rear: Instant) -> Ints:
        """The keys that may have ``least`` rows or more (at least one) after ``rear``: none that has is missing."""
        level = level_for(least, self._p)
        runs = self._levels.pop(level, None)
        if runs is None:
            runs = SortedRuns()
            self._put(level, runs, np.arange(self._substreams.keys))
        self._levels[level] = runs
        while len(self._levels) > MOST_LEVELS:
            self._levels.pop(next(iter(self._levels)))
        return runs.above(rear)

    def _put(self, level: IndexLevel, runs: SortedRuns, key: Ints) -> None:
        first, end = self._substreams.ends(key)
        mark = level.marks(end) - 1
        kept = mark >= first
        time = self._substreams.times(key, np.maximum(mark, first))
        runs.put(key, np.where(kept, time, DAWN), self._substreams.keys)
