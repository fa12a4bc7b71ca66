"""How shared aggregation goes with the number of windows, the slide, the number of keys and of signatures."""

from __future__ import annotations

from bench.parts import Panel, Part, table
from bench.pools import SECOND, SMOOTH
from bench.report import Goal
from bench.shared_load import RATE, Load, Measured, compare
from bench.sharing_goals import MANY, MINUTE_WIDE, SLIDING, share, size_of
from stairwise.windows.spec import TimeWindow

WINDOWS = (1, 10, 100, 1_000, 10_000)
PARTS_OF_A_RANGE = (1, 2, 5, 10, 20, 60, 120)
KEYS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
SIGNATURES = (1, 2, 5, 10, 20)
SLIDE_GOAL = 0.8


def windows() -> Part:
    """Rate and memory by number of windows."""
    pool = [MINUTE_WIDE, *SMOOTH.pool(MANY - 1)]
    by_keys: dict[str, list[Measured]] = {}
    for keys in (0, 1_000):
        loads = [Load(pool[:count], keys, warm_up=61) for count in WINDOWS]
        by_keys[_keys(keys)] = compare(*loads, rows=1_000_000, rounds=7)
    rows = [
        [f"{count:,}", *(cell for found in by_keys.values() for cell in (_rate(found[i]), size_of(found[i].state)))]
        for i, count in enumerate(WINDOWS)
    ]
    head = ("windows", "no keys, M rows/s", "state", "1,000 keys, M rows/s", "state")
    return Part(
        tables=[table("By the number of windows of one signature (smooth, SUM):", head, rows)],
        panels=[
            _panel("windows of one signature", "windows", WINDOWS, by_keys, "x"),
            _memory("state by windows", "windows", WINDOWS, by_keys, "xy"),
        ],
    )


def slides() -> Part:
    """Rate by slide, from the whole range down to a 120th of it. A round is a whole range: it has all reports.

    The goal is that of a range of 10 minutes, where a 120th is 5 seconds. The table is for 1 minute, where it is half
    a second, finer than the granule that a stream has if nothing is said: a report for every 50,000 rows.
    """
    found: dict[str, list[Measured]] = {}
    goals: list[Goal] = []
    for minutes, parts in ((1, PARTS_OF_A_RANGE), (10, PARTS_OF_A_RANGE[:: len(PARTS_OF_A_RANGE) - 1])):
        for keys in (0, 1_000):
            loads = [_sliding(minutes, part, keys) for part in parts]
            measured = compare(*loads, rows=minutes * 60 * RATE)
            name = f"{minutes} min, {_keys(keys)}"
            if parts == PARTS_OF_A_RANGE:
                found[name] = measured
                continue
            what = f"slide = range/120 beside slide = range, {name}"
            goals.append(share(what, measured[-1], measured[0], SLIDE_GOAL))
    rows = [[f"range/{part}", *(_rate(m[i]) for m in found.values())] for i, part in enumerate(PARTS_OF_A_RANGE)]
    text = table("M rows/s by slide, for a range of 1 minute (SUM):", ("slide", *found), rows)
    shares = " and ".join(f"{m[-1].share_of(m[0]):.0%} ({name})" for name, m in found.items())
    text += (
        f"\n\nOver 1 minute a slide of range/120 keeps {shares} of the rate of slide = range: that is a report every"
        " half second, or for every 50,000 rows, and half a stream's usual granule. The goal in the table below is held"
        " against ranges of 10 minutes, where range/120 is 5 seconds."
    )
    return Part(goals, [text], [_panel("slide = range / n", "n", PARTS_OF_A_RANGE, found, "x")])


def _sliding(minutes: int, part: int, keys: int) -> Load:
    wide = minutes * 60 * SECOND
    return Load([TimeWindow(wide, wide // part)], keys, warm_up=wide // SECOND + 1, warm_up_rate=RATE // minutes)


def keys() -> Part:
    """Rate and memory by number of keys, each with one window of 60 seconds that reports every 10."""
    measured = [compare(Load([SLIDING], count), rows=1_500_000, rounds=5)[0] for count in KEYS]
    rows = [
        [f"{count:,}", _rate(found), size_of(found.state), size_of(found.report_bytes)]
        for count, found in zip(KEYS, measured, strict=True)
    ]
    head = ("keys", "M rows/s", "state", "bytes a report")
    return Part(
        tables=[table("By the number of keys (RANGE 60 SECONDS SLIDE 10 SECONDS, SUM):", head, rows)],
        panels=[
            _panel("keys", "keys", KEYS, {"": measured}, "x"),
            _memory("state by keys", "keys", KEYS, {"": measured}, "xy"),
        ],
    )


def signatures() -> Part:
    """A thousand windows dealt out over more and more signatures, which share nothing."""
    pool = [*([MINUTE_WIDE] * max(SIGNATURES)), *SMOOTH.pool(1_000 - max(SIGNATURES))]
    loads = [Load(pool, 1_000, warm_up=61, warm_up_rate=20_000, signatures=count) for count in SIGNATURES]
    measured = compare(*loads, rows=400_000)
    rows = [[str(count), _rate(found), size_of(found.state)] for count, found in zip(SIGNATURES, measured, strict=True)]
    text = table(
        "1,000 windows over several signatures (other filters), 1,000 keys:", ("signatures", "M rows/s", "state"), rows
    )
    return Part(tables=[text], panels=[_panel("signatures", "signatures", SIGNATURES, {"": measured}, "xy")])


def _keys(keys: int) -> str:
    return f"{keys:,} keys" if keys else "no keys"


def _rate(found: Measured) -> str:
    return f"{found.rate / 1e6:.1f}"


def _panel(title: str, xlabel: str, x: tuple[int, ...], found: dict[str, list[Measured]], logarithmic: str) -> Panel:
    lines = {name: (x, [m.rate / 1e6 for m in measured]) for name, measured in found.items()}
    return Panel(title, xlabel, "million rows per CPU second", lines, logarithmic)


def _memory(title: str, xlabel: str, x: tuple[int, ...], found: dict[str, list[Measured]], logarithmic: str) -> Panel:
    lines = {name: (x, [m.state / 1e3 for m in measured]) for name, measured in found.items()}
    return Panel(title, xlabel, "kilobytes of partials", lines, logarithmic)
