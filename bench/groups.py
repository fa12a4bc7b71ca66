"""Subsumption groups: how many the heuristics make against the fewest there can be, and what they cost.

``counts`` is the comparison over the seed's settings, ``goals`` the promises about time. All times are CPU times.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from bench.minimum_cover import minimum_groups
from bench.pools import COUNTS, HOUR, SECOND, SETTINGS
from bench.report import HEAD, Goal, as_text
from stairwise.subsumption.group_schedule import due
from stairwise.subsumption.grouping import WindowGroups
from stairwise.subsumption.piggyback import collapse
from stairwise.subsumption.subsume import subsume_nearest, subsume_windows
from stairwise.windows.spec import TimeWindow

WINDOWS = 10_000
CHANGES = 1_000
TRIES = 3
CHANGE_GOAL = 1e-3
BUILD_GOAL = 1.0
COVER_GOAL = 10.0


@dataclass(frozen=True)
class Counts:
    """The groups of one pool."""

    setting: str
    windows: int
    different: int
    carriers: int
    """Windows that no finer window of the same range can carry."""
    algorithm_1: int
    nearest: int
    embedded: int
    """One by one, in the order of the pool."""
    fewest: int

    @property
    def row(self) -> tuple[str, ...]:
        counted = (self.windows, self.different, self.carriers, self.algorithm_1, self.nearest, self.embedded)
        return (self.setting, *(f"{n:,}" for n in (*counted, self.fewest)))


COUNTS_HEAD = (
    "setting",
    "windows",
    "different",
    "carriers",
    "Algorithm 1",
    "nearest slide",
    "one by one",
    "fewest",
)


def counts() -> list[Counts]:
    """Heuristics against the minimum, over the seed's settings and 10,000 different windows."""
    pools = {(s.name, n): s.pool(n) for s in SETTINGS for n in COUNTS}
    pools[HOUR.name, WINDOWS] = HOUR.different(WINDOWS)
    return [_counts(name, pool) for (name, _), pool in pools.items()]


def _counts(setting: str, pool: list[TimeWindow]) -> Counts:
    grouping = WindowGroups()
    for query, window in named(pool).items():
        grouping.embed(query, window)
    return Counts(
        setting,
        windows=len(pool),
        different=len(set(pool)),
        carriers=len(collapse(pool).riders),
        algorithm_1=len(subsume_windows(pool)),
        nearest=len(subsume_nearest(pool)),
        embedded=len(list(grouping.groups)),
        fewest=len(minimum_groups(pool)),
    )


def counts_table(found: Iterable[Counts]) -> str:
    """In Markdown."""
    rows = [COUNTS_HEAD, ("---",) * len(COUNTS_HEAD), *(c.row for c in found)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def goals() -> list[Goal]:
    """The slowest of the seed's settings and of 10,000 different windows counts."""
    pools = [s.pool(WINDOWS) for s in SETTINGS] + [HOUR.different(WINDOWS)]
    changes = [change_times(pool) for pool in pools]
    build = max(seconds(partial(WindowGroups.of, named(pool))) for pool in pools)
    cover = max(seconds(partial(minimum_groups, pool)) for pool in pools)
    return [
        _change_goal("embedding one query among 10,000", [embedding for embedding, _ in changes]),
        _change_goal("revoking one query among 10,000", [revoking for _, revoking in changes]),
        Goal("building the groups of 10,000 windows", f"< {BUILD_GOAL:.0f} s", f"{build:.2f} s", build < BUILD_GOAL),
        Goal("the fewest groups of 10,000 windows", f"< {COVER_GOAL:.0f} s", f"{cover:.2f} s", cover < COVER_GOAL),
    ]


def _change_goal(name: str, times: list[list[float]]) -> Goal:
    mean = max(map(statistics.fmean, times))
    slowest = max(map(max, times))
    figure = f"{mean * 1e3:.3f} ms on average, {slowest * 1e3:.3f} ms at most (each the best of {TRIES})"
    return Goal(name, f"< {CHANGE_GOAL * 1e3:.0f} ms", figure, slowest < CHANGE_GOAL)


def change_times(pool: list[TimeWindow]) -> tuple[list[float], list[float]]:
    """CPU seconds of each of so many embeddings and revocations among the windows of a pool.

    The same changes are made some times over, and the best time of each one counts: what else the machine does, or the
    garbage collector, seldom falls on the same change twice.
    """
    embedding, revoking = zip(*(_changes(pool) for _ in range(TRIES)), strict=True)
    return [min(tries) for tries in zip(*embedding, strict=True)], [min(tries) for tries in zip(*revoking, strict=True)]


def _changes(pool: list[TimeWindow]) -> tuple[list[float], list[float]]:
    """A query that is drawn leaves, and comes back after ten others have left: among different windows every change
    changes a group."""
    chance = random.Random(1)
    grouping = WindowGroups.of(named(pool))
    names = list(grouping.queries)
    away: list[tuple[str, TimeWindow]] = []
    embedding: list[float] = []
    revoking: list[float] = []
    while len(embedding) < CHANGES:
        query = chance.choice(names)
        if query not in grouping.queries:
            continue
        away.append((query, grouping.window_of(query)))
        revoking.append(seconds(partial(grouping.revoke, query)))
        if len(away) > 10:
            embedding.append(seconds(partial(grouping.embed, *away.pop(0))))
    return embedding, revoking


def schedule_time(pool: list[TimeWindow], reports: int = 1_000) -> float:
    """CPU seconds to find the windows due at one report time, over that many seconds of event time."""
    groups = list(WindowGroups.of(named(pool)).groups)
    return seconds(lambda: [due(groups, tau * SECOND) for tau in range(reports)]) / reports


def named(pool: Iterable[TimeWindow]) -> dict[str, TimeWindow]:
    return {f"q{i}": window for i, window in enumerate(pool)}


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> int:
    print(as_text([COUNTS_HEAD, *(c.row for c in counts())]), end="\n\n")
    for setting, pool in [(s.name, s.pool(WINDOWS)) for s in SETTINGS] + [(HOUR.name, HOUR.different(WINDOWS))]:
        print(f"windows due at one report time, {setting}: {schedule_time(pool) * 1e6:.0f} µs")
    found = goals()
    print("\n" + as_text([HEAD, *(goal.row for goal in found)]))
    return 0 if all(goal.is_met for goal in found) else 1


if __name__ == "__main__":
    sys.exit(main())
