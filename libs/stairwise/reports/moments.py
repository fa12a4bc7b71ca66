"""The moments at which a query is evaluated, by the block.

    grid of one window      10         20         30
    rows that report             13·0 13·1
    moments                 10   13·0 13·1  20    30
    with levels             10/0            20/0 20/1  30/0       one per level that is due

A moment has a time, an ordinal (0 but for reports at rows of one instant) and a level (0 but for windows that have
levels). Each is one cell of the evaluation; the moments of one time and ordinal make one report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.windows.spec import MultiWindow


@dataclass(frozen=True)
class Moments:
    times: Ints
    ordinals: Ints
    levels: Ints

    @staticmethod
    def of(times: Ints, ordinals: Ints | None = None) -> Moments:
        """Without levels; times alone have one report each."""
        zeros = np.zeros(len(times), np.int64)
        return Moments(times, zeros if ordinals is None else ordinals, zeros)

    def __len__(self) -> int:
        return len(self.times)

    def place_of(self, times: Ints, ordinals: Ints) -> Ints:
        """For moments that ascend, the first of these at or behind each, or how many there are."""
        start, stop = (np.searchsorted(self.times, times, side=side) for side in ("left", "right"))
        if not self.ordinals.any():
            return np.where((start < stop) & (ordinals > 0), stop, start)
        instant = np.searchsorted(self.times, self.times, side="left")
        width = 1 + max(int(self.ordinals.max()), int(ordinals.max(initial=0)))
        inside = np.searchsorted(instant * width + self.ordinals, start * width + ordinals)
        return np.clip(inside, start, stop)

    def __getitem__(self, part: slice) -> Moments:
        return Moments(self.times[part], self.ordinals[part], self.levels[part])

    def reports(self) -> Ints:
        """For each moment, the number of its report, from 0."""
        if not len(self):
            return np.zeros(0, np.int64)
        begins = (np.diff(self.times) != 0) | (np.diff(self.ordinals) != 0)
        return np.concatenate(([0], np.cumsum(begins)))


def merged(grid: Iterable[Ints], row_times: Ints, row_ordinals: Ints) -> Iterator[Moments]:
    """The union of the times of grids, in sorted blocks, and the places of rows that report, in order."""
    taken = 0
    for block in grid:
        upto = int(np.searchsorted(row_times, block[-1], side="right"))
        yield _union(block, row_times[taken:upto], row_ordinals[taken:upto])
        taken = upto
    if taken < len(row_times):
        yield _union(np.zeros(0, np.int64), row_times[taken:], row_ordinals[taken:])


def _union(grid: Ints, row_times: Ints, row_ordinals: Ints) -> Moments:
    if not len(row_times):
        return Moments(grid, np.zeros(len(grid), np.int64), np.zeros(len(grid), np.int64))
    times = np.concatenate([grid, row_times])
    ordinals = np.concatenate([np.zeros(len(grid), np.int64), row_ordinals])
    order = np.lexsort([ordinals, times])
    times, ordinals = times[order], ordinals[order]
    new = np.concatenate(([True], (np.diff(times) != 0) | (np.diff(ordinals) != 0)))
    return Moments(times[new], ordinals[new], np.zeros(int(new.sum()), np.int64))


def by_level(moments: Moments, window: MultiWindow) -> Moments:
    """Each moment once for every level that is due then, finest first."""
    slides = np.array([level.slide for level in window.levels])
    is_due = moments.times[:, None] % slides == 0
    at, level = np.nonzero(is_due)
    return Moments(moments.times[at], moments.ordinals[at], level.astype(np.int64))


def pieces(moments: Moments, work: Ints, limit: int) -> Iterator[slice]:
    """Cut moments into runs of about ``limit`` work each, never inside a report."""
    if not len(moments):
        return
    report = moments.reports()
    per_report = np.bincount(report, weights=work + 1)
    run = (np.cumsum(per_report) // limit).astype(np.int64)[report]
    edges = np.flatnonzero(np.diff(run)) + 1
    bounds = [0, *edges.tolist(), len(moments)]
    for i in range(len(bounds) - 1):
        yield slice(bounds[i], bounds[i + 1])
