"""From a window clause as written to the window that is meant, with every default filled in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from stairwise.algebra.spelling import spell_duration
from stairwise.cql import ast
from stairwise.cql.literals import count, double, duration, instant
from stairwise.cql.source import Source
from stairwise.errors import nearest
from stairwise.schema import Duration, Stream
from stairwise.windows.spec import LandmarkWindow, Level, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window

MAX_ROWS = 10_000_000
MAX_LEVELS = 32
MAX_PARTITION_KEYS = 32


def resolve_window(source: Source, clause: ast.WindowClause, stream: Stream) -> Window:
    match clause:
        case ast.RangeClause():
            length = duration(source, clause.range, "the range of a window")
            options = single_options(source, clause.options)
            return _time_window(source, length, _length(source, options.get("SLIDE"), stream.granule), options)
        case ast.TumbleClause():
            length = duration(source, clause.range, "the range of a window")
            return _time_window(source, length, length, single_options(source, clause.options))
        case ast.NowClause():
            return TimeWindow(stream.granule, stream.granule)
        case ast.LandmarkClause():
            return _landmark(source, clause, stream)
        case ast.RowsClause(lag=ast.Option() as lag) | ast.PartitionClause(lag=ast.Option() as lag):
            raise source.error(lag.span, "only a lookup has a LAG of rows", hint="leave it out, or `stairwise lookup`")
        case ast.RowsClause():
            return _rows(source, clause)
        case ast.PartitionClause():
            return _partitioned(source, clause, stream)
        case ast.MultiClause():
            return _multi(source, clause, stream)


def single_options(source: Source, options: Iterable[ast.Option]) -> dict[str, ast.Option]:
    """The options by keyword; none may be given twice."""
    found: dict[str, ast.Option] = {}
    for option in options:
        if option.keyword in found:
            raise source.error(option.span, f"{option.keyword} is given twice", hint="leave one of them out")
        found[option.keyword] = option
    return found


def _length(source: Source, option: ast.Option | None, default: Duration) -> Duration:
    if option is None:
        return default
    assert isinstance(option.value, ast.Duration), "the grammar gives SLIDE, LAG and OFFSET a duration"
    return duration(source, option.value, option.keyword, zero=option.keyword != "SLIDE")


def _time_window(source: Source, range_: Duration, slide: Duration, options: dict[str, ast.Option]) -> TimeWindow:
    offset = _length(source, options.get("OFFSET"), 0)
    if offset >= slide:
        raise source.error(
            options["OFFSET"].span,
            f"OFFSET must be shorter than the slide of {spell_duration(slide)}",
            hint=f"OFFSET {spell_duration(offset % slide)} gives the same report times",
        )
    # [a, b) is (a − 1 ms, b − 1 ms], which reports at its last instant: time is counted in milliseconds.
    offset = (offset - 1) % slide if "LEFT" in options else offset
    return TimeWindow(range_, slide, lag=_length(source, options.get("LAG"), 0), offset=offset)


def window_edges(clause: ast.WindowClause | None, window: Window | None) -> tuple[Duration, Duration] | None:
    """How far before a report the window begins and ends, of a time window: the a and b of (a, b] or of [a, b)."""
    if not isinstance(window, TimeWindow):
        return None
    options = clause.options if isinstance(clause, ast.RangeClause | ast.TumbleClause) else ()
    end = window.lag - any(option.keyword == "LEFT" for option in options)
    return end + window.range, end


def _landmark(source: Source, clause: ast.LandmarkClause, stream: Stream) -> LandmarkWindow:
    options = single_options(source, clause.options)
    start = None if clause.start is None else instant(source, clause.start)
    end = None if clause.end is None else instant(source, clause.end)
    if clause.end is not None and start is not None and end is not None and end < start:
        raise source.error(clause.end.span, "the window ends before it begins", hint="exchange FROM and UNTIL")
    retain = options.get("RETAIN")
    return LandmarkWindow(
        start,
        end,
        slide=_length(source, options.get("SLIDE"), stream.granule),
        retain=None if retain is None else row_count(source, retain.value, "RETAIN"),
    )


def row_count(source: Source, value: object, what: str) -> int:
    assert isinstance(value, ast.Number), "the grammar gives a count of rows a number"
    return count(source, value, what, MAX_ROWS)


def _rows(source: Source, clause: ast.RowsClause) -> RowsWindow:
    rows = row_count(source, clause.rows, "ROWS")
    if clause.slide is None:
        return RowsWindow(rows, row_slide=1)
    if isinstance(clause.slide.value, ast.Duration):
        return RowsWindow(rows, row_slide=None, time_slide=_length(source, clause.slide, 0))
    return RowsWindow(rows, row_slide=row_count(source, clause.slide.value, "SLIDE"))


def _partitioned(source: Source, clause: ast.PartitionClause, stream: Stream) -> PartitionedWindow:
    if len(clause.keys) > MAX_PARTITION_KEYS:
        raise source.error(clause.span, f"PARTITION BY has more than {MAX_PARTITION_KEYS} columns")
    seen: set[str] = set()
    for key in clause.keys:
        if key.text not in stream.by_name:
            raise source.error(
                key.span,
                f"stream {stream.name!r} has no column {key.text!r}",
                hint=nearest(key.text, stream.by_name, "column"),
            )
        if key.text in seen:
            raise source.error(key.span, f"PARTITION BY names {key.text!r} twice", hint="leave one of them out")
        seen.add(key.text)
    return PartitionedWindow(
        keys=tuple(key.text for key in clause.keys),
        rows=row_count(source, clause.rows, "ROWS"),
        slide=_length(source, clause.slide, stream.granule),
    )


def _multi(source: Source, clause: ast.MultiClause, stream: Stream) -> MultiWindow:
    if len(clause.ranges) > MAX_LEVELS:
        raise source.error(clause.ranges[MAX_LEVELS].span, f"a window has at most {MAX_LEVELS} levels")
    if len(clause.ranges) != len(clause.slides):
        raise source.error(
            clause.slides[-1].span,
            f"{len(clause.ranges)} RANGES need as many SLIDES, not {len(clause.slides)}",
            hint="the first slide belongs to the first range, and so on",
        )
    ranges = [duration(source, r, "a range") for r in clause.ranges]
    slides = [duration(source, s, "a slide") for s in clause.slides]
    _check_levels(source, clause, ranges, slides)
    return MultiWindow(
        levels=tuple(Level(r, s) for r, s in zip(reversed(ranges), reversed(slides), strict=True)),
        horizon=_horizon(source, clause.horizon, max(ranges), stream.granule),
        weights=_weights(source, clause, len(ranges)),
        granule=stream.granule,
    )


def _check_levels(source: Source, clause: ast.MultiClause, ranges: list[Duration], slides: list[Duration]) -> None:
    """Each level lies inside the next wider one, slides no more rarely, and consists of whole slides."""
    for literal, (coarser, finer) in zip(clause.ranges[1:], pairwise(ranges), strict=True):
        if finer >= coarser:
            raise source.error(
                literal.span,
                f"a range of {spell_duration(finer)} does not lie inside one of {spell_duration(coarser)}",
                hint="RANGES go from the widest to the narrowest, each shorter than the one before",
            )
    for literal, (coarser, finer) in zip(clause.slides[1:], pairwise(slides), strict=True):
        if finer > coarser:
            raise source.error(
                literal.span,
                f"a slide of {spell_duration(finer)} follows a shorter one of {spell_duration(coarser)}",
                hint="SLIDES go from the widest range's to the narrowest's and never grow",
            )
    for literal, range_, slide in zip(clause.slides, ranges, slides, strict=True):
        if range_ % slide:
            raise source.error(
                literal.span,
                f"a range of {spell_duration(range_)} is no multiple of its slide, {spell_duration(slide)}",
                hint="choose a slide that divides its range",
            )


def _horizon(source: Source, literal: ast.Duration | None, widest: Duration, granule: Duration) -> Duration | None:
    if literal is None:
        return None
    horizon = duration(source, literal, "HORIZON")
    if horizon > widest:
        raise source.error(
            literal.span,
            f"the horizon reaches beyond the widest range, {spell_duration(widest)}",
            hint="widen the first range",
        )
    if horizon % granule:
        raise source.error(
            literal.span,
            f"the horizon is no multiple of the stream's granule of {spell_duration(granule)}",
            hint="a horizon is composed of whole granules",
        )
    return horizon


def _weights(source: Source, clause: ast.MultiClause, levels: int) -> tuple[float, ...] | None:
    if clause.weights is None:
        return None
    if len(clause.weights) != levels:
        raise source.error(
            clause.weights[-1].span,
            f"{levels} levels need as many weights, not {len(clause.weights)}",
            hint="the first weight belongs to the narrowest range",
        )
    values = [double(source, weight) for weight in clause.weights]
    for weight, value in zip(clause.weights, values, strict=True):
        if value < 0:
            raise source.error(weight.span, "a weight cannot be negative", expected="a number from 0 up")
    return tuple(values)
