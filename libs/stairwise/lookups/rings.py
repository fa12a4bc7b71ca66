"""Bisection in many rings at once: for each key a search in its own part of one array.

answers     the first position above a bound, in each of many rings
requires    values that do not fall along a ring
lookup      O(log n) steps for all searches together, n positions of the longest ring
space       none of its own
order       that of the rings
source      windows by time, which seed 004 leaves to its full version, as positions (``substreams``)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stairwise.expressions.views import Ints

_FEW = 4
"""So few searches are quicker one by one."""


@dataclass(frozen=True)
class Rings:
    """One ring for each search: where it lies, and the positions [first, end) that count in it."""

    start: Ints
    mask: Ints
    first: Ints
    end: Ints

    def rank(self, column: Ints, bound: Ints) -> Ints:
        """The first position whose value is above ``bound``, ``end`` where none is; values grow along a ring.

        Steps are halved for all searches together, as many times as the longest ring needs.
        """
        if len(self.first) <= _FEW:
            rings = zip(*(a.tolist() for a in (self.start, self.mask, self.first, self.end, bound)), strict=True)
            return np.array([rank_of(column, *ring) for ring in rings], np.int64)
        before, last = self.first - 1, self.end - 1
        longest = int((last - before).max(initial=0))
        step = 1 << longest.bit_length()
        while step := step >> 1:
            candidate = before + step
            np.minimum(candidate, last, out=candidate)  # a ring that is empty stays before its first position
            slot = candidate & self.mask
            slot += self.start
            np.putmask(before, column.take(slot, mode="clip") <= bound, candidate)
        return before + 1


def rank_of(column: Ints, start: int, mask: int, first: int, end: int, bound: int) -> int:
    """One search, in the one or two pieces that the positions of a ring lie in."""
    turn = min(end, (first | mask) + 1)
    at = start + (first & mask)
    found = first + int(column[at : at + turn - first].searchsorted(bound, side="right"))
    if found == turn < end:
        found += int(column[start : start + end - turn].searchsorted(bound, side="right"))
    return found
