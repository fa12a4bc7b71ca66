"""MIN and MAX by base or landmark intervals: whichever costs less for what is asked and what comes in.

answers     MIN and MAX, as B-INT does
requires    associative (distributive or algebraic)
update      that of B-INT; O(γ) more a row while landmarks are kept for γ classes of width
lookup      O(1) an interval while its class has landmarks, else that of B-INT
space       that of B-INT, and 8 + 24γ bytes more a slot while landmarks are kept
order       stream order within a key
source      seed 004 section 1.2: what is asked often is worked out at updates, what is asked seldom at lookups

    lookups · SAVED  against  rows · γ           counted since as many rows came in as are kept

Base intervals are always there. Landmarks are added when the lookups would have been worth them, with the rows that
are kept counted in since they need them too; they are given up when lookups are worth half of what they cost.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.base_intervals import BaseIntervals
from stairwise.structures.contract import Arrivals, Intervals, Move
from stairwise.structures.landmark_intervals import LandmarkIntervals, levels_of
from stairwise.structures.substreams import Substreams

SAVED = 2000
"""To keep a class of landmarks for so many rows costs what they save at one lookup, about 140 µs."""
MOST_CLASSES = 4
MOST_ROWS = 1 << 18
"""Landmarks of more rows would take too long to make while a lookup waits, and too much room."""
EPOCH = 1 << 17
"""Rows over which lookups are counted, at least."""


class ExtremeIntervals:
    """The greatest (or the least) value of any interval."""

    def __init__(self, *, largest: bool) -> None:
        self._largest = largest
        self._base = BaseIntervals(largest=largest)
        self._landmarks: LandmarkIntervals | None = None
        self._size = 0
        self._rows = 0
        """Rows that came in this epoch."""
        self._lookups = 0
        self._asked: Counter[int] = Counter()
        """By class, how many lookups of this epoch had an interval of it."""

    @property
    def nothing(self) -> np.int64:
        """The answer for no rows, and the value of a NULL."""
        return self._base.nothing

    @property
    def size_bytes(self) -> int:
        return self._base.size_bytes + (0 if self._landmarks is None else self._landmarks.size_bytes)

    def move(self, move: Move) -> None:
        self._size = move.size
        self._base.move(move)
        if self._landmarks is not None:
            self._landmarks.move(move)

    def update(self, substreams: Substreams, arrivals: Arrivals, values: Ints) -> None:
        """Add a batch: the value of every row, in the order of the batch."""
        self._base.update(arrivals, values)
        if self._landmarks is not None:
            self._landmarks.update(arrivals, values)
        self._rows += len(arrivals)
        if self._rows < EPOCH or self._rows < len(substreams):
            return
        if self._landmarks is not None and 2 * self._worth < self._rows * len(self._landmarks.levels):
            self._landmarks = None
        self._rows = self._lookups = 0
        self._asked.clear()

    def lookup(self, substreams: Substreams, intervals: Intervals, *, has_room: bool = True) -> Ints:
        """The best value of each interval. ``has_room``: may landmarks be made if they pay?"""
        levels = levels_of(intervals)
        self._lookups += 1
        self._asked.update(levels)
        if levels and has_room and (self._landmarks is None or not levels <= self._landmarks.levels):
            self._choose(substreams, levels)
        if self._landmarks is not None and levels <= self._landmarks.levels:
            return self._landmarks.lookup(intervals)
        return self._base.lookup(intervals)

    def describe(self) -> str:
        """Which intervals answer now, and why."""
        counted = f"{self._lookups} lookups and {self._rows} rows were counted"
        if self._landmarks is None:
            return f"B-INT, landmarks pay from a lookup for {SAVED} rows and class of width on: {counted}"
        classes = ", ".join(f"{1 << level} to {(2 << level) - 1}" for level in sorted(self._landmarks.levels))
        return f"L-INT for intervals of {classes} rows, else B-INT: {counted}, landmarks pay"

    @property
    def _worth(self) -> int:
        """For how many rows a class of landmarks would have been worth its cost."""
        return self._lookups * SAVED

    def _choose(self, substreams: Substreams, levels: frozenset[int]) -> None:
        """Keep landmarks for what is asked most, if they pay and would have answered this lookup."""
        wanted = frozenset(level for level, _ in self._asked.most_common(MOST_CLASSES))
        kept = len(substreams)
        if not levels <= wanted or kept > MOST_ROWS or self._worth < (self._rows + kept) * len(wanted):
            return
        self._landmarks = LandmarkIntervals(wanted, largest=self._largest)
        self._landmarks.move(Move.to_size(self._size))
        everything = substreams.everything()
        self._landmarks.update(everything, self._base.values(everything.slot))
