"""From when to when a query shows a joined row: known from the times of its rows as soon as they are together.

    a [RANGE 4 SLIDE 2]   ●━━━━━━━━━━━━━━━┥           a row shows from its window's first report at or after its time
    b [RANGE 9 SLIDE 3]         ●━━━━━━━━━━━━━━━┥     until the first report that is a range later
    together                    ┝━━━━━━━━━┥           from when both show until one does not

    from           seed 002 section 4.2 (a joined row expires with the first of its rows), seed 000 section 4 (each
                   result carries the time stamps that decide which windows hold it, and until when)

Both bounds are report times of one of the windows, hence of the query. Nothing has to be announced when a row expires.
"""

from __future__ import annotations

from stairwise.join.probe import Stay
from stairwise.windows.expiry import bounded
from stairwise.windows.spec import TimeWindow


def stay_of(window: TimeWindow) -> Stay:
    """How long a row can matter to a window."""
    window = bounded(window)
    return Stay(window.lag, window.lag + window.range + window.slide)
