"""Where time is cut into slices: at the edges that the windows of a signature can have, and nowhere else.

    RANGE 10 SLIDE 4       front       front       front          fronts τ−d and rears τ−d−w are each a progression:
    ──────────────┼─────┼─────┼─────┼─────┼─────┼─────┼──▶        an edge every slide, with a phase of its own
                     rear        rear        rear

    answers        for each row's time the end of its slice: the first edge at or after it
    cost           one pass of vectorised arithmetic where the edges of all windows are a grid; else a search in the
                   sorted edges of the batch's span, or one pass per progression where those would be too many
    order          none
    from           paired windows and merged edges: seed 000 section 2.2

The merged edges of many windows are taken for a grid, of the greatest common divisor of all slides and phases, where
that makes at most twice as many cuts as there are edges. A row in (a, b] between two cuts belongs to the slice that
is named by its end b.

Windows come and go. Rows that are in a slice already cannot be told apart any more, so other cuts hold only above
every row that may have come; the instant from which they hold is a cut itself:

    cuts of era 1   ┼───────┼───────┼───────┤
    cuts of era 2                           ├───┼───┼───┼───┼──▶
                                            └ era 2 begins: a cut of both
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.operators.levels import asked_levels
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.windows.schedule import Grid, without_covered
from stairwise.windows.spec import MultiWindow, TimeWindow

SPARSEST = 2
"""How many times as many cuts as edges a grid may make."""

EDGES_PER_ROW = 4
"""Up to so many edges for each row are laid out to search in."""

SLICES_PER_PAGE = 16


def edges_of(window: TimeWindow | MultiWindow) -> frozenset[Grid]:
    """The progressions of edges that a window can have."""
    if isinstance(window, TimeWindow):
        front = window.offset - window.lag
        return frozenset(Grid(window.slide, at % window.slide) for at in (front, front - window.range))
    levels = asked_levels(window)
    return frozenset(Grid(level.slide, -reach % level.slide) for level in levels for reach in (0, level.range))


@dataclass(frozen=True)
class Cuts:
    """One rule of cutting: the union of progressions, none of which another one covers."""

    progressions: tuple[Grid, ...]
    grid: Grid | None
    """All cuts, where they are one progression."""

    def ends(self, times: Ints) -> Ints:
        """The first cut at or after each time."""
        if self.grid is not None:
            return _at_or_after(self.grid, times)
        if not len(times) or not self.progressions:
            return np.full(len(times), DUSK, np.int64)
        low, high = int(times.min()), int(times.max())
        if (high - low) * self.density > max(EDGES_PER_ROW * len(times), 4096):
            ends: Ints = np.minimum.reduce([_at_or_after(p, times) for p in self.progressions])
            return ends
        edges = self.between(low - 1, self.end(high))
        return edges[np.searchsorted(edges, times)]

    def end(self, instant: Instant) -> Instant:
        found = (p.at_or_after(instant) for p in (self.progressions if self.grid is None else (self.grid,)))
        return min((at for at in found if at is not None), default=DUSK)

    def between(self, after: Instant, upto: Instant) -> Ints:
        """The cuts above ``after`` up to ``upto``, ascending."""
        grids = self.progressions if self.grid is None else (self.grid,)
        spans = [grid.between(after, upto) for grid in grids]
        if not spans:
            return np.zeros(0, np.int64)
        if len(spans) == 1:
            return np.arange(spans[0].start, spans[0].stop, spans[0].step, dtype=np.int64)
        return np.unique(np.concatenate([np.arange(s.start, s.stop, s.step, dtype=np.int64) for s in spans]))

    @property
    def density(self) -> float:
        """About how many cuts there are in a millisecond."""
        return sum(1 / p.slide for p in (self.progressions if self.grid is None else (self.grid,)))

    @property
    def page_span(self) -> Duration:
        """How much time the slices of one page of the store cover."""
        return max(1, math.ceil(SLICES_PER_PAGE / self.density)) if self.progressions else 1


def cuts_at(edges: Iterable[Grid]) -> Cuts:
    """The cuts for these progressions of edges."""
    progressions = without_covered(edges)
    if not progressions:
        return Cuts((), None)
    first = progressions[0]
    step = math.gcd(*(p.slide for p in progressions), *(p.offset - first.offset for p in progressions))
    is_dense = 1 / step <= SPARSEST * sum(1 / p.slide for p in progressions)
    return Cuts(progressions, Grid(step, first.offset % step) if is_dense else None)


def _at_or_after(grid: Grid, times: Ints) -> Ints:
    ends: Ints = times + (grid.offset - times) % grid.slide
    return ends


@dataclass
class Eras:
    """Which cuts hold when. An era ends where the next one begins; the last one has no end."""

    begins: list[Instant] = field(default_factory=lambda: [DAWN])
    cuts: list[Cuts] = field(default_factory=lambda: [Cuts((), None)])

    @property
    def now(self) -> Cuts:
        return self.cuts[-1]

    def change(self, cuts: Cuts, above: Instant) -> None:
        """Cuts hold above an instant, which is a cut itself from now on, also where they are the same as before: what
        else is kept from there on begins between slices. No row above it has come."""
        while self.begins and self.begins[-1] >= above:
            self.begins.pop()
            self.cuts.pop()
        self.begins.append(above)
        self.cuts.append(cuts)

    def ends(self, times: Ints) -> Ints:
        """The end of the slice that each time lies in."""
        if len(self.begins) == 1 or (len(times) and int(times.min()) > self.begins[-1]):
            return self.now.ends(times)
        ends = np.empty(len(times), np.int64)
        era = np.searchsorted(self.begins, times, side="left") - 1
        for number in np.unique(era).tolist():
            mine = era == number
            until = self.begins[number + 1] if number + 1 < len(self.begins) else DUSK
            ends[mine] = np.minimum(self.cuts[number].ends(times[mine]), until)
        return ends

    def slices(self, lowest: Instant, highest: Instant, most: int) -> Ints | None:
        """The ends of all slices from one instant to another, in order; None where there may be more than ``most``."""
        end = self.end(lowest)
        if highest <= end:
            return np.array([end])
        if lowest <= self.begins[-1] or (highest - lowest) * self.now.density > most:
            return None
        return self.now.between(lowest - 1, self.now.end(highest))

    def end(self, instant: Instant) -> Instant:
        """The end of the slice that an instant lies in."""
        number = max(0, bisect_left(self.begins, instant) - 1)
        until = self.begins[number + 1] if number + 1 < len(self.begins) else DUSK
        return min(self.cuts[number].end(instant), until)

    def forget(self, below: Instant) -> None:
        """Nothing at or below an instant is asked for any more."""
        while len(self.begins) > 1 and self.begins[1] <= below:
            self.begins.pop(0)
            self.cuts.pop(0)
