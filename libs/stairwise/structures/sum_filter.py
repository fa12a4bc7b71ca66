"""CI-SUM: the keys whose values add up to much in a recent window, without looking at the others.

answers     {k : SUM(window of k) ≥ v}, for a window by time that ends with the newest row
requires    values that are not negative; once one was seen there is no answer, and a scan takes its place
update      O(1) a row, and that of ``kept_levels``
lookup      that of ``kept_levels``, and O(log n) for a key that was touched, n rows of the key
space       8 bytes a slot, and that of ``kept_levels``
order       stream order within a key
error       a superset; every key in it has a sum of more than v · (1 − 2/p), less one unit for each of its rows
            where values are fractions
source      seed 004 section 4.2

A value of a counts as a rows of CI-COUNT. They need not be made: the x-th of them lies in the first row at which the
running sum reaches x, which a search in the key's own running sums finds.

    values          3      1      4              running sum  0  3  4  8
    copies        ─┬┬┬─  ──┬──  ─┬┬┬┬─           position 6 of the copies: the row at which it reaches 6, the third
    position       123     4     5678

Fractions are rounded up to units of a power of two, so that sums only seem larger, and no key is missed.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from stairwise.expressions.views import Floats, Ints
from stairwise.schema import DAWN, Instant
from stairwise.structures.compiled_loops import run_on
from stairwise.structures.contract import Arrivals, Move, grown, moved
from stairwise.structures.index_levels import FINE, IndexLevel
from stairwise.structures.kept_levels import KeptLevels
from stairwise.structures.sorted_runs import SortedRuns
from stairwise.structures.substreams import Substreams

_NONE: Ints = np.empty(0, np.int64)
_MOST = 2**62
"""Running sums beyond this could not be told apart from negative ones."""
_UNIT_BITS = 24
"""Bits of a typical value that its number of units has."""


class SumFilter:
    """Keys by the sum of their values. Made before ``substreams`` has rows, and attached to it."""

    def __init__(self, p: int = FINE) -> None:
        self.levels = KeptLevels(p)
        self._running = _NONE
        self._last = _NONE
        """Of each key, the sum of all there ever was."""
        self._added = 0.0
        """All units of all keys: no running sum is larger."""
        self._unit = 1.0
        self._has_unit = False
        self.is_usable = True
        """False from the first value on that is negative or not finite, and when sums have grown too large."""

    @property
    def size_bytes(self) -> int:
        return self._running.nbytes + self._last.nbytes + self.levels.size_bytes

    def move(self, move: Move) -> None:
        self._running = moved(self._running, move)

    def update(self, substreams: Substreams, arrivals: Arrivals, values: Ints | Floats) -> None:
        """Add a batch: the value of every row, in the order of the batch; 0 for a NULL."""
        if not self.is_usable or not len(arrivals):
            return
        units = self._units(values)
        if units is None:
            self._give_up()
            return
        if len(self._last) < arrivals.keys:
            self._last = grown(self._last, 1 << (arrivals.keys - 1).bit_length())
        run_on(units, arrivals.key, arrivals.slot, self._running, self._last)
        self._added += float(units.sum(dtype=np.float64))
        if self._added > _MOST:
            self._give_up()
            return
        if len(self.levels):
            self.levels.touch(arrivals.touched())

    def lookup(self, substreams: Substreams, least: float, rear: Instant) -> Ints | None:
        """The keys whose values after ``rear`` may add up to ``least`` or more: none that does is missing.

        None where the filter cannot tell: it is not usable, or asks for sums that every key has.
        """
        units = math.floor(least / self._unit) if math.isfinite(least) else 0
        if not self.is_usable or not 0 < units < _MOST:
            return None
        return self.levels.runs(units, substreams.keys, partial(self._put, substreams)).above(rear)

    def _give_up(self) -> None:
        self.is_usable = False
        self.levels.clear()

    def _units(self, values: Ints | Floats) -> Ints | None:
        """How many units each value has; None where there is a value that has no number of them."""
        if values.dtype == np.int64:
            return values if not (values < 0).any() else None  # type: ignore[return-value]
        largest = float(values.max(initial=0.0))
        if not math.isfinite(largest) or not (values >= 0).all():
            return None
        if not self._has_unit and largest > 0:
            self._unit, self._has_unit = 2.0 ** max(math.frexp(largest)[1] - _UNIT_BITS, -900), True
        if largest / self._unit > _MOST:
            return None
        return np.ceil(values / self._unit).astype(np.int64)

    def _put(self, substreams: Substreams, level: IndexLevel, runs: SortedRuns, key: Ints) -> None:
        whole = substreams.whole(key)
        rings = substreams.rings(key, before_first=True)
        mark = level.marks(self._running[whole.slots(whole.right - 1)])
        # The mark is in the first row at which they have reached it; if they had before the first, in none.
        row = rings.rank(self._running, mark - 1)
        kept = (mark > 0) & (row >= whole.left)
        time = substreams.times(key, np.maximum(row, whole.left))
        runs.put(key, np.where(kept, time, DAWN), substreams.keys)
