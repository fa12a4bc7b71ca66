"""The oracle itself: every result line of a query, each report recomputed from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stairwise.cql.query import Emit, Query, inputs
from stairwise.schema import DAWN, Instant
from stairwise.windows.spec import MultiWindow
from tests.oracle.relations import Answer, View, answer, surplus
from tests.oracle.rows import OracleRow
from tests.oracle.values import to_json
from tests.oracle.windows import Moment, Rows, end_of_reports, reports_at, row_moments, times_between

Line = dict[str, Any]


def evaluate(
    query: Query,
    rows: Mapping[str, Sequence[OracleRow]],
    *,
    sealed: bool = True,
    after: Instant = DAWN,
    horizon: Instant = DAWN,
) -> list[Line]:
    """The result lines of a query over the on-time rows of its streams, in their order.

    Sealed streams report up to the first report time at or after their last row; others up to the watermark
    that their rows give (the least over the partitions that have rows). ``after`` and ``horizon`` are those
    of a query that joined late.
    """
    ordered = {stream.name: sorted(rows.get(stream.name, ()), key=lambda row: row.order) for stream in query.streams}
    tables = {stream.name for stream in query.streams if stream.is_table}
    of_streams = {name: side for name, side in ordered.items() if name not in tables}
    if not any(of_streams.values()):
        return []
    lines: list[Line] = []
    shown: dict[int, list[Answer]] = {}
    for moment in _moments(query, of_streams, after, horizon, _end(query, of_streams, sealed)):
        for level in _due_levels(query, moment):
            now = answer(query.relation, View(ordered, moment, horizon, level))
            emitted = _emitted(_emit(query), shown.get(level, []), now)
            lines += [_line(query, moment, level, diff, row) for diff, row in emitted]
            shown[level] = now
    return lines


def _end(query: Query, rows: Mapping[str, Rows], sealed: bool) -> Instant:
    """Up to where reports are final."""
    if not sealed:
        return min(_watermark(rows[stream.name], stream.lateness) for stream in query.streams if not stream.is_table)
    windows = [source.window for source in inputs(query.relation)]
    return end_of_reports(windows, max(row.ts for side in rows.values() for row in side))


def _watermark(rows: Rows, lateness: int) -> Instant:
    highest: dict[int, Instant] = {}
    for row in rows:
        highest[row.partition] = max(highest.get(row.partition, DAWN), row.ts)
    return min(highest.values(), default=DAWN) - lateness - 1


def _moments(query: Query, rows: Mapping[str, Rows], after: Instant, horizon: Instant, end: Instant) -> list[Moment]:
    """All reports: the union over the query's windows, from the first row on, or above ``after`` if it joined late."""
    start = min(row.ts for side in rows.values() for row in side) if after == DAWN else after + 1
    found: set[Moment] = set()
    for source in inputs(query.relation):
        found.update(Moment(tau) for tau in times_between(source.window, start, end))
        by_rows = (moment for _, moment in row_moments(source.window, rows.get(source.stream.name, ())))
        found.update(moment for moment in by_rows if max(start, horizon + 1) <= moment.time <= end)
    return sorted(found)


def has_levels(query: Query) -> bool:
    """Does a result row say which level it is of?"""
    windows = [source.window for source in inputs(query.relation)]
    return any(isinstance(window, MultiWindow) and window.horizon is None for window in windows)


def _due_levels(query: Query, moment: Moment) -> list[int]:
    """The levels that report at a moment, finest first; the one and only level 0 where a window has none."""
    if not has_levels(query):
        return [0]
    (window,) = {source.window for source in inputs(query.relation)}
    if not isinstance(window, MultiWindow) or not reports_at(window, moment.time):
        return []
    return [k for k, level in enumerate(window.levels) if moment.time % level.slide == 0]


def _emit(query: Query) -> Emit:
    """Append-only queries show each row once, whatever they say."""
    append_only = all(source.window is None for source in inputs(query.relation))
    return Emit.RSTREAM if append_only else query.emit


def _emitted(emit: Emit, before: Sequence[Answer], now: Sequence[Answer]) -> Iterator[tuple[int, Answer]]:
    """What a query shows of two consecutive answers, −1 first."""
    if emit is Emit.RSTREAM:
        yield from ((1, row) for row in now)
    if emit in (Emit.DSTREAM, Emit.CHANGES):
        yield from ((-1, row) for row in surplus(before, Counter(row.values for row in now)))
    if emit in (Emit.ISTREAM, Emit.CHANGES):
        yield from ((1, row) for row in surplus(now, Counter(row.values for row in before)))


def _line(query: Query, moment: Moment, level: int, diff: int, row: Answer) -> Line:
    names = [output.name for output in query.relation.outputs]
    shown = dict(zip(names, map(to_json, row.values), strict=True))
    if has_levels(query):
        shown = {"level": level, **shown}
    return {"query": query.name, "time": moment.time, "diff": diff, "row": shown}
