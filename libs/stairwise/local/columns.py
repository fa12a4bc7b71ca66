"""Rows from files that come in columns (csv, parquet): the same rules as for JSON, a column at a time.

file column ──converted──▶ values of the stream's type, and which of them are none
all columns ──assembled──▶ a chunk: the rows of which every value is right, and the others with the first reason
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Rejected
from stairwise.schema import Column, Instant, Stream
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import expected, must_be_there
from stairwise.streams.times import beyond_all_years, in_milliseconds, latest_in_files

SHOWN = 40


@dataclass(frozen=True)
class Converted:
    """A column of the stream's type; ``wrong`` maps rows whose value was none of it to what is wrong."""

    values: pa.Array
    wrong: dict[int, Code]
    is_number: np.ndarray | None = None
    """Of instants, which rows said theirs by a number; None: all."""


def check_columns(stream: Stream, file: str, present: list[str]) -> None:
    """A file without a column that must be there, or with none of the stream's, is none of its files."""
    for column in stream.columns:
        if must_be_there(stream, column) and column.name not in present:
            raise ConfigError(
                f"{file} has no column {column.name!r}, which stream {stream.name} needs",
                hint=f"it has {', '.join(present)}",
            )
    if not set(present) & set(stream.by_name):
        raise ConfigError(
            f"{file} has no column of stream {stream.name}: {', '.join(stream.by_name)}",
            hint=f"it has {', '.join(present)}",
        )


def assembled(
    stream: Stream,
    columns: dict[str, Converted],
    numbers: np.ndarray,
    now: Instant,
    raw: Callable[[int], dict[str, object]],
) -> Chunk:
    """A chunk from converted columns; those the file lacks are NULL.

    ``numbers`` says where the rows stand in their file, ``now`` is the time of rows whose stream declares none, and
    ``raw`` shows a row as the file has it.
    """
    length = len(numbers)
    arrays = [columns[c.name].values if c.name in columns else pa.nulls(length, c.type.arrow) for c in stream.columns]
    if stream.timestamp_by is None:
        arrays.append(pa.array(np.full(length, now, np.int64)))
    reasons: dict[int, tuple[Code, str, str]] = {}
    for column, values in zip(stream.columns, arrays, strict=False):
        wrong = columns[column.name].wrong if column.name in columns else {}
        for row, code in wrong.items():
            reasons.setdefault(row, (code, column.name, _wrong_text(stream, column, raw(row))))
        if values.null_count and must_be_there(stream, column):
            for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                wanted = expected(stream, column)
                text = f"field {column.name!r}: null, but the column is NOT NULL; expected {wanted}"
                reasons.setdefault(row, (Code.NULL_FIELD, column.name, text))
    at = stream.arrow_schema.get_field_index(stream.time_column)
    came = arrays[at].fill_null(0).to_numpy(zero_copy_only=False)
    is_number = columns[stream.time_column].is_number if stream.time_column in columns else None
    time, wrong_times = in_milliseconds(stream, came, is_number, latest_in_files(stream))
    arrays[at] = pa.array(time)
    for row, (code, text) in wrong_times.items():
        reasons.setdefault(row, (code, stream.time_column, text))
    schema = pa.schema([pa.field(f.name, f.type) for f in stream.arrow_schema])
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for row, name, text in beyond_all_years(stream, rows):
        reasons.setdefault(row, (Code.OUT_OF_RANGE, name, text))
    rejected = [
        Rejected(int(numbers[row]), *reasons[row], msgspec.json.encode(raw(row)).decode()) for row in sorted(reasons)
    ]
    if reasons:
        good = np.ones(length, bool)
        good[list(reasons)] = False
        rows = rows.filter(pa.array(good))
    return Chunk(pa.RecordBatch.from_arrays(rows.columns, schema=stream.arrow_schema), rejected)


def _wrong_text(stream: Stream, column: Column, row: dict[str, object]) -> str:
    shown = msgspec.json.encode(row[column.name]).decode()
    shown = shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."
    return f"field {column.name!r}: expected {expected(stream, column)}, got {shown}"
