"""When windows report and what they hold, straight from the definitions: instants are tried one by one.

A report stands at a moment: a time and, between rows of one instant under a row slide, the ordinal of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stairwise.cql.query import Input
from stairwise.schema import Instant
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
)
from tests.oracle.rows import OracleRow
from tests.oracle.values import canonical_row

Rows = Sequence[OracleRow]
MOST_REPORTS = 1_000_000
"""Where a case asks for more report times than this, it is the case that is wrong."""


class Moment(NamedTuple):
    time: Instant
    ordinal: int = 0


def slides(window: Window | None) -> list[tuple[int, int]]:
    """The (slide, offset) pairs whose multiples are its report times; none where rows decide."""
    match window:
        case TimeWindow():
            return [(window.slide, window.offset)]
        case LandmarkWindow() | PartitionedWindow():
            return [(window.slide, 0)]
        case RowsWindow():
            return [] if window.time_slide is None else [(window.time_slide, 0)]
        case MultiWindow(horizon=None):
            return [(level.slide, 0) for level in window.levels]
        case MultiWindow():
            return [(window.granule, 0)]
    return []


def first_multiple(slide: int, offset: int, instant: Instant) -> Instant:
    """The first τ ≡ offset (mod slide) at or after an instant."""
    return instant + (offset - instant) % slide


def lives(window: Window | None, tau: Instant) -> bool:
    """Does the window report at τ, given that τ is a multiple of its slide? Landmarks do for a while only."""
    if not isinstance(window, LandmarkWindow):
        return True
    begun = window.start is None or tau >= window.start
    over = window.end is not None and tau - window.slide >= window.end
    return begun and not over


def reports_at(window: Window | None, tau: Instant) -> bool:
    """Is τ one of the window's own report times?"""
    return any(tau % slide == offset % slide for slide, offset in slides(window)) and lives(window, tau)


def end_of_reports(windows: Sequence[Window | None], last_row: Instant) -> Instant:
    """Where sealing ends: at the first report time at or after the last row, or there where none follows."""
    ends = [
        tau
        for window in windows
        for slide, offset in slides(window)
        if lives(window, tau := first_multiple(slide, offset, last_row))
    ]
    return min(ends, default=last_row)


def times_between(window: Window | None, start: Instant, end: Instant) -> Iterator[Instant]:
    """The window's report times with start ≤ τ ≤ end."""
    for slide, offset in slides(window):
        times = range(first_multiple(slide, offset, start), end + 1, slide)
        if len(times) > MOST_REPORTS:
            raise ValueError(f"{len(times)} report times are more than an oracle has patience for")
        yield from (tau for tau in times if lives(window, tau))


def row_moments(window: Window | None, rows: Rows) -> Iterator[tuple[int, Moment]]:
    """Where rows decide: (rows passed, moment) of each report. Without a window every row is one."""
    if window is not None and not (isinstance(window, RowsWindow) and window.row_slide is not None):
        return
    every = 1 if window is None else window.row_slide or 1
    ordinal = 0
    for number, row in enumerate(rows, start=1):
        ordinal = ordinal + 1 if number > 1 and rows[number - 2].ts == row.ts else 0
        if number % every == 0:
            yield number, Moment(row.ts, 0 if window is None else ordinal)


def held(source: Input, rows: Rows, moment: Moment, horizon: Instant, level: int) -> list[OracleRow]:
    """What a source shows at a moment: its state as of its own last report at or before it.

    ``rows`` are all rows of the stream in order; ``level`` picks one of a multi-granular window.
    """
    window = source.window
    if window is None:
        return [row for row in rows if row.ts == moment.time]
    if isinstance(window, RowsWindow) and window.row_slide is not None:
        passed = max((number for number, at in row_moments(window, rows) if at <= moment), default=0)
        return [row for row in rows[max(0, passed - window.rows) : passed] if row.ts > horizon]
    if isinstance(window, RelationWindow):
        updates = [row for row in rows if row.ts <= moment.time]
        return _last_of_each(source, window.keys, 1, updates) if window.retroactive else updates
    tau = last_report(window, moment.time, level)
    if tau is None:
        return []
    past = [row for row in rows if horizon < row.ts <= tau]
    match window:
        case TimeWindow():
            front = tau - window.lag
            return [row for row in past if front - window.range < row.ts <= front]
        case LandmarkWindow():
            inside = [
                row
                for row in past
                if (window.start is None or row.ts >= window.start) and (window.end is None or row.ts <= window.end)
            ]
            return inside if window.retain is None else inside[max(0, len(inside) - window.retain) :]
        case RowsWindow():
            last = [row for row in rows if row.ts <= tau][-window.rows :]
            return [row for row in last if row.ts > horizon]
        case PartitionedWindow():
            return _last_of_each(source, window.keys, window.rows, past)
        case MultiWindow():
            reach = window.levels[level].range if window.horizon is None else window.horizon
            return [row for row in past if row.ts > tau - reach]


def last_report(window: Window, time: Instant, level: int = 0) -> Instant | None:
    """The window's own last report time at or before ``time``; None where it has none."""
    slide, offset = slides(window)[level]
    tau = time - (time - offset) % slide
    if isinstance(window, LandmarkWindow):
        if window.end is not None:
            tau = min(tau, first_multiple(slide, offset, window.end))
        if not lives(window, tau):
            return None
    return tau


def held_at(source: Input, rows: Rows, row: OracleRow, time: Instant) -> bool:
    """Was a row of a table the last of its key at a time?"""
    assert isinstance(source.window, RelationWindow)
    return row in _last_of_each(source, source.window.keys, 1, [r for r in rows if r.ts <= time])


def _last_of_each(source: Input, keys: Sequence[str], count: int, past: Rows) -> list[OracleRow]:
    names = [column.name for column in source.stream.columns]
    places = [names.index(key) for key in keys]
    seen: dict[object, int] = {}
    kept = []
    for row in reversed(past):
        partition = canonical_row(row.values[place] for place in places)
        seen[partition] = seen.get(partition, 0) + 1
        if seen[partition] <= count:
            kept.append(row)
    return kept[::-1]


def step_of(window: MultiWindow, tau: Instant, ts: Instant) -> int:
    """The finest level whose range at τ reaches a row: the step that the row lies in."""
    return next(k for k, level in enumerate(window.levels) if ts > tau - level.range)


def steps_of(window: Window | None, level: int) -> int:
    """How many steps make up what a window reports: up to its level, or to the first that covers h."""
    if not isinstance(window, MultiWindow):
        return 1
    if window.horizon is None:
        return level + 1
    return 1 + next(k for k, coarser in enumerate(window.levels) if coarser.range >= window.horizon)
