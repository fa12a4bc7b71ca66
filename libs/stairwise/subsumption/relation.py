"""When one window can ride on another: Definition 1 of seed 000, with lag and offset.

    answers        is Wi subsumable under Wj (Wi ⊑ Wj): can Wj, the enclosing one, be served by the state of Wi?
    requirement    none on the aggregate: it is a relation between windows alone
    cost           O(1) for a pair; all pairs of p paces by p vectorised passes
    from           seed 000 section 3.1, Definition 1; lag and offset are this project's

Wi = <wi, bi> ⊑ Wj = <wj, bj> iff bj mod bi = 0 and wj ≥ wi, and also lags are equal and (oj − oi) mod bi = 0. Then
whenever Wj reports, Wi reports too, and the rows of Wi are the newest of the rows of Wj:

    Wi     RANGE 4 SLIDE 2               ├───────┤               at 2, 4, 6, 8, ...
    Wj     RANGE 8 SLIDE 4       ├───────────────┤               at    4,    8, ...
                                                 τ = 8

Of a chain of such windows the first is the *seed* of a group and every later one *encloses* those before it. Of two
windows of equal range the coarser needs no place of its own: it is *piggybacked* on the finer (see ``piggyback``).

Two windows that differ by a multiple of the slide in their offset are one window; ``canonical`` gives it one spelling.
On canonical windows ⊑ is a partial order. Windows of one *pace* (lag, slide and offset) report at the same times and
differ in range alone, so they always form a chain; ⊑ between windows is ≥ of ranges and ⊑ of paces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stairwise.schema import Duration
from stairwise.windows.spec import TimeWindow

Chain = Sequence[TimeWindow]
"""Canonical windows, each subsumable under the next: ranges and slides grow weakly from the first to the last."""


class Pace(NamedTuple):
    """What decides when a window reports, and how far behind: windows of one pace slide in tandem."""

    lag: Duration
    slide: Duration
    offset: Duration


def canonical(window: TimeWindow) -> TimeWindow:
    """The same window with its offset below its slide."""
    if 0 <= window.offset < window.slide:
        return window
    return replace(window, offset=window.offset % window.slide)


def pace(window: TimeWindow) -> Pace:
    """Of a canonical window."""
    return Pace(window.lag, window.slide, window.offset)


def is_subsumable(inner: TimeWindow, outer: TimeWindow) -> bool:
    """Definition 1: can ``outer`` enclose ``inner``? Every window encloses itself."""
    return (
        outer.slide % inner.slide == 0
        and outer.range >= inner.range
        and outer.lag == inner.lag
        and (outer.offset - inner.offset) % inner.slide == 0
    )


def by_size(window: TimeWindow) -> tuple[Duration, Duration, Duration, Duration]:
    """The order in which windows are visited, and in which every chain stands: range, then slide."""
    return window.range, window.slide, window.lag, window.offset


def nested_paces(paces: Sequence[Pace]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """All pairs of different paces whose windows may nest: places of the finer and of the coarser one.

    ``paces`` is sorted and without repeats, so that a coarser pace never stands before a finer one.
    """
    finer: list[npt.NDArray[np.intp]] = []
    coarser: list[npt.NDArray[np.intp]] = []
    first = 0
    for _, same_lag in groupby(paces, key=lambda p: p.lag):
        block = np.array([(p.slide, p.offset) for p in same_lag], dtype=np.int64)
        slides, offsets = block[:, 0], block[:, 1]
        for i in range(len(block)):
            multiples = i + 1 + np.flatnonzero(slides[i + 1 :] % slides[i] == 0)
            fitting = multiples[(offsets[multiples] - offsets[i]) % slides[i] == 0]
            if len(fitting):
                finer.append(np.full(len(fitting), first + i, dtype=np.intp))
                coarser.append(first + fitting)
        first += len(block)
    none = np.empty(0, dtype=np.intp)
    return np.concatenate([none, *finer]), np.concatenate([none, *coarser])


def finer_paces(windows: Iterable[TimeWindow]) -> dict[Pace, list[Pace]]:
    """For each pace of canonical windows the finer ones among them, whose windows may nest in its windows."""
    paces = sorted({pace(window) for window in windows})
    found: dict[Pace, list[Pace]] = {p: [] for p in paces}
    for finer, coarser in zip(*(places.tolist() for places in nested_paces(paces)), strict=True):
        found[paces[coarser]].append(paces[finer])
    return found
