"""Pools of windows: the settings of seed 000 section 5, and windows that are all different.

The seed gives limits and no distribution: slides of at most 10 (smooth), 20 (medium) or 30 (abrupt) timestamps, ranges
of at most 60, always slide < range. Here a slide is drawn evenly up to its limit, then a range evenly above it. A
timestamp is one second. There are only 545, 990 and 1,335 such windows, so large pools repeat them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from stairwise.schema import Duration
from stairwise.windows.spec import TimeWindow

SECOND: Duration = 1000
COUNTS = (1_000, 2_000, 5_000, 10_000)


@dataclass(frozen=True)
class Setting:
    """Limits in timestamps."""

    name: str
    coarsest: int
    widest: int = 60

    def pool(self, count: int, *, seed: int = 0, unit: Duration = SECOND) -> list[TimeWindow]:
        """So many windows, some of them equal; a longer pool of the same seed begins with a shorter one."""
        return list(islice(self._windows(seed, unit), count))

    def different(self, count: int, *, seed: int = 0, unit: Duration = SECOND) -> list[TimeWindow]:
        """So many windows, no two of them equal."""
        possible = sum(self.widest - slide for slide in range(1, self.coarsest + 1))
        if count > possible:
            raise ValueError(f"the setting {self.name} has only {possible:,} different windows")
        found: dict[TimeWindow, None] = {}
        windows = self._windows(seed, unit)
        while len(found) < count:
            found[next(windows)] = None
        return list(found)

    def _windows(self, seed: int, unit: Duration) -> Iterator[TimeWindow]:
        chance = random.Random(seed)
        while True:
            slide = chance.randint(1, self.coarsest)
            yield TimeWindow(chance.randint(slide + 1, self.widest) * unit, slide * unit)


SMOOTH = Setting("smooth", coarsest=10)
MEDIUM = Setting("medium", coarsest=20)
ABRUPT = Setting("abrupt", coarsest=30)
SETTINGS = (SMOOTH, MEDIUM, ABRUPT)

HOUR = Setting("ranges to 1 hour, slides to 1 minute", coarsest=60, widest=3600)
"""Wide enough for 10,000 windows that are all different."""
