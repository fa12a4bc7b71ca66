"""Which cuts are still asked for, by age: history is as fine as the windows that reach so far back.

    RANGE 60 MINUTES SLIDE 5 MINUTES     ┼────────────────┼────────────────┼────────────────┼────────────────┼
    RANGE 10 MINUTES SLIDE 1 MINUTE                                        ┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼
    RANGE 1 MINUTE SLIDE 1 SECOND                                                                         ┼┼┼┼┼
    cuts that are asked for              ┼────────────────┼────────────────┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼┼┼┼┼
                                         older                                                               W
    answers        which of the slices that have closed by the watermark W no report above W tells apart; and how far
                   back a query that joins finds all cuts that it asks for
    cost           one vectorised pass over the slices for each progression of edges that no other one covers
    from           seed 003 section III.B (levels), seed 000 section 4 (the stair)

A report at τ > W asks for the front τ−d and the rear τ−d−w. So of a window's fronts those above W−d are asked for, of
its rears those above W−d−w: d and d+w are how far these edges *reach*. A query that sees no further than its horizon h
asks for no edge at or below h, but for h itself as long as its window reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stairwise.expressions.views import Bools, Ints
from stairwise.operators.due import Frame
from stairwise.schema import DAWN, DUSK, Instant


class Framed(Protocol):
    """Windows as arrays: (τ−lag−range, τ−lag] at τ ≡ offset (mod slide), above a horizon."""

    slide: Ints
    offset: Ints
    lag: Ints
    range: Ints
    horizon: Ints


@dataclass(frozen=True)
class AgedCuts:
    """The edges of some windows: progressions, each as far as it reaches and above where it begins, and horizons."""

    slide: Ints
    phase: Ints
    reach: Ints
    since: Ints
    pin: Ints
    """Horizons, ascending."""
    pin_reach: Ints

    @property
    def vary_by_age(self) -> bool:
        """May slices be merged as they grow old?"""
        return len(self.slide) > 1 or len(self.pin) > 0

    def at_or_after(self, instants: Ints, watermark: Instant) -> Ints:
        """The first cut at or after each instant that a report above the watermark can ask for."""
        found = np.full(len(instants), DUSK, np.int64)
        for slide, phase, floor in zip(self.slide, self.phase, self._floors(watermark), strict=True):
            begin = np.maximum(instants, floor + 1)
            np.minimum(found, begin + (phase - begin) % slide, out=found)
        pins = np.append(self.pin[self.pin > watermark - self.pin_reach], DUSK)
        np.minimum(found, pins[np.searchsorted(pins, instants)], out=found)
        return found

    def _floors(self, watermark: Instant) -> Ints:
        """Edges of each progression are asked for above that."""
        return np.maximum(self.since, watermark - self.reach)

    def horizon(self, frames: Iterable[Frame], watermark: Instant, above: Instant, lowest: Instant) -> Instant:
        """How far back a query that joins at a watermark can see: the oldest cut, not below ``lowest``, from which on
        all of its own edges are cuts. Cuts of its own begin ``above`` an instant."""
        if not len(self.slide):
            return above
        floors = self._floors(watermark)
        bound = max(lowest, int(floors.min()))
        for frame in frames:
            front = frame.offset - frame.lag
            for edge, reach in ((front, frame.lag), (front - frame.range, frame.lag + frame.range)):
                covers = (frame.slide % self.slide == 0) & ((edge - self.phase) % self.slide == 0)
                floor = int(floors[covers].min(initial=above))
                if floor > watermark - reach:
                    bound = max(bound, floor)
        return min(above, int(self.at_or_after(np.array([bound]), watermark)[0]))


def aged_cuts(windows: Framed, are_asked: Bools | None = None) -> AgedCuts:
    """The edges of all of some windows, or of those that are asked for, without what others cover for as long."""
    columns = (windows.slide, windows.offset, windows.lag, windows.range, windows.horizon)
    slide, offset, lag, wide, horizon = (c if are_asked is None else c[are_asked] for c in columns)
    front, rear = offset - lag, offset - lag - wide
    edges = [
        np.concatenate([slide, slide]),
        np.concatenate([front % slide, rear % slide]),
        np.concatenate([lag, lag + wide]),
        np.concatenate([horizon, horizon]),
    ]
    late = horizon > DAWN
    order = np.lexsort([(lag + wide)[late], horizon[late]])
    pin, reach = horizon[late][order], (lag + wide)[late][order]
    is_widest = np.append(pin[1:] != pin[:-1], True)[: len(pin)]
    slide, phase, reaches, since = _uncovered(edges)
    return AgedCuts(slide, phase, reaches, since, pin[is_widest], reach[is_widest])


def _uncovered(edges: Sequence[Ints]) -> list[Ints]:
    """The progressions that no other one covers which reaches as far and begins as early."""
    slide, phase, reach, since = (column[np.lexsort([edges[3], -edges[2], edges[0]])] for column in edges)
    left, kept = np.arange(len(slide)), []
    while len(left):
        own = left[0]
        kept.append(own)
        is_covered = (slide[left] % slide[own] == 0) & ((phase[left] - phase[own]) % slide[own] == 0)
        left = left[~(is_covered & (reach[left] <= reach[own]) & (since[left] >= since[own]))]
    return [column[kept] for column in (slide, phase, reach, since)]
