"""When windows report: times aligned to the epoch plus OFFSET, or rows counted from the stream's first.

    SLIDE 60s OFFSET 15s    ├───────●───────────────────────────────────●──────▶
    SLIDE 20s               ●───────────●───────────●───────────●───────────●──▶
    the query over both     ●───────●───●───────────●───────────●───────●───●──▶

A window's report times are a *grid* (one per level where it has levels). A query over several windows reports
at the union of their grids, each side as of its own last report time. Every report time
is reported, however long the stream was silent, so the times are produced lazily in sorted blocks: ten years
of silence under a slide of one second cost no memory.

A row slide has no grid. It reports at rows number m, 2m, 3m, ... of the stream; reports of rows with equal
times are told apart by the row's ordinal among the rows of that time. A report of a grid has ordinal 0.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
)

BLOCK = 65_536
"""How many report times of the finest grid are laid out at once."""


class Moment(NamedTuple):
    """A report's place in time. The ordinal is 0 except between the rows of one instant under a row slide."""

    time: Instant
    ordinal: int = 0


@dataclass(frozen=True)
class Grid:
    """The instants τ ≡ offset (mod slide) with ``first`` ≤ τ ≤ ``last``."""

    slide: Duration
    offset: Duration = 0
    first: Instant = DAWN
    last: Instant = DUSK

    def at_or_after(self, instant: Instant) -> Instant | None:
        instant = max(instant, self.first)
        tau = instant + (self.offset - instant) % self.slide
        return tau if tau <= self.last else None

    def at_or_before(self, instant: Instant) -> Instant | None:
        instant = min(instant, self.last)
        tau = instant - (instant - self.offset) % self.slide
        return tau if tau >= self.first else None

    def between(self, after: Instant, upto: Instant) -> range:
        """Its instants τ with ``after`` < τ ≤ ``upto``, as a lazy range."""
        start = self.at_or_after(after + 1)
        return range(0) if start is None else range(start, min(upto, self.last) + 1, self.slide)

    def covers(self, other: Grid) -> bool:
        """Is every instant of ``other`` one of this grid's? Then a union has no use for ``other``."""
        return (
            other.slide % self.slide == 0
            and (other.offset - self.offset) % self.slide == 0
            and self.first <= other.first
            and self.last >= other.last
        )


def report_grids(window: Window | None) -> tuple[Grid, ...]:
    """A window's report times: one grid, one per level of a multi-granular window, none where rows decide."""
    match window:
        case None | RelationWindow():
            return ()
        case TimeWindow():
            return (Grid(window.slide, window.offset % window.slide),)
        case LandmarkWindow():
            return (_landmark_grid(window),)
        case RowsWindow():
            return () if window.time_slide is None else (Grid(window.time_slide),)
        case PartitionedWindow():
            return (Grid(window.slide),)
        case MultiWindow():
            if window.horizon is not None:
                return (Grid(window.granule),)
            return tuple(Grid(level.slide) for level in window.levels)


def _landmark_grid(window: LandmarkWindow) -> Grid:
    """From the first τ ≥ t1 to the first τ ≥ t2, then none."""
    whole = Grid(window.slide)
    first = DAWN if window.start is None else whole.at_or_after(window.start)
    last = DUSK if window.end is None else whole.at_or_after(window.end)
    return Grid(window.slide, first=DUSK if first is None else first, last=DUSK if last is None else last)


def next_report(windows: Iterable[Window | None], instant: Instant) -> Instant | None:
    """The first report time of any of the windows at or after ``instant``."""
    grids = (grid for window in windows for grid in report_grids(window))
    return min((t for grid in grids if (t := grid.at_or_after(instant)) is not None), default=None)


def last_report(windows: Iterable[Window | None], last_row: Instant) -> Instant:
    """Where a sealed query ends: its first report time at or after its streams' last row.

    A landmark that has not begun by then is not waited for. Where no grid reports any more (only rows decide,
    or all landmarks are over) it is the time of the last row itself.
    """
    grids = (grid for window in windows for grid in report_grids(window))
    begun = (grid for grid in grids if grid.at_or_after(last_row) == _unbounded(grid).at_or_after(last_row))
    return min((t for grid in begun if (t := grid.at_or_after(last_row)) is not None), default=last_row)


def _unbounded(grid: Grid) -> Grid:
    return Grid(grid.slide, grid.offset)


def due(windows: Iterable[Window | None], after: Instant, upto: Instant) -> Iterator[Instant]:
    """The report times of a query over these windows with ``after`` < τ ≤ ``upto``, ascending, each once."""
    for block in due_blocks(windows, after, upto):
        yield from block.tolist()


def due_blocks(windows: Iterable[Window | None], after: Instant, upto: Instant) -> Iterator[npt.NDArray[np.int64]]:
    """The same in sorted arrays of bounded length, none of them empty."""
    return grid_blocks(union(tuple(windows)), after, upto)


def grid_blocks(grids: Iterable[Grid], after: Instant, upto: Instant) -> Iterator[npt.NDArray[np.int64]]:
    """The instants τ of any of the grids with ``after`` < τ ≤ ``upto``, in sorted arrays of bounded length."""
    while True:
        alive = [times for grid in grids if (times := grid.between(after, upto))]
        if not alive:
            return
        start = min(times.start for times in alive)
        end = min(upto, start + (BLOCK - 1) * min(times.step for times in alive))
        arrays = [
            np.arange(times.start, min(times.stop, end + 1), times.step, dtype=np.int64)
            for times in alive
            if times.start <= end
        ]
        yield arrays[0] if len(arrays) == 1 else np.unique(np.concatenate(arrays))
        after = end


def first_of_each(grids: Iterable[Grid], after: Instant, upto: Instant) -> npt.NDArray[np.int64]:
    """For each grid its first instant τ with ``after`` < τ ≤ ``upto``, ascending, each once."""
    return np.array(sorted({times.start for grid in grids if (times := grid.between(after, upto))}), np.int64)


def count_due(grids: Iterable[Grid], after: Instant, upto: Instant) -> int:
    """How many instants τ of any of the grids have ``after`` < τ ≤ ``upto``: told without going through them."""
    total = 0
    counted: list[tuple[range, int]] = []
    """Intersections of grids, with the sign that they are counted by."""
    for grid in without_covered(grids):
        times = grid.between(after, upto)
        found = [(times, 1), *((both, -sign) for known, sign in counted if (both := _common(known, times)))]
        total += sum(sign * len(some) for some, sign in found)
        counted += found
    return total


def _common(one: range, other: range) -> range:
    """The instants that two lists with equal steps have in common, likewise as such a list."""
    divisor = gcd(one.step, other.step)
    if not one or not other or (other.start - one.start) % divisor:
        return range(0)
    step = one.step * other.step // divisor
    turns = (other.start - one.start) // divisor * pow(one.step // divisor, -1, other.step // divisor)
    first = one.start + one.step * (turns % (other.step // divisor))
    low = max(one.start, other.start)
    return range(first + (low - first + step - 1) // step * step, min(one.stop, other.stop), step)


@lru_cache(maxsize=256)
def union(windows: tuple[Window | None, ...]) -> tuple[Grid, ...]:
    """The grids of a query's windows, without those whose every instant another one has."""
    return without_covered({grid for window in windows for grid in report_grids(window)})


def without_covered(grids: Iterable[Grid]) -> tuple[Grid, ...]:
    """The grids without those whose every instant another one has."""
    kept: list[Grid] = []
    endless: dict[Duration, set[Duration]] = {}
    bounded: list[Grid] = []
    for grid in sorted(grids, key=lambda g: (g.slide, g.first, -g.last)):
        if any(grid.slide % slide == 0 and grid.offset % slide in offsets for slide, offsets in endless.items()):
            continue
        if any(finer.covers(grid) for finer in bounded):
            continue
        kept.append(grid)
        if grid.first == DAWN and grid.last == DUSK:
            endless.setdefault(grid.slide, set()).add(grid.offset % grid.slide)
        else:
            bounded.append(grid)
    return tuple(kept)


def row_reports(window: RowsWindow, before: int, count: int) -> npt.NDArray[np.intp]:
    """Which of the next ``count`` rows a row slide reports at, after the first ``before`` rows of the stream.

    Positions count from 0 within those rows; the state then is the last n rows up to and including that one.
    """
    if window.row_slide is None:
        raise ValueError("this window reports by time, not by rows")
    return np.arange(-(before + 1) % window.row_slide, count, window.row_slide, dtype=np.intp)


def ordinals(times: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Each row's place among the rows of its instant; ``times`` is sorted, with every row of its instants."""
    return np.arange(len(times), dtype=np.intp) - np.searchsorted(times, times, side="left")


def moments(grid_times: Iterable[Instant], row_moments: Iterable[Moment]) -> Iterator[Moment]:
    """The union of the reports that grids and row slides ask for; both come in order."""
    merged = heapq.merge((Moment(t) for t in grid_times), row_moments)
    return (moment for moment, _ in groupby(merged))


@dataclass
class Agenda:
    """When one query reports as its streams go by: the grids of its windows, begun by rows, ended by sealing.

    An operator calls ``observe`` for rows as they come in and takes ``blocks`` or ``due`` when the watermark
    has grown. Report times count as passed when they are taken: what was not taken stays due.
    """

    windows: tuple[Window | None, ...]
    passed: Instant = DAWN
    """The last report time taken; at first the point after which the query takes effect."""
    first_row: Instant = DUSK
    last_row: Instant = DAWN

    def observe(self, earliest: Instant, latest: Instant) -> None:
        """Rows of any of the query's streams have come in; these are the extremes of their times."""
        self.first_row = min(self.first_row, earliest)
        self.last_row = max(self.last_row, latest)

    def blocks(self, watermark: Instant) -> Iterator[npt.NDArray[np.int64]]:
        """Every report time that is now final, in sorted arrays; DUSK seals."""
        for block in due_blocks(self.windows, *self._span(watermark)):
            self.passed = int(block[-1])
            yield block

    def due(self, watermark: Instant) -> Iterator[Instant]:
        """The same, one by one."""
        for tau in due(self.windows, *self._span(watermark)):
            self.passed = tau
            yield tau

    def _span(self, watermark: Instant) -> tuple[Instant, Instant]:
        """Report times above the first and up to the second are due: none before the first row is final."""
        if self.first_row > self.last_row:
            return self.passed, self.passed
        upto = last_report(self.windows, self.last_row) if watermark >= DUSK else watermark
        return max(self.passed, self.first_row - 1), upto


BEFORE_ALL = DAWN - 1
"""The report time of a window that has not begun: nothing lies at or before it."""


def at_or_before(grid: Grid, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``Grid.at_or_before`` for many instants at once."""
    times = np.minimum(times, grid.last)
    own = times - (times - grid.offset) % grid.slide
    return np.where(own >= grid.first, own, BEFORE_ALL)
