"""When windows report and what they hold, straight from the definitions: instants are tried one by one.

A report stands at a moment: a time and, between rows of one instant under a row slide, the ordinal of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from stairwise.cql import ast
from stairwise.schema import Duration, Instant
from tests.oracle.literals import decimal, instant, length
from tests.oracle.rows import OracleRow
from tests.oracle.streams import Stream, options_of
from tests.oracle.values import canonical_row

Rows = Sequence[OracleRow]
MOST_REPORTS = 1_000_000
"""Where a case asks for more report times than this, it is the case that is wrong."""


class Moment(NamedTuple):
    time: Instant
    ordinal: int = 0


@dataclass(frozen=True)
class Levels:
    """Of RANGES ... SLIDES, the finest first."""

    ranges: tuple[Duration, ...]
    weights: tuple[Fraction, ...] | None
    horizon: Duration | None
    """Of CONTINUOUS HORIZON, which is reported instead of the levels."""


@dataclass(frozen=True)
class Window:
    """A window, no window (append-only) or a table: ``holds(rows up to τ, τ, level)`` are the rows in it at τ."""

    holds: Callable[[Rows, Instant, int], Rows]
    grids: tuple[tuple[Duration, Duration], ...] = ()
    """(slide, offset): its report times are τ ≡ offset (mod slide). Of several levels each has its own."""
    every: int | None = None
    """The m of a row slide: every m-th row reports."""
    by_instant: bool = False
    """Without a window, rows of one instant are one report."""
    lag: Duration = 0
    start: Instant | None = None
    end: Instant | None = None
    """A landmark reports from the first τ ≥ start to the first τ ≥ end."""
    levels: Levels | None = None
    edges: tuple[Duration, Duration] | None = None
    """How far before a report a time window begins and ends."""

    @property
    def has_levels(self) -> bool:
        """Does it report level by level?"""
        return self.levels is not None and self.levels.horizon is None


# ── from the clause to the window ───────────────────────────────────────────────────────────────────────


def read_window(clause: ast.WindowClause | None, stream: Stream) -> Window:
    """The window of a stream in FROM, its defaults filled in."""
    if stream.is_table:
        places = stream.places(stream.keys)
        return Window(lambda past, *_: last_of_each(past, places, 1) if stream.retroactive else past)
    match clause:
        case None:
            return Window(lambda past, tau, _: [r for r in past if r.ts == tau], every=1, by_instant=True)
        case ast.NowClause():
            return _sliding(stream.granule, stream.granule, {})
        case ast.TumbleClause():
            return _sliding(length(clause.range), length(clause.range), options_of(clause.options))
        case ast.RangeClause():
            options = options_of(clause.options)
            return _sliding(length(clause.range), _slide(options.get("SLIDE"), stream), options)
        case ast.LandmarkClause():
            return _landmark(clause, stream)
        case ast.RowsClause(rows=rows, slide=slide, lag=lag):
            every = 1 if slide is None else int(slide.value.text) if isinstance(slide.value, ast.Number) else None
            grids = () if every or slide is None else ((_slide(slide.value, stream), 0),)
            behind = _count(lag)
            return Window(lambda past, *_: past[: len(past) - behind][-int(rows.text) :], grids, every)
        case ast.PartitionClause(keys=keys, rows=rows, slide=slide, lag=lag):
            by, n = stream.places(key.text for key in keys), int(rows.text)
            grid = (_slide(None if slide is None else slide.value, stream), 0)
            return Window(lambda past, *_: last_of_each(past, by, n, _count(lag)), (grid,))
        case ast.MultiClause():
            return _levels(clause, stream)


def _slide(given: object, stream: Stream) -> Duration:
    return length(given) if isinstance(given, ast.Duration) else stream.granule


def _sliding(range_: Duration, slide: Duration, options: dict[str, ast.Duration]) -> Window:
    lag, offset = (length(options[word]) if word in options else 0 for word in ("LAG", "OFFSET"))
    if "LEFT" in options:  # [a, b): it reports at b − 1 ms, its last instant
        return Window(
            lambda past, tau, _: [row for row in past if tau + 1 - lag - range_ <= row.ts < tau + 1 - lag],
            ((slide, offset - 1),),
            lag=lag,
            edges=(lag + range_ - 1, lag - 1),
        )
    return Window(
        lambda past, tau, _: [row for row in past if tau - lag - range_ < row.ts <= tau - lag],
        ((slide, offset),),
        lag=lag,
        edges=(lag + range_, lag),
    )


def _landmark(clause: ast.LandmarkClause, stream: Stream) -> Window:
    start = None if clause.start is None else instant(clause.start)
    end = None if clause.end is None else instant(clause.end)
    options = options_of(clause.options)
    retain = int(options["RETAIN"].text) if "RETAIN" in options else None

    def holds(past: Rows, tau: Instant, level: int) -> Rows:
        inside = [r for r in past if (start is None or r.ts >= start) and (end is None or r.ts <= end)]
        return inside if retain is None else inside[-retain:]

    return Window(holds, ((_slide(options.get("SLIDE"), stream), 0),), start=start, end=end)


def _levels(clause: ast.MultiClause, stream: Stream) -> Window:
    ranges = tuple(map(length, reversed(clause.ranges)))
    horizon = None if clause.horizon is None else length(clause.horizon)
    weights = None if clause.weights is None else tuple(map(decimal, clause.weights))
    slides = map(length, reversed(clause.slides)) if horizon is None else [stream.granule]
    return Window(
        lambda past, tau, level: [row for row in past if row.ts > tau - (horizon or ranges[level])],
        tuple((slide, 0) for slide in slides),
        levels=Levels(ranges, weights, horizon),
    )


def _count(lag: ast.Option | None) -> int:
    return 0 if lag is None else int(lag.value.text)  # type: ignore[union-attr]


def last_of_each(past: Rows, places: Sequence[int], count: int, behind: int = 0) -> list[OracleRow]:
    """The last rows of each partition, by the values at some places, behind its newest."""
    seen: dict[object, int] = {}
    kept = []
    for row in reversed(past):
        partition = canonical_row(row.values[place] for place in places)
        seen[partition] = seen.get(partition, 0) + 1
        if behind < seen[partition] <= behind + count:
            kept.append(row)
    return kept[::-1]


# ── when it reports, and what it holds then ─────────────────────────────────────────────────────────────


def first_multiple(slide: Duration, offset: Duration, time: Instant) -> Instant:
    """The first τ ≡ offset (mod slide) at or after an instant."""
    return time + (offset - time) % slide


def lives(window: Window, tau: Instant) -> bool:
    """Does the window report at τ, given that τ is a multiple of its slide? Landmarks do for a while only."""
    begun = window.start is None or tau >= window.start
    return begun and (window.end is None or tau - window.grids[0][0] < window.end)


def reports_at(window: Window, tau: Instant) -> bool:
    """Is τ one of the window's own report times?"""
    return any((tau - offset) % slide == 0 for slide, offset in window.grids) and lives(window, tau)


def end_of_reports(windows: Sequence[Window], last_row: Instant) -> Instant:
    """Where sealing ends: at the first report time at or after the last row, or there where none follows."""
    firsts = [(w, first_multiple(slide, offset, last_row)) for w in windows for slide, offset in w.grids]
    return min((tau for window, tau in firsts if lives(window, tau)), default=last_row)


def times_between(window: Window, start: Instant, end: Instant) -> Iterator[Instant]:
    """The window's report times with start ≤ τ ≤ end."""
    for slide, offset in window.grids:
        times = range(first_multiple(slide, offset, start), end + 1, slide)
        if len(times) > MOST_REPORTS:
            raise ValueError(f"{len(times)} report times are more than an oracle has patience for")
        yield from (tau for tau in times if lives(window, tau))


def row_moments(window: Window, rows: Rows) -> Iterator[tuple[int, Moment]]:
    """Where rows decide: (rows passed, moment) of each report."""
    ordinal = 0
    for number, row in enumerate(rows if window.every else (), start=1):
        ordinal = ordinal + 1 if number > 1 and rows[number - 2].ts == row.ts and not window.by_instant else 0
        if number % (window.every or 1) == 0:
            yield number, Moment(row.ts, ordinal)


def held(window: Window, rows: Rows, moment: Moment, level: int = 0) -> Rows:
    """What a window shows at a moment: its state as of its own last report at or before it.

    ``rows`` are all rows of the stream in order; ``level`` picks one of a multi-granular window.
    """
    if window.every:
        passed = max((number for number, at in row_moments(window, rows) if at <= moment), default=0)
        return window.holds(rows[:passed], moment.time, level)
    tau = last_report(window, moment.time, level) if window.grids else moment.time
    return [] if tau is None else window.holds([row for row in rows if row.ts <= tau], tau, level)


def last_report(window: Window, time: Instant, level: int = 0) -> Instant | None:
    """The window's own last report time at or before ``time``; None where it has none."""
    slide, offset = window.grids[level]
    if window.end is not None:
        time = min(time, first_multiple(slide, offset, window.end))
    tau = time - (time - offset) % slide
    return tau if lives(window, tau) else None


def step_of(levels: Levels, tau: Instant, ts: Instant) -> int:
    """The finest level whose range at τ reaches a row: the step that the row lies in."""
    return next(k for k, range_ in enumerate(levels.ranges) if ts > tau - range_)


def steps_of(levels: Levels | None, level: int) -> int:
    """How many steps make up what a window reports: up to its level, or to the first that covers its horizon."""
    if levels is None:
        return 1
    if levels.horizon is None:
        return level + 1
    return 1 + next(k for k, range_ in enumerate(levels.ranges) if range_ >= levels.horizon)
