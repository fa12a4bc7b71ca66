"""From when to when a query shows a joined row: known from the times of its rows as soon as they are together.

    a [RANGE 4 SLIDE 2]   ●━━━━━━━━━━━━━━━┥           a row shows from its window's first report at or after its time
    b [RANGE 9 SLIDE 3]         ●━━━━━━━━━━━━━━━┥     until the first report that is a range later
    together                    ┝━━━━━━━━━┥           from when both show until one does not

    from           seed 002 section 4.2 (a joined row expires with the first of its rows), seed 000 section 4 (each
                   result carries the time stamps that decide which windows hold it, and until when)

Both bounds are report times of one of the windows, hence of the query. Nothing has to be announced when a row expires.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.operators.probe import Stay
from stairwise.schema import DUSK
from stairwise.windows.expiry import admission_reports, expiration_reports
from stairwise.windows.spec import TimeWindow

_LONGEST = DUSK // 2
"""Ranges beyond this never end: it keeps sums inside 64 bits."""


def bounded(window: TimeWindow) -> TimeWindow:
    """The same window with a range that can be added to any time."""
    return window if window.range <= _LONGEST else TimeWindow(_LONGEST, window.slide, window.lag, window.offset)


def lifetimes(windows: Sequence[TimeWindow], times: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The first report that shows each joined row, and the first that no longer does; equal where none does."""
    begins = np.max([admission_reports(w, t) for w, t in zip(windows, times, strict=True)], axis=0)
    ends = np.min([expiration_reports(bounded(w), t) for w, t in zip(windows, times, strict=True)], axis=0)
    return begins, np.maximum(begins, ends)


def stay_of(window: TimeWindow) -> Stay:
    """How long a row can matter to a window."""
    window = bounded(window)
    return Stay(window.lag, window.lag + window.range + window.slide)
