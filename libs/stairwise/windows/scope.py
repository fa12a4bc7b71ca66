"""Which rows a window holds at τ: one pure function per kind (seed 002 section 3, seed 003 section III).

A scope is a half-open interval of event time, ``(rear, front]``, so that the rows it holds are one slice of
the sorted timestamps:

    rows   ──●─────●────●───●───●─────●──●──────●────────▶ time
                     (──────────────────────]───────τ
                     rear               front  lag

    TimeWindow         (τ−d−w, τ−d]          half-filled: the rear is never before the query's horizon h
    LandmarkWindow     (t1−1, min(τ, t2)]    either bound may be open; RETAIN n keeps the last n rows of it
    RowsWindow         the last n rows of the stream, whatever their times
    PartitionedWindow  the last n rows of each partition
    MultiWindow        per level k (τ−rk, τ]; the levels are nested, each adds one step beyond the finer one

                               (τ−r2        τ−r1     τ−r0         τ]
        step 0                                         (───────────]
        step 1                                (────────]
        step 2                   (────────────]
        level 2 = steps 0 ∪ 1 ∪ 2

``horizon`` is where the history begins that the query can see: rows at or below it are in no scope.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.windows.spec import LandmarkWindow, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow

Times = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]


class Scope(NamedTuple):
    """The instants t with ``rear`` < t ≤ ``front``; empty where the rear has reached the front."""

    rear: Instant
    front: Instant

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, int) and self.rear < instant <= self.front

    @property
    def is_empty(self) -> bool:
        return self.rear >= self.front

    def rows(self, times: Times) -> slice:
        """The positions it holds in timestamps that are sorted."""
        start, stop = np.searchsorted(times, (self.rear, self.front), side="right")
        return slice(int(start), max(int(start), int(stop)))


class LevelScope(NamedTuple):
    """One level of a multi-granular window with what it holds at a report time."""

    level: int
    scope: Scope


def time_scope(window: TimeWindow, tau: Instant, horizon: Instant = DAWN) -> Scope:
    """(τ−d−w, τ−d], cut at the horizon."""
    front = tau - window.lag
    return Scope(max(front - window.range, horizon), front)


def time_scopes(window: TimeWindow, taus: Times, horizon: Instant = DAWN) -> tuple[Times, Times]:
    """The rears and fronts of a window at many report times at once."""
    fronts = taus - window.lag
    reach = min(window.range, DUSK)  # keeps τ−w inside 64 bits
    return np.maximum(fronts - reach, horizon), fronts


def landmark_scope(window: LandmarkWindow, tau: Instant, horizon: Instant = DAWN) -> Scope:
    """[t1, min(τ, t2)], an open bound reaching as far as there are rows. RETAIN is ``retained``."""
    rear = horizon if window.start is None else max(window.start - 1, horizon)
    return Scope(rear, tau if window.end is None else min(tau, window.end))


def retained(window: LandmarkWindow, rows: slice) -> slice:
    """Of the slice that a landmark's scope holds, the last n rows where it says RETAIN n ROWS."""
    if window.retain is None:
        return rows
    return slice(max(rows.start, rows.stop - window.retain), rows.stop)


def rows_scope(window: RowsWindow, upto: int, visible: int = 0) -> slice:
    """The last n rows of a stream whose first ``upto`` rows have passed.

    Positions count from the stream's first row; ``visible`` is the first position above the horizon.
    """
    return slice(min(upto, max(upto - window.rows, visible)), upto)


def partitioned_scope(window: PartitionedWindow, codes: npt.NDArray[np.intp]) -> Positions:
    """The positions, ascending, of the last n rows of each partition.

    ``codes`` gives for each row that has passed, in stream order, the number of its partition.
    """
    if len(codes) == 0:
        return np.empty(0, dtype=np.intp)
    by_partition = np.argsort(codes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(codes[by_partition])), len(codes) - 1)
    sizes = np.diff(ends, prepend=-1)
    rank_from_end = np.repeat(ends, sizes) - np.arange(len(codes))
    return np.sort(by_partition[rank_from_end < window.rows])


def level_scope(window: MultiWindow, level: int, tau: Instant, horizon: Instant = DAWN) -> Scope:
    """What one level holds when it reports at τ."""
    return Scope(max(tau - window.levels[level].range, horizon), tau)


def due_levels(window: MultiWindow, tau: Instant, horizon: Instant = DAWN) -> tuple[LevelScope, ...]:
    """The levels that report at τ, finest first. Of CONTINUOUS HORIZON use ``horizon_scope``."""
    return tuple(
        LevelScope(k, level_scope(window, k, tau, horizon))
        for k, level in enumerate(window.levels)
        if tau % level.slide == 0
    )


def level_steps(window: MultiWindow, level: int, tau: Instant, horizon: Instant = DAWN) -> tuple[Scope, ...]:
    """The disjoint steps, finest first, that make up a level: WEIGHTED BY and RECURRING go by them."""
    fronts = [tau, *(tau - finer.range for finer in window.levels[:level])]
    return tuple(
        Scope(max(tau - step.range, horizon), max(front, horizon))
        for step, front in zip(window.levels[: level + 1], fronts, strict=True)
    )


def horizon_scope(window: MultiWindow, tau: Instant, horizon: Instant = DAWN) -> Scope:
    """(τ−h, τ] of CONTINUOUS HORIZON h, reported at every granule."""
    return Scope(max(tau - _reach(window), horizon), tau)


def horizon_steps(window: MultiWindow, tau: Instant, horizon: Instant = DAWN) -> tuple[Scope, ...]:
    """Its steps: those of the first level that covers h, the last one cut at τ−h."""
    reach = _reach(window)
    covering = next(k for k, level in enumerate(window.levels) if level.range >= reach)
    return level_steps(window, covering, tau, max(tau - reach, horizon))


def _reach(window: MultiWindow) -> Duration:
    if window.horizon is None:
        raise ValueError("a multi-granular window without CONTINUOUS HORIZON reports by levels")
    return window.horizon
