"""Results as files: JSON lines, comma-separated values, parquet. Tables for people are in ``table``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from stairwise.algebra.query import Query
from stairwise.errors import ConfigError
from stairwise.local.merge import QueryLines, in_order, ordered
from stairwise.reports.expansion import output_schema
from stairwise.reports.lines import json_lines, texts, to_bytes


class LineWriter(Protocol):
    """Takes the result lines, a piece of the output at a time."""

    def write(self, pieces: Sequence[QueryLines]) -> None: ...

    def close(self) -> None: ...


class JsonOutput:
    """One JSON object per line."""

    def __init__(self, queries: Sequence[Query], file: BinaryIO) -> None:
        self._names = [query.name for query in queries]
        self._file = file

    def write(self, pieces: Sequence[QueryLines]) -> None:
        lines = [json_lines(self._names[piece.query], piece.lines) for piece in pieces]
        self._file.write(to_bytes(ordered(lines, in_order(pieces))))

    def close(self) -> None:
        self._file.flush()


class CsvOutput:
    """Comma-separated values under a header: query, time, diff, then the columns of all queries.

    A column that a query does not have is empty in its lines, as NULL is; the empty string is "".
    """

    def __init__(self, queries: Sequence[Query], file: BinaryIO) -> None:
        self._names = [query.name for query in queries]
        self._columns = list(_all_columns(queries))
        self._file = file
        header = ["query", "time", "diff", *self._columns]
        file.write((",".join(_csv_field(name) for name in header) + "\n").encode())

    def write(self, pieces: Sequence[QueryLines]) -> None:
        lines = [self._lines(piece) for piece in pieces]
        self._file.write(to_bytes(ordered(lines, in_order(pieces))))

    def _lines(self, piece: QueryLines) -> pa.StringArray:
        lines = piece.lines
        parts = [pa.array(lines.times), pa.array(lines.diff)]
        parts += [lines.rows.column(n) if n in lines.rows.schema.names else None for n in self._columns]
        fields = ["" if column is None else csv_texts(column) for column in parts]
        name = pa.array([_csv_field(self._names[piece.query])] * len(lines.times))
        joined = pc.binary_join_element_wise(name, *fields, ",")
        return pc.binary_join_element_wise(joined, "\n", "")

    def close(self) -> None:
        self._file.flush()


class ParquetOutput:
    """A parquet file with the columns query, time, diff, then the columns of all queries."""

    def __init__(self, queries: Sequence[Query], file: BinaryIO) -> None:
        import pyarrow.parquet as pq

        self._names = [query.name for query in queries]
        head = [pa.field("query", pa.string()), pa.field("time", pa.int64()), pa.field("diff", pa.int8())]
        self._schema = pa.schema([*head, *(pa.field(n, t) for n, t in _all_columns(queries).items())])
        self._writer = pq.ParquetWriter(file, self._schema)

    def write(self, pieces: Sequence[QueryLines]) -> None:
        batches = [self._batch(piece) for piece in pieces]
        order = in_order(pieces)
        columns = [ordered([b.column(i) for b in batches], order) for i in range(len(self._schema))]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _batch(self, piece: QueryLines) -> pa.RecordBatch:
        lines = piece.lines
        name = pa.array([self._names[piece.query]] * len(lines.times), pa.string())
        columns = [name, pa.array(lines.times), pa.array(lines.diff, pa.int8())]
        for field in list(self._schema)[3:]:
            has = field.name in lines.rows.schema.names
            columns.append(lines.rows.column(field.name) if has else pa.nulls(len(lines.times), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def close(self) -> None:
        self._writer.close()


def _all_columns(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """The output columns of all queries by name, in order of first mention."""
    found: dict[str, pa.DataType] = {}
    for query in queries:
        for field in output_schema(query):
            if field.name in ("query", "time", "diff"):
                raise ConfigError(
                    f"query {query.name} has a column {field.name!r}, which every line of this format has already",
                    hint="give it another name with AS, or take --format jsonl",
                )
            if found.setdefault(field.name, field.type) != field.type:
                raise ConfigError(
                    f"the queries have columns {field.name!r} of different types, which this format cannot hold",
                    hint="name them differently with AS, run the queries one by one, or take --format jsonl",
                )
    return found


def csv_texts(column: pa.Array) -> pa.StringArray:
    """The fields of a column: NULL is nothing, a string is quoted where it must be."""
    if not pa.types.is_string(column.type):
        written = pc.replace_substring(texts(column), '"', "")  # around NaN and the infinities
        return pc.if_else(column.is_valid(), written, "")
    must = pc.or_(pc.match_substring_regex(column, r'[",\r\n]'), pc.equal(column, ""))
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.fill_null(pc.if_else(must, quoted, column), "")


def _csv_field(text: str) -> str:
    field: str = csv_texts(pa.array([text]))[0].as_py()
    return field
