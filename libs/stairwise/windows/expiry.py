"""When a row leaves a time window: known as soon as the row is there (seed 002).

    [RANGE w SLIDE b]   ●────────── w ──────────┤         the row's time + w + lag ...
                        ts                      └──▶ τ    ... at the first report time from there on

So nothing that a window lets go has to be announced by a negative tuple, and a result made of several rows lives
until the first of them expires. What follows for whole plans is in ``plan.patterns``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stairwise.schema import DUSK
from stairwise.windows.spec import TimeWindow

Times = npt.NDArray[np.int64]


def admission_reports(window: TimeWindow, times: Times) -> Times:
    """The first report time that shows each row, unless it has expired by then (a slide beyond the range)."""
    return _first_reports(times + window.lag, window.slide, window.offset)


def expiration_times(window: TimeWindow, times: Times) -> Times:
    """From when on no state can hold each row: in the order of the rows themselves (proposition 2)."""
    return times + (window.lag + window.range)


def expiration_reports(window: TimeWindow, times: Times) -> Times:
    """The first report time that no longer shows each row."""
    return _first_reports(expiration_times(window, times), window.slide, window.offset)


def _first_reports(instants: Times, slide: int, offset: int) -> Times:
    return instants + (offset - instants) % slide


_LONGEST = DUSK // 2
"""Ranges beyond this never end: it keeps sums inside 64 bits."""


def bounded(window: TimeWindow) -> TimeWindow:
    """The same window with a range that can be added to any time."""
    return window if window.range <= _LONGEST else TimeWindow(_LONGEST, window.slide, window.lag, window.offset)


def lifetimes(windows: Sequence[TimeWindow], times: Sequence[Times]) -> tuple[Times, Times]:
    """The first report that shows each joined row, and the first that no longer does; equal where none does."""
    begins = np.max([admission_reports(w, t) for w, t in zip(windows, times, strict=True)], axis=0)
    ends = np.min([expiration_reports(bounded(w), t) for w, t in zip(windows, times, strict=True)], axis=0)
    return begins, np.maximum(begins, ends)
