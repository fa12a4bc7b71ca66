"""Results as a table on a terminal, printed as they come.

    time                      query    diff  ticker  volume
    2023-11-14T22:14:20.000Z  q1         +1  AB        1200

The columns of a query are as wide as its first lines need. A header stands before the first line of a query, and
again where the lines of another query have come between.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.local.merge import QueryLines, in_order
from stairwise.reports.expansion import output_schema
from stairwise.reports.lines import texts
from stairwise.schema import Type

WIDEST = 40
"""A column grows no wider than this by itself."""


@dataclass(frozen=True)
class _Column:
    name: str
    is_text: bool
    is_time: bool


class TableOutput:
    """Aligned columns for people."""

    def __init__(self, queries: Sequence[Query], file: TextIO) -> None:
        self._file = file
        self._queries = queries
        self._columns = [_columns(query) for query in queries]
        self._widths: list[list[int]] = [[] for _ in queries]
        self._last: int | None = None

    def write(self, pieces: Sequence[QueryLines]) -> None:
        entries = [(piece.query, line) for piece in pieces for line in self._cells(piece)]
        order = in_order(pieces)
        for number in range(len(entries)) if order is None else order.tolist():
            query, cells = entries[number]
            if query != self._last:
                self._print_header(query)
            self._print(query, cells)
        self._file.flush()

    def _cells(self, piece: QueryLines) -> list[list[str]]:
        """The cells of each line."""
        lines = piece.lines
        columns = [
            [_instant(t) for t in lines.times.tolist()],
            [self._queries[piece.query].name] * len(lines.times),
            [f"{diff:+d}" for diff in lines.diff.tolist()],
        ]
        for column, values in zip(self._columns[piece.query], lines.rows.columns, strict=True):
            columns.append(_shown(column, values))
        found = [list(line) for line in zip(*columns, strict=True)]
        if not self._widths[piece.query]:
            heads = ["time", "query", "diff", *(c.name for c in self._columns[piece.query])]
            widths = [max(len(cell) for cell in cells) for cells in zip(heads, *found[:1000], strict=True)]
            self._widths[piece.query] = [min(width, WIDEST) for width in widths]
        return found

    def _print_header(self, query: int) -> None:
        if self._last is not None:
            self._file.write("\n")
        self._last = query
        self._print(query, ["time", "query", "diff", *(c.name for c in self._columns[query])])

    def _print(self, query: int, cells: list[str]) -> None:
        texts_ = [False, False, True, *(not c.is_text for c in self._columns[query])]
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, self._widths[query], texts_, strict=True)
        ]
        self._file.write("  ".join(padded).rstrip() + "\n")

    def close(self) -> None:
        self._file.flush()


def _columns(query: Query) -> list[_Column]:
    types = {output.name: output.type for output in query.relation.outputs}
    return [
        _Column(
            field.name,
            pa.types.is_string(field.type) or types.get(field.name) is Type.TIMESTAMP,
            types.get(field.name) is Type.TIMESTAMP,
        )
        for field in output_schema(query)
    ]


def _shown(column: _Column, values: pa.Array) -> list[str]:
    if column.is_time:
        return ["NULL" if v is None else _instant(v) for v in values.to_pylist()]
    if column.is_text:
        return ["NULL" if v is None else v.replace("\n", "\\n").replace("\r", "\\r") for v in values.to_pylist()]
    return [text.replace("null", "NULL").strip('"') for text in texts(values).to_pylist()]


def _instant(milliseconds: int) -> str:
    """RFC 3339 in UTC, or the bare number outside the years that it can write."""
    try:
        seconds, rest = divmod(milliseconds, 1000)
        time = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds, milliseconds=rest)
    except OverflowError:
        return str(milliseconds)
    return time.isoformat(timespec="milliseconds") + "Z"
