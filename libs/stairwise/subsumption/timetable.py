"""The report times of a signature's windows, from the seeds of their groups.

    answers        the grids on which any window reports
    cost           a window that comes or goes is embedded or revoked once, when the times are next asked for; then
                   one look at each group's seed, however many windows enclose it or ride
    from           seed 000 sections 3.2 and 3.3

Whoever encloses or rides slides by a multiple of its seed's slide, so where no seed is due nothing is:

    group 1    seed SLIDE 2    SLIDE 4 (12 windows)    SLIDE 12 (40 windows)        ●───●───●───●───●───●──▶
    group 2    seed SLIDE 3    SLIDE 6 (7 windows)                                  ●─────●─────●─────●────▶
    asked at                                                                        ●───●─●───●─●───●─●────▶
"""

from __future__ import annotations

from collections import Counter

from stairwise.subsumption.group import Group
from stairwise.subsumption.group_schedule import seeds
from stairwise.subsumption.grouping import WindowGroups
from stairwise.windows.schedule import Grid, without_covered
from stairwise.windows.spec import TimeWindow


class Timetable:
    """Windows come and go, each as often as some query has it."""

    def __init__(self) -> None:
        self._wanted: Counter[TimeWindow] = Counter()
        self._changed: set[TimeWindow] = set()
        self._grouping = WindowGroups()

    def add(self, window: TimeWindow) -> None:
        self._wanted[window] += 1
        self._changed.add(window)

    def remove(self, window: TimeWindow) -> None:
        self._wanted[window] -= 1
        self._changed.add(window)

    @property
    def groups(self) -> list[Group]:
        """In the order in which they came to be."""
        self._settle()
        return list(self._grouping.groups)

    def grids(self) -> tuple[Grid, ...]:
        """Where any window reports."""
        return without_covered(Grid(seed.slide, seed.offset) for seed in seeds(self.groups))

    def _settle(self) -> None:
        """Let the groups follow: all at once the first time, then window by window."""
        self._wanted = +self._wanted
        if not self._grouping.queries:
            self._grouping = WindowGroups.of({repr(window): window for window in self._wanted})
        else:
            for window in sorted(self._changed, key=repr):
                name, known = repr(window), repr(window) in self._grouping.queries
                if known and window not in self._wanted:
                    self._grouping.revoke(name)
                elif window in self._wanted and not known:
                    self._grouping.embed(name, window)
        self._changed.clear()
