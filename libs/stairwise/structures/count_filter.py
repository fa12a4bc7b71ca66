"""CI-COUNT: the keys that have many rows in a recent window, without looking at the others.

answers     {k : COUNT(window of k) ≥ n}, for a window by time that ends with the newest row
requires    COUNT
update      that of ``kept_levels``; the times are those of ``substreams``
lookup      that of ``kept_levels``
space       that of ``kept_levels``
order       stream order within a key
error       a superset; every key in it has more than n · (1 − 2/p) rows in the window
source      seed 004 section 4.1

The seed keeps all O(p log N) levels up to date. Here those are that are asked: marks can be read from the times that
are kept anyway.
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, Instant
from stairwise.structures.contract import Arrivals
from stairwise.structures.index_levels import FINE, IndexLevel
from stairwise.structures.kept_levels import KeptLevels
from stairwise.structures.sorted_runs import SortedRuns
from stairwise.structures.substreams import Substreams


class CountFilter:
    """Keys by how many rows they have."""

    def __init__(self, substreams: Substreams, p: int = FINE) -> None:
        self._substreams = substreams
        self.levels = KeptLevels(p)

    @property
    def size_bytes(self) -> int:
        return self.levels.size_bytes

    def update(self, arrivals: Arrivals) -> None:
        """Rows were added to the substreams."""
        if len(self.levels) and len(arrivals):
            self.levels.touch(arrivals.touched())

    def lookup(self, least: int, rear: Instant) -> Ints:
        """The keys that may have ``least`` rows or more (at least one) after ``rear``: none that has is missing."""
        return self.levels.runs(least, self._substreams.keys, self._put).above(rear)

    def _put(self, level: IndexLevel, runs: SortedRuns, key: Ints) -> None:
        first, end = self._substreams.ends(key)
        mark = level.marks(end) - 1
        kept = mark >= first
        time = self._substreams.times(key, np.maximum(mark, first))
        runs.put(key, np.where(kept, time, DAWN), self._substreams.keys)
