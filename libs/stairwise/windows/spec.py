"""Every kind of window as a frozen value, with all defaults filled in. What a window *does* is in ``scope``.

    time ───────────────────────────────────────────────────────▶
             rear                                  front
              (─────────────── range ───────────────]── lag ──▶ τ
              τ−d−w                                τ−d

All lengths and instants are milliseconds; report times are τ ≡ offset (mod slide).
"""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Duration, Instant


@dataclass(frozen=True)
class TimeWindow:
    """``[RANGE w SLIDE b LAG d OFFSET o]``, and TUMBLE and NOW, which are spellings of it: (τ−d−w, τ−d]."""

    range: Duration
    slide: Duration
    lag: Duration = 0
    offset: Duration = 0


@dataclass(frozen=True)
class LandmarkWindow:
    """``[FROM t1 UNTIL t2]``, either bound optional, both inclusive; reports from the first τ ≥ t1 to the first ≥ t2.

    ``retain`` is the n of RETAIN n ROWS, which a landmark without aggregation needs.
    """

    start: Instant | None
    end: Instant | None
    slide: Duration
    retain: int | None = None


@dataclass(frozen=True)
class RowsWindow:
    """``[ROWS n SLIDE m]``: the last n rows of the stream, reporting at every m-th row, or by time."""

    rows: int
    row_slide: int | None
    time_slide: Duration | None = None
    """Exactly one of the two slides is set."""


@dataclass(frozen=True)
class PartitionedWindow:
    """``[PARTITION BY a, c ROWS n SLIDE b]``: the last n rows of each partition, reporting by time."""

    keys: tuple[str, ...]
    rows: int
    slide: Duration


@dataclass(frozen=True)
class Level:
    range: Duration
    slide: Duration


@dataclass(frozen=True)
class MultiWindow:
    """``[RANGES r2, r1, r0 SLIDES s2, s1, s0]``: ``levels[0]`` is the finest (seed 003)."""

    levels: tuple[Level, ...]
    horizon: Duration | None = None
    """Of CONTINUOUS HORIZON h: then (τ−h, τ] is reported at every granule instead of the levels."""
    weights: tuple[float, ...] | None = None
    """Of WEIGHTED BY: one per level, finest first, for what that level adds beyond the finer one."""
    granule: Duration = 1000


@dataclass(frozen=True)
class RelationWindow:
    """A table in FROM: of each key the last update. It has no report times of its own.

    ``retroactive``: the updates up to τ count at every report. Otherwise (a non-retroactive relation of seed 001)
    a row is joined with the updates up to its own time, and later ones leave that as it is.
    """

    keys: tuple[str, ...]
    retroactive: bool = True

    @property
    def latest(self) -> PartitionedWindow:
        """The last row of each key."""
        return PartitionedWindow(self.keys, 1, 1)


Window = TimeWindow | LandmarkWindow | RowsWindow | PartitionedWindow | MultiWindow | RelationWindow


def counts_rows(window: Window | None) -> bool:
    """Does the window hold a number of rows, so that filtering below it would change what it holds?"""
    if isinstance(window, LandmarkWindow):
        return window.retain is not None
    return isinstance(window, RowsWindow | PartitionedWindow | RelationWindow)
