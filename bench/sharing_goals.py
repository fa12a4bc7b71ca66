"""What shared aggregation promises: core rates, and what 10,000 windows cost beside one.

The windows are those of seed 000's own experiment (ranges up to 60 seconds, slides up to 10), and 10,000 that are all
different (ranges up to an hour, slides up to a minute); one window of the widest range and the finest slide is what
they are compared with. Windows are full when they are measured.
"""

from __future__ import annotations

from bench import groups
from bench.parts import Part, table
from bench.pools import HOUR, SECOND, SMOOTH
from bench.report import Goal
from bench.shared_load import Load, Measured, compare
from stairwise.windows.spec import TimeWindow

ALL = "SUM(x), COUNT(*), MIN(x), MAX(x)"
CORE_GOALS = {0: 100e6, 1_000: 20e6, 1_000_000: 3e6}
DOUBLE_GOAL = 0.25
MANY_GOAL = 0.9
DIFFERENT_GOAL = 0.8
MEMORY_GOAL = 1.1

MANY = 10_000
MINUTE_WIDE = TimeWindow(60 * SECOND, SECOND)
HOUR_WIDE = TimeWindow(3600 * SECOND, SECOND)
SLIDING = TimeWindow(60 * SECOND, 10 * SECOND)


def core() -> Part:
    """Insert and advance, by number of keys; DOUBLE beside BIGINT."""
    goals: list[Goal] = []
    for keys, wanted in CORE_GOALS.items():
        window = SLIDING if keys <= 1_000 else TimeWindow(60 * SECOND, 60 * SECOND)
        (found,) = compare(Load([window], keys, ALL), rows=4_000_000 if keys <= 1_000 else 2_000_000, rounds=4)
        name = f"insert and advance, {_keys(keys)}: SUM, COUNT, MIN, MAX"
        goals.append(Goal(name, f"≥ {wanted / 1e6:.0f} M rows/s", rate(found), found.rate >= wanted))
    for keys in (0, 1_000):
        whole, double = compare(Load([SLIDING], keys), Load([SLIDING], keys, type="DOUBLE"), rows=1_000_000)
        goals.append(share(f"SUM of DOUBLE beside BIGINT, {_keys(keys)}", double, whole, DOUBLE_GOAL))
    return Part(goals)


def many() -> Part:
    """The seed's 10,000 windows beside one."""
    goals: list[Goal] = []
    rows: list[list[str]] = []
    pool = [MINUTE_WIDE, *SMOOTH.pool(MANY - 1)]
    for keys in (0, 1_000):
        alone, all_of_them = Load([MINUTE_WIDE], keys, warm_up=61), Load(pool, keys, warm_up=61)
        one, found = compare(alone, all_of_them, rows=2_000_000, rounds=15)
        goals.append(share(f"10,000 windows beside one, {_keys(keys)}", found, one, MANY_GOAL))
        size = found.state / one.state
        goals.append(Goal(f"their memory, {_keys(keys)}", f"≤ {MEMORY_GOAL} ×", f"{size:.2f} ×", size <= MEMORY_GOAL))
        rows += [_published("one", keys, one), _published("10,000 of the seed", keys, found)]
    return Part(goals, [table("What is published at a report time, ranges to 1 minute:", _PUBLISHED, rows)])


def different() -> Part:
    """10,000 windows that are all different beside one."""
    pool = [HOUR_WIDE, *HOUR.different(MANY - 1)]
    warm = {"warm_up": 3600, "warm_up_rate": 5_000}
    one, found = compare(Load([HOUR_WIDE], 0, **warm), Load(pool, 0, **warm), rows=2_000_000, rounds=15)
    goals = [share("10,000 different windows beside one, no keys", found, one, DIFFERENT_GOAL)]
    rows = [_published("one", 0, one), _published("10,000 different", 0, found)]
    late = {**warm, "joins_late": True}
    one, found = compare(Load([HOUR_WIDE], 1_000, **late), Load(pool, 1_000, **late), rows=1_000_000, rounds=5)
    rows += [_published("one", 1_000, one), _published("10,000 different", 1_000, found)]
    text = table("The same, ranges to 1 hour and slides to 1 minute, all different:", _PUBLISHED, rows)
    ratio = f"With 1,000 keys they run at {found.share_of(one):.0%} of the rate of one."
    return Part(goals, [f"{text}\n\n{ratio}"])


def grouping() -> Part:
    """Building, covering, embedding, revoking."""
    return Part(groups.goals())


def rate(found: Measured) -> str:
    return f"{found.rate / 1e6:.1f} M rows/s"


def share(name: str, found: Measured, beside: Measured, wanted: float) -> Goal:
    part = found.share_of(beside)
    return Goal(name, f"≥ {wanted:.0%}", f"{part:.0%} ({rate(found)} of {rate(beside)})", part >= wanted)


def size_of(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


_PUBLISHED = ("windows", "keys", "M rows/s", "state", "steps a report", "bytes a report")


def _published(name: str, keys: int, found: Measured) -> list[str]:
    return [
        name,
        f"{keys:,}",
        f"{found.rate / 1e6:.1f}",
        size_of(found.state),
        f"{found.steps:,.0f}",
        size_of(found.report_bytes),
    ]


def _keys(keys: int) -> str:
    return f"{keys:,} keys" if keys else "no keys"
