"""The fewest groups that a pool of windows can have: a minimum chain cover, by matching.

    answers        a smallest set of chains, and as many windows no two of which nest: the proof that it is smallest
    requirement    none on the aggregate
    cost           O(n p) for a phase, n different windows, p coarser paces each; a few phases (at most about √n)
    order          none
    from           Dilworth's theorem; Fulkerson's reduction to bipartite matching; Hopcroft and Karp's phases.
                   Seed 000 section 6 names the smallest number of groups as an open question

A chain cover of n windows with k chains has n − k links, and a set of links is a cover iff every window has at most
one link up and at most one down: a matching between windows (as the lower end of a link) and windows (as the upper
end). So the largest matching is the smallest cover. There may be n²/2 pairs, yet none is ever listed. Windows of one
pace stand by range, and what a window can link up to is, in each coarser pace, everything from some place on:

    pace SLIDE 2     4   6   8  10  12  14                   lower end: RANGE 8 SLIDE 2
    pace SLIDE 4         6   8      12      20               its uppers: all from 10 on in SLIDE 2,
    pace SLIDE 6             8  10          20  30                       all from 8 on in SLIDE 4 and 6

Hence what a breadth-first search has seen of a pace is again everything from some place on, one number; and each of
its layers is a run, from whose end the depth-first search takes window after window. A phase asks each window once
about each coarser pace. The matching starts from the groups of ``subsume_nearest``, which are close to the fewest.

Windows that can ride on others (``piggyback``) need no place in a chain, so the fewest groups are the fewest chains of
carriers: at least so many, since a window that nothing of its own range can carry is a carrier in every grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from stairwise.subsumption.piggyback import Grouped, collapse
from stairwise.subsumption.relation import Chain, by_size, canonical, is_subsumable, nested_paces, pace
from stairwise.subsumption.subsume import subsume_nearest
from stairwise.windows.spec import TimeWindow

_FREE = -1


@dataclass(frozen=True)
class Cover:
    """Chains that hold every window once, and windows of which no two nest; there are as many of either."""

    chains: list[Chain]
    antichain: list[TimeWindow]


def minimum_groups(pool: Iterable[TimeWindow]) -> list[Grouped]:
    """The fewest groups of a pool: whatever can ride rides, and the carriers are covered by the fewest chains."""
    collapsed = collapse(pool)
    return collapsed.expand(minimum_cover(collapsed.carriers).chains)


def minimum_cover(pool: Iterable[TimeWindow]) -> Cover:
    """The fewest chains that hold every window, none riding. Windows that are given more than once count once."""
    matching = _Matching(sorted({canonical(window) for window in pool}, key=lambda w: (pace(w), w.range)))
    matching.start()
    while matching.augment(layers := matching.layers()):
        pass
    return Cover(matching.chains(), matching.antichain(layers))


@dataclass
class _Layers:
    """What one breadth-first search found, from the windows without a link up along alternating paths."""

    runs: list[dict[int, int]]
    """For each layer and pace the end of the run of uppers first seen there; taking from a run lowers its end."""
    starts: list[int]
    """The windows without a link up."""
    seen_from: list[int]
    """For each pace the place from which on all its windows are seen as uppers."""
    lowers: list[int]
    """All windows seen as lower ends."""
    complete: bool
    """Was an upper without a link down among the last?"""


class _Matching:
    """Links between windows numbered by pace, then range. ``up`` and ``down`` are the links of each, or ``_FREE``."""

    def __init__(self, windows: list[TimeWindow]) -> None:
        self.windows = windows
        self.up = [_FREE] * len(windows)
        self.down = [_FREE] * len(windows)
        self.ends: list[int] = []
        """For each pace the place behind its last window."""
        self.uppers: list[list[tuple[int, int]]] = [[] for _ in windows]
        """For each window the paces it can link up into, and the place from which on it can."""
        self._lay_out()

    def _lay_out(self) -> None:
        runs = {p: [w.range for w in run] for p, run in groupby(self.windows, key=pace)}
        ranges = [np.array(run, dtype=np.int64) for run in runs.values()]
        firsts = np.cumsum([0, *map(len, ranges)]).tolist()
        self.ends = firsts[1:]
        for p, (first, end) in enumerate(pairwise(firsts)):
            for place in range(first, end - 1):
                self.uppers[place].append((p, place + 1))
        for finer, coarser in zip(*(places.tolist() for places in nested_paces(list(runs))), strict=True):
            places = firsts[coarser] + np.searchsorted(ranges[coarser], ranges[finer])
            for lower, place in enumerate(places.tolist(), firsts[finer]):
                if place < self.ends[coarser]:
                    self.uppers[lower].append((coarser, place))

    def start(self) -> None:
        """Most links of a largest matching at once: those of the groups that one sweep finds."""
        place = {window: i for i, window in enumerate(self.windows)}
        for group in subsume_nearest(self.windows):
            for lower, upper in pairwise(group):
                if is_subsumable(lower, upper):
                    self._link(place[lower], place[upper])

    def _link(self, lower: int, upper: int) -> None:
        self.up[lower] = upper
        self.down[upper] = lower

    def layers(self) -> _Layers:
        """Breadth first, up to the first layer that has an upper without a link down, or until nothing new is seen."""
        starts = [lower for lower, upper in enumerate(self.up) if upper == _FREE]
        found = _Layers([], starts, list(self.ends), list(starts), complete=False)
        seen_from, layer = found.seen_from, starts
        while layer and not found.complete:
            run_ends: dict[int, int] = {}
            below: list[int] = []
            for lower in layer:
                for p, place in self.uppers[lower]:
                    if place < seen_from[p]:
                        run_ends.setdefault(p, seen_from[p])
                        below += self.down[place : seen_from[p]]
                        seen_from[p] = place
            layer = [lower for lower in below if lower != _FREE]
            found.complete = len(layer) < len(below)
            found.runs.append(run_ends)
            found.lowers += layer
        return found

    def augment(self, layers: _Layers) -> bool:
        """Depth first from every start, along a set of shortest paths that share no window; False if there is none."""
        if not layers.complete:
            return False
        for start in layers.starts:
            self._augment_from(start, layers.runs)
        return True

    def _augment_from(self, start: int, runs: list[dict[int, int]]) -> None:
        """An alternating path from ``start`` to an upper without a link down, and every link on it turned over."""
        path = [(start, self._uppers_left(start, runs[0]))]
        taken: list[int] = []
        while path:
            upper = next(path[-1][1], _FREE)
            if upper == _FREE:
                path.pop()
                del taken[-1:]
                continue
            taken.append(upper)
            lower = self.down[upper]
            if lower == _FREE:
                for (lower, _), upper in zip(path, taken, strict=True):
                    self._link(lower, upper)
                return
            if len(path) < len(runs):
                path.append((lower, self._uppers_left(lower, runs[len(path)])))
            else:
                taken.pop()

    def _uppers_left(self, lower: int, run_ends: dict[int, int]) -> Iterator[int]:
        """What ``lower`` can link up to in the next layer. What was tried is off its run: it leads nowhere else."""
        for p, place in self.uppers[lower]:
            while run_ends.get(p, 0) > place:
                run_ends[p] -= 1
                yield run_ends[p]

    def chains(self) -> list[Chain]:
        """What the links make of the windows, in order of the seeds."""
        chains: list[Chain] = []
        for seed in sorted((i for i, lower in enumerate(self.down) if lower == _FREE), key=self._size):
            chain = [seed]
            while (upper := self.up[chain[-1]]) != _FREE:
                chain.append(upper)
            chains.append([self.windows[i] for i in chain])
        return chains

    def antichain(self, layers: _Layers) -> list[TimeWindow]:
        """König: after a search that found no path, the windows seen as lower ends and not as uppers."""
        paces = np.searchsorted(self.ends, layers.lowers, side="right")
        unseen = [i for i, p in zip(layers.lowers, paces.tolist(), strict=True) if i < layers.seen_from[p]]
        return [self.windows[i] for i in sorted(unseen, key=self._size)]

    def _size(self, place: int) -> tuple[int, ...]:
        return by_size(self.windows[place])
