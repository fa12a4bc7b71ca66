"""SubsumeWindows: a pool of windows into groups, by one sweep (seed 000, Algorithm 1).

    answers        groups: chains of carriers under Definition 1, with riders; few, not always the fewest (``cover``)
    requirement    none on the aggregate
    cost           O(n (log n + p)) for n different windows whose slides have at most p finer paces in the pool
    order          none: the pool is sorted first
    from           seed 000 section 3.2, Algorithm 1, lines 1 to 29

The sweep goes by range, then by slide. A window goes to the end of a group whose last window it can enclose, or rides
on that last window if the ranges are equal; if there is no such group it is the seed of a new one. The seed probes the
last window of one group after another. Here groups are filed under the pace of their last window, each file headed
by its greatest base slide, so that a window looks at one group for each pace that divides its own, never in vain:

    groups ending on     SLIDE 2              SLIDE 3          SLIDE 4
                         base 2, base 1       base 3           base 2, base 1
    <w, 12> looks at     base 2               base 3           base 2

The choice among these is ``Suitability``. ``subsume_windows`` is the seed's algorithm. ``subsume_nearest`` makes fewer
groups of the same pool: whatever can ride is put onto its carrier first, and the rest goes where slides are nearest.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable

from stairwise.schema import Duration
from stairwise.subsumption.piggyback import Grouped, collapse
from stairwise.subsumption.relation import Pace, by_size, canonical, finer_paces, pace
from stairwise.subsumption.suitability import Suitability
from stairwise.windows.spec import TimeWindow


def subsume_windows(pool: Iterable[TimeWindow]) -> list[Grouped]:
    """The groups of a pool by Algorithm 1. Windows that are given more than once count once.

    Each group is sorted by range, then slide; the first window of each range carries the others of that range.
    """
    return _sweep({canonical(window) for window in pool}, Suitability.BASE_SLIDE)


def subsume_nearest(pool: Iterable[TimeWindow]) -> list[Grouped]:
    """The groups of a pool by the same sweep over its carriers, which follow the nearest slide."""
    collapsed = collapse(pool)
    return collapsed.expand(_sweep(collapsed.carriers, Suitability.NEAREST_SLIDE))


def _sweep(windows: Iterable[TimeWindow], suitability: Suitability) -> list[Grouped]:
    windows = sorted(windows, key=by_size)
    finer = finer_paces(windows)
    groups: list[list[TimeWindow]] = []
    carriers: list[TimeWindow] = []
    """The last carrier of each group."""
    ending: defaultdict[Pace, list[tuple[Duration, int]]] = defaultdict(list)
    """Groups by the pace of their last carrier: heaps of (minus base slide, number)."""
    for window in windows:
        own = pace(window)
        heads = [
            (suitability.rank(-base, own.slide // last.slide), number, last)
            for last in (*finer[own], own)
            for base, number in ending[last][:1]
        ]
        if not heads:
            heapq.heappush(ending[own], (-window.slide, len(groups)))
            groups.append([window])
            carriers.append(window)
            continue
        _, number, last = min(heads)
        groups[number].append(window)
        if window.range > carriers[number].range:
            carriers[number] = window
            heapq.heappush(ending[own], heapq.heappop(ending[last]))
    return list(groups)
