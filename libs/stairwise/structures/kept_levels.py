"""The levels of a collective index that are kept up to date: as fine as their number allows.

answers     the keys whose mark at the level for a threshold is above a bound
requires    marks whose times only grow
update      O(1) a batch and level; what a batch touched is looked at when the level is next asked
lookup      O(log² K + answer), and O(log K) amortised for each key that was touched since the level was last asked
space       24 bytes a key and level in use, of which there are at most ``MOST_LEVELS``
order       that of the substreams
source      seed 004 section 4.1: it keeps O(p log N) levels and leaves the choice of p and of levels open

A level begins to be kept when it is first asked for. Where more thresholds are asked than levels may be kept, levels
are made coarser: with half of p, neighbours fall together, and a threshold is answered by a level further below it.
That gives more candidates and is still a superset. Where few thresholds are asked again, levels become finer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.structures.index_levels import FINE, IndexLevel, level_for
from stairwise.structures.sorted_runs import SortedRuns

MOST_LEVELS = 24
"""Levels that are kept at a time."""
EPOCH = 4096
"""Lookups after which it is seen whether levels may be finer."""
_MOST_STALE = 64
"""Batches that a level may lie behind; then all keys are looked at."""

Put = Callable[[IndexLevel, SortedRuns, Ints], None]
"""Writes the marks of keys at a level."""


class _Kept:
    def __init__(self) -> None:
        self.runs = SortedRuns()
        self.stale: list[Ints] | None = None
        """The keys that were touched since it was last asked; None: all."""


class KeptLevels:
    """Levels by what was asked of late."""

    def __init__(self, p: int = FINE) -> None:
        self._finest = p
        self.p = p
        """How fine levels are now: each size has so many."""
        self._kept: dict[IndexLevel, _Kept] = {}
        """The one that was asked last comes last."""
        self._asked: dict[IndexLevel, int] = {}
        """Of this epoch: thresholds by the finest level that answers them."""
        self._lookups = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size_bytes(self) -> int:
        return sum(kept.runs.size_bytes for kept in self._kept.values())

    def describe(self) -> str:
        """How fine the levels are, and why."""
        asked = f"{len(self._asked)} would be the finest for what {self._lookups} lookups asked"
        return f"p = {self.p} and {len(self)} levels of at most {MOST_LEVELS}, {asked}"

    def touch(self, key: Ints) -> None:
        """Rows of these keys came."""
        for kept in self._kept.values():
            if kept.stale is not None:
                kept.stale.append(key)
                if len(kept.stale) > _MOST_STALE:
                    kept.stale = None

    def clear(self) -> None:
        self._kept.clear()

    def runs(self, least: int, keys: int, put: Put) -> SortedRuns:
        """The level for a threshold, brought up to date by ``put``; there are so many keys."""
        self._note(least)
        level = level_for(least, self.p)
        kept = self._kept.pop(level, None)
        if kept is None:
            self._make_room()
            level = level_for(least, self.p)
            kept = self._kept.pop(level, None) or _Kept()
        self._kept[level] = kept
        if kept.stale is None or kept.stale:
            put(level, kept.runs, np.arange(keys) if kept.stale is None else _each(kept.stale, keys))
            kept.stale = []
        return kept.runs

    def _note(self, least: int) -> None:
        self._lookups += 1
        if self._lookups > EPOCH:
            self._set_p(max(self.p, self._affordable()))
            self._asked.clear()
            self._lookups = 1
        self._asked[level_for(least, self._finest)] = least

    def _make_room(self) -> None:
        """One more level is asked for."""
        if len(self._kept) < MOST_LEVELS:
            return
        self._set_p(min(self.p, self._affordable()))
        while len(self._kept) >= MOST_LEVELS:
            del self._kept[next(iter(self._kept))]

    def _affordable(self) -> int:
        """How fine levels may be for what was asked in this epoch."""
        p = self._finest
        while p > 1 and len({level_for(least, p) for least in self._asked.values()}) > MOST_LEVELS:
            p //= 2
        return p

    def _set_p(self, p: int) -> None:
        if p != self.p:
            self.p = p
            self._kept.clear()


def _each(parts: list[Ints], keys: int) -> Ints:
    """Every key of these once; each part has a key once."""
    if len(parts) == 1:
        return parts[0]
    is_there = np.zeros(keys, np.bool_)
    for part in parts:
        is_there[part] = True
    return np.flatnonzero(is_there)
