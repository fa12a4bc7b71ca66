"""R-INT: running intervals (1, r); any interval is the difference of two of them.

answers     COUNT, SUM, AVG, VARIANCE and STDDEV: sums of integers, and of doubles in exact integer limbs
requires    subtractable
update      O(1) a row and column, in a compiled loop
lookup      O(1) an interval and column: two reads
space       8 bytes a slot and column
order       stream order within a key
source      seed 004 section 3.2, figure 6

A column is what is summed: the values themselves, the non-NULLs, one limb of a double (``aggregates.limbs``).
Columns come on demand: before the first value that needs it, a column was zero all along.

    position     first − 1                first           end − 1
    holds        sum of all before first  that and first  sum of all there ever was
    f(l, r)      column[r − 1] − column[l − 1]

Sums run modulo 2^64. A difference is exact as long as the sum over the interval itself fits, and digits are below
2^32, so intervals of up to 2^31 rows are exact however long the stream has been running: nothing drifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.compiled_loops import run_on
from stairwise.structures.contract import Arrivals, Intervals, Move, grown, moved

_NONE: Ints = np.empty(0, np.int64)


class Summand(NamedTuple):
    """What is summed: a part of a partial aggregate (its count, its sum, ...) and the limb of it."""

    part: int
    limb: int = 0


class RunningIntervals:
    """Running sums of named columns."""

    def __init__(self) -> None:
        self._columns: dict[Summand, Ints] = {}
        self._last: dict[Summand, Ints] = {}
        """Of each key, the sum of all there ever was."""
        self._size = 0

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for kept in (self._columns, self._last) for column in kept.values())

    def move(self, move: Move) -> None:
        self._size = move.size
        for name, column in self._columns.items():
            self._columns[name] = moved(column, move)

    def update(self, arrivals: Arrivals, values: Mapping[Summand, Ints]) -> None:
        """Add a batch: for each column the value of every row, in the order of the batch. A column left out is zero."""
        if not len(arrivals):
            return
        for name in values:
            if name not in self._columns:
                self._columns[name] = grown(_NONE, self._size)
                self._last[name] = _NONE
        for name, column in self._columns.items():
            last = self._last[name]
            if len(last) < arrivals.keys:
                last = self._last[name] = grown(last, 1 << (arrivals.keys - 1).bit_length())
            given = values.get(name)
            values_of = np.zeros(len(arrivals), np.int64) if given is None else given
            run_on(values_of, arrivals.key, arrivals.slot, column, last)

    def lookup(self, intervals: Intervals) -> dict[Summand, Ints]:
        """The sum of each column over each interval."""
        if not self._columns:
            return {}
        left, right = intervals.edges
        found = {}
        for name, column in self._columns.items():
            found[name] = sums = column.take(right, mode="clip")
            sums -= column.take(left, mode="clip")
        return found

    def between(self, left: int, right: int) -> dict[Summand, int]:
        """The sum of each column after one slot of a key and up to another, modulo 2^64."""
        return {name: int(column[right]) - int(column[left]) for name, column in self._columns.items()}
