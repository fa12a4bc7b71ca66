"""Which windows are due at τ, by groups.

    answers        the windows with τ ≡ offset (mod slide), and the times at which there are any
    cost           one look at each group, one at each pace of the groups whose seed is due, and the windows due
    from           seed 000 section 3.2: whoever encloses or rides slides by a multiple of the seed's slide

If a window is due, so is everything it encloses, down to the seed of its group. So a group whose seed is not due is
passed over, and windows that slide in tandem are due together:

    τ = 8        group 1   SLIDE 2 ✓   SLIDE 4 ✓ (12 windows)   SLIDE 12 ✗ (40 windows)
                 group 2   SLIDE 3 ✗   ...

For the same reason the report times of all windows are those of the seeds alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from stairwise.schema import Instant
from stairwise.subsumption.group import Group
from stairwise.windows.spec import TimeWindow


def due(groups: Iterable[Group], tau: Instant) -> list[TimeWindow]:
    """The windows that report at τ, each once, group by group."""
    found: list[TimeWindow] = []
    for group in groups:
        seed = group.seed
        if (tau - seed.offset) % seed.slide == 0:
            for pace, windows in group.paces.items():
                if (tau - pace.offset) % pace.slide == 0:
                    found += windows
    return found


def seeds(groups: Iterable[Group]) -> tuple[TimeWindow, ...]:
    """One window for each grid of report times on which a group begins.

    Some window of the groups reports at τ iff one of these does: they stand for all in ``windows.schedule``.
    """
    grids = {(group.seed.slide, group.seed.offset): group.seed for group in groups}
    return tuple(grids.values())
