"""A whole script, from its text: what `stairwise run` must print over raw rows, and what one query says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.schema import DAWN, Instant
from tests.oracle.lateness import on_time
from tests.oracle.query import Line, Query, as_row, lines_of, read_query
from tests.oracle.relations import View
from tests.oracle.rows import OracleRow, from_json
from tests.oracle.streams import Stream, altered, declared
from tests.oracle.windows import Moment

Message = Mapping[str, object]
Place = Callable[[Stream, int, Message], int]
"""The partition of a stream's row, by its number in the input and what it says."""


@dataclass
class Script:
    """The streams, tables among them, and queries that there are after a script."""

    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)

    def take(self, statement: ast.Statement) -> None:
        if not self._passes_over(statement):
            self._take(statement)

    def _passes_over(self, statement: ast.Statement) -> bool:
        """Is there nothing to do by IF EXISTS or IF NOT EXISTS?"""
        match statement:
            case ast.CreateStream(name=name, if_not_exists=True) | ast.CreateTable(name=name, if_not_exists=True):
                return name.text in self.streams
            case ast.DropStream(name=name, if_exists=True) | ast.DropTable(name=name, if_exists=True):
                return name.text not in self.streams
            case ast.CreateQuery(name=name, if_not_exists=True):
                return name.text in self.queries
            case ast.DropQuery(name=name, if_exists=True):
                return name.text not in self.queries
        return False

    def _take(self, statement: ast.Statement) -> None:
        match statement:
            case ast.CreateStream() | ast.CreateTable():
                self.streams[statement.name.text] = declared(statement)
            case ast.AlterStream(name=name):
                self.streams[name.text] = altered(self.streams[name.text], statement)
            case ast.DropStream(name=name) | ast.DropTable(name=name):
                gone = self.streams.pop(name.text)
                self.queries = {name: query for name, query in self.queries.items() if gone not in query.streams}
            case ast.CreateQuery(name=name):
                if statement.replaces:
                    self.queries.pop(name.text, None)
                self._create(name.text, statement.select)
            case ast.SelectStatement():
                numbers = range(1, len(self.queries) + 2)
                self._create(next(f"q{n}" for n in numbers if f"q{n}" not in self.queries), statement)
            case ast.DropQuery(name=name):
                del self.queries[name.text]

    def _create(self, name: str, select: ast.SelectStatement) -> None:
        self.queries[name] = read_query(name, select, self.streams)


@lru_cache(256)
def read(text: str) -> Script:
    script = Script()
    for statement in parse_script(text):
        script.take(statement)
    return script


def _in_one_partition(stream: Stream, number: int, message: Message) -> int:
    return 0


def run(script: str, messages: Mapping[str, Sequence[Message]], *, place: Place = _in_one_partition) -> list[Line]:
    """The lines of all queries of a script over each stream's messages in order of arrival, then sealed.

    They are ordered by time, then by query in order of definition, then as the query has them.
    """
    said = read(script)
    rows = {stream.name: _rows(stream, messages.get(stream.name, ()), place) for stream in said.streams.values()}
    lines = [line for query in said.queries.values() for line in lines_of(query, rows)]
    return sorted(lines, key=lambda line: line["time"])


def _rows(stream: Stream, messages: Sequence[Message], place: Place) -> list[OracleRow]:
    arrivals = [
        from_json(stream, message, partition=place(stream, number, message), sequence=number)
        for number, message in enumerate(messages)
    ]
    return arrivals if stream.is_table else on_time(arrivals, stream.lateness)[0]


def evaluate(
    script: str,
    rows: Mapping[str, Sequence[OracleRow]],
    *,
    sealed: bool = True,
    after: Instant = DAWN,
    horizon: Instant = DAWN,
) -> list[Line]:
    """The lines of a script's only query over the on-time rows of its streams; see ``query.lines_of``."""
    (query,) = read(script).queries.values()
    return lines_of(query, rows, sealed=sealed, after=after, horizon=horizon)


def answer(script: str, rows: Mapping[str, Sequence[OracleRow]], at: Instant) -> list[dict[str, Any]]:
    """The whole answer of a script's only query behind the last row at or before an instant."""
    (query,) = read(script).queries.values()
    ordered = {name: sorted(side, key=lambda row: row.order) for name, side in rows.items()}
    found = query.relation.answer(View(ordered, Moment(at, math.inf), DAWN))  # type: ignore[arg-type]
    return [as_row(query, row) for row in found]
