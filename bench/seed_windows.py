"""Seed 000's own experiment (section 5): windows of three classes, SUM, 10,000 to 100,000 rows per timestamp.

Its figure 10 counts groups, figure 11 compares the memory of shared and isolated windows, figure 12 gives the time to
answer 10,000 windows at a timestamp. A timestamp is a second; all rows of it come in one batch.
"""

from __future__ import annotations

from bench import groups
from bench.parts import Panel, Part, table
from bench.pools import COUNTS, MEDIUM, SETTINGS
from bench.shared_load import Load, Running, compare
from bench.sharing_goals import size_of
from stairwise.windows.spec import TimeWindow

RATES = (10_000, 20_000, 50_000, 100_000)
MOST = COUNTS[-1]


def times() -> Part:
    """CPU milliseconds for a timestamp: by rate with 10,000 windows, by number of windows at the highest rate."""
    by_rate = {s.name: [_milliseconds(s.pool(MOST), rate) for rate in RATES] for s in SETTINGS}
    by_count = {s.name: [_milliseconds(s.pool(count), RATES[-1]) for count in COUNTS] for s in SETTINGS}
    rate_rows = [[f"{rate:,}", *(f"{found[i]:.2f}" for found in by_rate.values())] for i, rate in enumerate(RATES)]
    count_rows = [[f"{count:,}", *(f"{found[i]:.2f}" for found in by_count.values())] for i, count in enumerate(COUNTS)]
    text = "CPU milliseconds for a timestamp,"
    names = tuple(by_rate)
    return Part(
        tables=[
            table(f"{text} 10,000 windows (the paper's figure 12):", ("rows per timestamp", *names), rate_rows),
            table(f"{text} 100,000 rows:", ("windows", *names), count_rows),
        ],
        panels=[
            Panel(
                "10,000 windows (seed 000, figure 12)",
                "rows per timestamp",
                "CPU ms per timestamp",
                {name: (RATES, found) for name, found in by_rate.items()},
            )
        ],
    )


def memory() -> Part:
    """Bytes of partials of all windows together, and of every window by itself."""
    alone: dict[TimeWindow, int] = {}
    shared, isolated = [], []
    for count in COUNTS:
        pool = MEDIUM.pool(count)
        shared.append(_state(pool))
        for window in set(pool) - alone.keys():
            alone[window] = _state([window])
        isolated.append(sum(alone[window] for window in pool))
    rows = [[f"{n:,}", size_of(s), size_of(i)] for n, s, i in zip(COUNTS, shared, isolated, strict=True)]
    lines = {"shared": (COUNTS, [s / 1e3 for s in shared]), "isolated": (COUNTS, [i / 1e3 for i in isolated])}
    return Part(
        tables=[table("Bytes of partials, medium windows (figure 11):", ("windows", "shared", "isolated"), rows)],
        panels=[Panel("memory (figure 11)", "windows", "kilobytes of partials", lines, "y")],
    )


def group_counts() -> Part:
    """Heuristics against the minimum."""
    found = groups.counts()
    text = (
        f"Groups by each way of making them (figure 10), and the fewest there can be:\n\n{groups.counts_table(found)}"
    )
    fewest = {s.name: [c for c in found if c.setting == s.name] for s in SETTINGS}
    lines = {f"{n}, Algorithm 1": (COUNTS, [c.algorithm_1 for c in of]) for n, of in fewest.items()}
    lines |= {f"{n}, fewest": (COUNTS, [c.fewest for c in of]) for n, of in fewest.items()}
    return Part(tables=[text], panels=[Panel("groups (figure 10)", "windows", "groups", lines)])


def _milliseconds(pool: list[TimeWindow], rate: int) -> float:
    """The median of some rounds of 20 timestamps each."""
    load = Load(pool, rate=rate, batch=rate, warm_up=61, warm_up_rate=rate)
    (found,) = compare(load, rows=20 * rate, rounds=3)
    return rate / found.rate * 1e3


def _state(pool: list[TimeWindow]) -> int:
    """Of full windows; how many rows fill them makes no difference."""
    return Running(Load(pool, batch=61, warm_up=62, warm_up_rate=1)).finish().state
