"""Queries that are unlike each other and share: none pays for its company.

Kinds: a MEDIAN over one second beside 59 sums over 2 to 60 seconds. Ages: seed 003's own window (one hour by 5 minutes,
10 minutes by 1 minute, 1 minute by 1 second), and a day by hours beside a minute by seconds; the same windows, each on
an operator of its own, are what they are compared with.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from bench.parts import Part, table
from bench.pools import SECOND
from bench.report import Goal
from bench.shared_load import Load, Measured, Window, compare
from bench.sharing_goals import size_of
from stairwise.windows.spec import Level, MultiWindow, TimeWindow

KINDS_GOAL = 1.3
ISOLATED_GOAL = 1.5
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
LEVELS = (Level(MINUTE, SECOND), Level(10 * MINUTE, MINUTE), Level(HOUR, 5 * MINUTE))
BY_HOURS, BY_SECONDS = TimeWindow(DAY, HOUR), TimeWindow(MINUTE, SECOND)


def kinds() -> Part:
    """A dear aggregate beside cheap ones, by CPU time."""
    goals: list[Goal] = []
    for dear in ("MEDIAN(x)", "STDDEV(x)"):
        sums = Load([TimeWindow(n * SECOND, SECOND) for n in range(2, 61)], rate=5_000, warm_up=61, warm_up_rate=5_000)
        other = replace(sums, windows=[TimeWindow(SECOND, SECOND)], aggregates=dear)
        apart = compare(sums, other, replace(sums, beside=(other,)), rows=300_000, rounds=5)
        ratio = statistics.median(
            (1 / both) / (1 / one + 1 / two) for one, two, both in zip(*(m.rates for m in apart), strict=True)
        )
        name = f"{dear} over 1 s beside 59 sums, CPU beside both alone"
        goals.append(Goal(name, f"≤ {KINDS_GOAL} ×", f"{ratio:.2f} ×", ratio <= KINDS_GOAL))
    return Part(goals)


def ages() -> Part:
    """Windows of different slides and ranges, by memory."""
    seed = MultiWindow(LEVELS, granule=SECOND)
    parts = [TimeWindow(level.range, level.slide) for level in LEVELS]
    goals: list[Goal] = []
    rows: list[list[str]] = []
    for name, shared, apart, keys, span, most in (
        ("seed 003's window", [seed], parts, 200, 2 * HOUR, 3_000_000),
        (
            "a day by hours, a minute by seconds",
            [BY_HOURS, BY_SECONDS],
            [BY_HOURS, BY_SECONDS],
            20,
            DAY + HOUR,
            1_000_000,
        ),
    ):
        (together,) = _states(keys, span, shared)
        alone = sum(_states(keys, span, *([window] for window in apart)))
        ratio = together / alone
        goals.append(Goal(f"{name}, state", f"≤ {size_of(most)}", size_of(together), together <= most))
        goals.append(Goal(f"{name}, beside isolated", f"≤ {ISOLATED_GOAL} ×", f"{ratio:.2f} ×", ratio <= ISOLATED_GOAL))
        rows.append([name, f"{keys:,}", size_of(together), size_of(alone)])
    return Part(goals, [table("State of windows that differ:", ("windows", "keys", "together", "isolated"), rows)])


def _states(keys: int, span: int, *loads: Sequence[Window]) -> list[int]:
    """Bytes of partials after a span of time in which every second has rows of most keys."""
    rate = keys
    feed = {"rate": rate, "batch": 60 * rate, "warm_up": span // SECOND, "warm_up_rate": rate}
    found: list[Measured] = compare(*(Load(windows, keys, **feed) for windows in loads), rows=rate, rounds=1)
    return [measured.state for measured in found]
