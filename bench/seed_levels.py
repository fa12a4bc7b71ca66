"""Seed 003's own experiment (section V): windows of 2 to 10 levels, 10,000 to 100,000 rows per timestamp.

Aggregation (SUM), regression and recurring items over windows whose widest level spans 40 timestamps: by rate with five
levels (figure 5), by number of levels (figure 6), by granules in a level (figure 7), and the memory (figure 8). A
timestamp is a second; recurring items are ten keys, as the protocols of the paper's data are few.
"""

from __future__ import annotations

from bench.parts import Panel, Part, table
from bench.pools import SECOND
from bench.shared_load import Load, Measured, compare
from bench.sharing_goals import size_of
from stairwise.windows.spec import Level, MultiWindow

OPERATIONS = {"aggregation": "SUM(x)", "regression": "REGR_SLOPE(x), REGR_INTERCEPT(x)", "recurrence": "RECURRING(k)"}
RATES = (10_000, 20_000, 50_000, 100_000)
LEVELS = (2, 4, 5, 8, 10)
GRANULES = (2, 5, 10, 20)
WIDEST = 40


def experiment() -> Part:
    five = even_levels(5)
    by_rate = {name: [_measured(name, five, rate) for rate in RATES] for name in OPERATIONS}
    by_levels = {name: [_measured(name, even_levels(n), RATES[-1]) for n in LEVELS] for name in OPERATIONS}
    by_granules = {name: [_measured(name, granular_levels(u), RATES[-1]) for u in GRANULES] for name in OPERATIONS}
    text = "CPU milliseconds for a timestamp,"
    memory_rows = [[str(n), *(size_of(m[i].state) for m in by_levels.values())] for i, n in enumerate(LEVELS)]
    return Part(
        tables=[
            _table(f"{text} 5 levels (figure 5):", "rows per timestamp", RATES, by_rate),
            _table(f"{text} 100,000 rows (figure 6):", "levels", LEVELS, by_levels),
            _table(f"{text} 5 levels, each of so many granules (figure 7):", "granules", GRANULES, by_granules),
            table("Bytes of partials (figure 8):", ("levels", *OPERATIONS), memory_rows),
        ],
        panels=[
            _panel("5 levels (seed 003, figure 5)", "rows per timestamp", RATES, by_rate),
            _panel("100,000 rows per timestamp (figure 6)", "levels", LEVELS, by_levels),
            _panel("5 levels (figure 7)", "granules in a level", GRANULES, by_granules),
        ],
    )


def even_levels(count: int) -> MultiWindow:
    """So many levels up to 40 timestamps, each as much wider than the one before; the finest slides by one."""
    step = WIDEST // count
    return _window([(step * (number + 1), step if number else 1) for number in range(count)])


def granular_levels(granules: int) -> MultiWindow:
    """Five levels of so many granules each, which double from level to level."""
    return _window([(granules * 2**number, 2**number) for number in range(5)])


def _window(levels: list[tuple[int, int]]) -> MultiWindow:
    return MultiWindow(tuple(Level(wide * SECOND, slide * SECOND) for wide, slide in levels), granule=SECOND)


def _measured(operation: str, window: MultiWindow, rate: int) -> Measured:
    """The query by itself, up to its own reports."""
    widest = window.levels[-1].range // SECOND
    load = Load(
        [window],
        aggregates=OPERATIONS[operation],
        rate=rate,
        batch=rate,
        warm_up=widest + 1,
        warm_up_rate=rate // 10,
        expands=True,
        items=10,
    )
    (found,) = compare(load, rows=16 * rate, rounds=3)
    return found


def _milliseconds(found: Measured, rate: int) -> float:
    return rate / found.rate * 1e3


def _table(sentence: str, what: str, x: tuple[int, ...], found: dict[str, list[Measured]]) -> str:
    rates = x if x is RATES else (RATES[-1],) * len(x)
    rows = [
        [f"{at:,}", *(f"{_milliseconds(m[i], rate):.2f}" for m in found.values())]
        for i, (at, rate) in enumerate(zip(x, rates, strict=True))
    ]
    return table(sentence, (what, *found), rows)


def _panel(title: str, xlabel: str, x: tuple[int, ...], found: dict[str, list[Measured]]) -> Panel:
    rates = x if x is RATES else (RATES[-1],) * len(x)
    lines = {
        name: (x, [_milliseconds(m, rate) for m, rate in zip(measured, rates, strict=True)])
        for name, measured in found.items()
    }
    return Panel(title, xlabel, "CPU ms per timestamp", lines)
