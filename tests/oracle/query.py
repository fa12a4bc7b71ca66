"""The oracle itself: every result line of a query, each report recomputed from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stairwise.cql import ast
from stairwise.schema import DAWN, Instant
from tests.oracle.relations import Answer, Select, SetOperation, View, read_relation, surplus
from tests.oracle.rows import OracleRow
from tests.oracle.streams import Stream
from tests.oracle.values import to_json
from tests.oracle.windows import Moment, Rows, Window, end_of_reports, reports_at, row_moments, times_between

Line = dict[str, Any]


@dataclass(frozen=True)
class Query:
    name: str
    relation: Select | SetOperation
    emit: str

    @property
    def streams(self) -> list[Stream]:
        return list({one.stream.name: one.stream for one in self.relation.inputs}.values())

    @property
    def windows(self) -> list[Window]:
        return [one.window for one in self.relation.inputs]

    @property
    def has_levels(self) -> bool:
        """Does a result row say which level it is of?"""
        return any(window.has_levels for window in self.windows)


def read_query(name: str, statement: ast.SelectStatement, streams: Mapping[str, Stream]) -> Query:
    """Without EMIT, a SELECT of groups shows its answers, all else what changes. Without windows rows just come."""
    relation: Select | SetOperation
    if isinstance(statement.relation, ast.Select):
        relation = Select(statement.relation, statement.source, streams, statement.ordering)
    else:
        relation = read_relation(statement.relation, statement.source, streams)
    emit = "RSTREAM" if relation.is_grouped else "CHANGES"
    if statement.emit is not None:
        emit = statement.emit.text
    if all(one.window.by_instant for one in relation.inputs):
        emit = "RSTREAM"
    return Query(name, relation, emit)


def lines_of(
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
    of_streams = {stream.name: ordered[stream.name] for stream in query.streams if not stream.is_table}
    if not any(of_streams.values()):
        return []
    lines: list[Line] = []
    shown: dict[int, list[Answer]] = {}
    for moment in _moments(query, of_streams, after, horizon, _end(query, of_streams, sealed)):
        for level in _due_levels(query, moment):
            now = query.relation.answer(View(ordered, moment, horizon, level))
            emitted = _emitted(query.emit, shown.get(level, []), now)
            lines += [_line(query, moment, level, diff, row) for diff, row in emitted]
            shown[level] = now
    return lines


def _end(query: Query, rows: Mapping[str, Rows], sealed: bool) -> Instant:
    """Up to where reports are final."""
    if not sealed:
        return min(_watermark(rows[stream.name], stream.lateness) for stream in query.streams if not stream.is_table)
    return end_of_reports(query.windows, max(row.ts for side in rows.values() for row in side))


def _watermark(rows: Rows, lateness: int) -> Instant:
    highest: dict[int, Instant] = {}
    for row in rows:
        highest[row.partition] = max(highest.get(row.partition, DAWN), row.ts)
    return min(highest.values(), default=DAWN) - lateness - 1


def _moments(query: Query, rows: Mapping[str, Rows], after: Instant, horizon: Instant, end: Instant) -> list[Moment]:
    """All reports: the union over the query's windows, from the first row on, or above ``after`` if it joined late."""
    start = min(row.ts for side in rows.values() for row in side) if after == DAWN else after + 1
    found: set[Moment] = set()
    for one in query.relation.inputs:
        found.update(Moment(tau) for tau in times_between(one.window, start, end))
        by_rows = (moment for _, moment in row_moments(one.window, rows.get(one.stream.name, ())))
        found.update(moment for moment in by_rows if max(start, horizon + 1) <= moment.time <= end)
    return sorted(found)


def _due_levels(query: Query, moment: Moment) -> list[int]:
    """The levels that report at a moment, finest first; the one and only level 0 where a window has none."""
    if not query.has_levels:
        return [0]
    (window,) = query.windows
    if not reports_at(window, moment.time):
        return []
    return [k for k, (slide, _) in enumerate(window.grids) if moment.time % slide == 0]


def _emitted(emit: str, before: Sequence[Answer], now: Sequence[Answer]) -> Iterator[tuple[int, Answer]]:
    """What a query shows of two consecutive answers, −1 first."""
    if emit == "RSTREAM":
        yield from ((1, row) for row in now)
    if emit in ("DSTREAM", "CHANGES"):
        yield from ((-1, row) for row in surplus(before, Counter(row.values for row in now)))
    if emit in ("ISTREAM", "CHANGES"):
        yield from ((1, row) for row in surplus(now, Counter(row.values for row in before)))


def as_row(query: Query, row: Answer) -> dict[str, Any]:
    """A row of an answer by the names of its columns."""
    return {name: to_json(value) for (name, _), value in zip(query.relation.columns, row.values, strict=True)}


def _line(query: Query, moment: Moment, level: int, diff: int, row: Answer) -> Line:
    shown = {"level": level, **as_row(query, row)} if query.has_levels else as_row(query, row)
    return {"query": query.name, "time": moment.time, "diff": diff, "row": shown}
