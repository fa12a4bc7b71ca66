"""Bisection in many rings: for each key a search in its own part of one array.

answers     the first position above a bound, in each of many rings
requires    values that do not fall along a ring
lookup      O(log n) for each, n positions of its ring
space       none of its own
order       that of the rings
source      windows by time, which seed 004 leaves to its full version, as positions (``substreams``)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.compiled_loops import rank


@dataclass(frozen=True)
class Rings:
    """One ring for each search: where it lies, and the positions [first, end) that count in it."""

    start: Ints
    mask: Ints
    first: Ints
    end: Ints

    def rank(self, column: Ints, bound: Ints) -> Ints:
        """The first position whose value is above ``bound``, ``end`` where none is; values grow along a ring."""
        found = np.empty_like(self.first)
        rank(column, self.start, self.mask, self.first, self.end, bound, found)
        return found


def rank_of(column: Ints, start: int, mask: int, first: int, end: int, bound: int) -> int:
    """One search, in the one or two pieces that the positions of a ring lie in."""
    turn = min(end, (first | mask) + 1)
    at = start + (first & mask)
    found = first + int(column[at : at + turn - first].searchsorted(bound, side="right"))
    if found == turn < end:
        found += int(column[start : start + end - turn].searchsorted(bound, side="right"))
    return found
