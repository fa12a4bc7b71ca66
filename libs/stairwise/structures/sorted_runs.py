"""Keys by a stamp that only ever grows: which keys have a stamp above a bound?

answers     the keys whose stamp is above a bound
update      O(log K) amortised a key that changes
lookup      O(log² K + answer): a search in each run, and what lies above the bound
space       at most twice the entries of the keys that changed since the last merge
order       a key's stamps must not fall
source      in place of the search trees of seed 004 section 4.1.1: arrays, merged as they grow

    runs     ████████████████   ██████   ██  █      each sorted by stamp; a new one for each batch of changes,
                                                    merged while the one before is not twice as long

An entry is stale when its key has another stamp by now. Since stamps only grow, no entry is ever right again
that was stale once, and no key is found twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, Instant
from stairwise.structures.contract import grown


class _Run(NamedTuple):
    stamp: Ints
    key: Ints


class SortedRuns:
    """The current stamp of every key, and the keys in order of it."""

    def __init__(self) -> None:
        self._stamp: Ints = np.empty(0, np.int64)
        self._runs: list[_Run] = []

    @property
    def size_bytes(self) -> int:
        return self._stamp.nbytes + sum(run.stamp.nbytes + run.key.nbytes for run in self._runs)

    def put(self, key: Ints, stamp: Ints, keys: int) -> None:
        """These keys, each once, have these stamps now; DAWN for a key that has none. ``keys`` there are in all."""
        known = len(self._stamp)
        if keys > known:
            self._stamp = grown(self._stamp, max(keys, 2 * known))
            self._stamp[known:] = DAWN
        changed = self._stamp[key] < stamp
        if not changed.any():
            return
        key, stamp = key[changed], stamp[changed]
        self._stamp[key] = stamp
        order = np.argsort(stamp, kind="stable")
        self._runs.append(_Run(stamp[order], key[order]))
        while len(self._runs) > 1 and len(self._runs[-2].key) <= 2 * len(self._runs[-1].key):
            self._runs.append(self._merged(self._runs.pop(), self._runs.pop()))

    def above(self, bound: Instant) -> Ints:
        """The keys whose stamp is above the bound."""
        found = []
        for run in self._runs:
            at = int(np.searchsorted(run.stamp, bound, side="right"))
            if at < len(run.stamp):
                key = run.key[at:]
                found.append(key[self._stamp[key] == run.stamp[at:]])
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _merged(self, one: _Run, other: _Run) -> _Run:
        stamp, key = np.concatenate([one.stamp, other.stamp]), np.concatenate([one.key, other.key])
        fresh = self._stamp[key] == stamp
        stamp, key = stamp[fresh], key[fresh]
        order = np.argsort(stamp, kind="stable")
        return _Run(stamp[order], key[order])
