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
from stairwise.schema import TIME_COLUMN, Column, Instant, Stream
from stairwise.streams.rows import EARLIEST, EXPECTED, LATEST, Code, must_be_there, time_out_of_range

SHOWN = 40


@dataclass(frozen=True)
class Converted:
    """A column of the stream's type; ``wrong`` maps rows whose value was none of it to what is wrong."""

    values: pa.Array
    wrong: dict[int, Code]


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
            reasons.setdefault(row, (code, column.name, _wrong_text(column, raw(row))))
        if values.null_count and must_be_there(stream, column):
            for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                text = f"field {column.name!r}: null, but the column is NOT NULL; expected {EXPECTED[column.type]}"
                reasons.setdefault(row, (Code.NULL_FIELD, column.name, text))
    time = arrays[_time_index(stream)].fill_null(0).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero((time < EARLIEST) | (time > LATEST)).tolist():
        text = time_out_of_range(stream, int(time[row]))
        reasons.setdefault(row, (Code.OUT_OF_RANGE, stream.time_column, text))
    schema = pa.schema([pa.field(f.name, f.type) for f in stream.arrow_schema])
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    rejected = [
        Rejected(int(numbers[row]), *reasons[row], msgspec.json.encode(raw(row)).decode()) for row in sorted(reasons)
    ]
    if reasons:
        good = np.ones(length, bool)
        good[list(reasons)] = False
        rows = rows.filter(pa.array(good))
    return Chunk(pa.RecordBatch.from_arrays(rows.columns, schema=stream.arrow_schema), rejected)


def _time_index(stream: Stream) -> int:
    names = [*(c.name for c in stream.columns), TIME_COLUMN]
    return names.index(stream.time_column)


def _wrong_text(column: Column, row: dict[str, object]) -> str:
    shown = msgspec.json.encode(row[column.name]).decode()
    shown = shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."
    return f"field {column.name!r}: expected {EXPECTED[column.type]}, got {shown}"
