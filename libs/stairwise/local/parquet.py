"""Parquet files. Columns have types of their own here, so a type that cannot be is an error of the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Clock
from stairwise.local.columns import Converted, assembled, check_columns
from stairwise.schema import Column, Stream, Type
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import expected
from stairwise.streams.times import of_arrow

ROWS = 65_536
"""Rows read at a time."""


class Parquet:
    """Rows from a parquet file."""

    def __init__(self, stream: Stream, file: BinaryIO, clock: Clock, name: str) -> None:
        self._stream = stream
        self._name = name
        self._clock = clock
        try:
            self._file = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            hint = "is it whole, and parquet? write or fetch it again"
            raise ConfigError(f"{name} cannot be read as parquet: {error}", hint=hint) from error
        present = self._file.schema_arrow.names
        check_columns(stream, name, present)
        self._columns = [c for c in stream.columns if c.name in present]
        for column in self._columns:
            self._check(column)
        self.rows_read = 0

    @property
    def rows(self) -> int:
        count: int = self._file.metadata.num_rows
        return count

    def _check(self, column: Column) -> None:
        found = self._file.schema_arrow.field(column.name).type
        if not _can_be(column.type, found):
            raise ConfigError(
                f"{self._name}: column {column.name!r} is {found}, and stream {self._stream.name} "
                f"needs {column.type.value}: {expected(self._stream, column)}"
            )

    def check(self) -> None:
        """Read it to its end: pages that are broken show only then."""
        for _ in self._batches():
            pass

    def chunks(self) -> Iterator[Chunk]:
        for batch in self._batches():
            yield self._chunk(batch)
            self.rows_read += batch.num_rows

    def _batches(self) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self._file.iter_batches(ROWS, columns=[c.name for c in self._columns])
        return batches

    def _chunk(self, batch: pa.RecordBatch) -> Chunk:
        def raw(row: int) -> dict[str, object]:
            return {c.name: _shown(batch.column(c.name)[row]) for c in self._columns}

        converted = {c.name: _converted(c, batch.column(c.name)) for c in self._columns}
        numbers = np.arange(batch.num_rows) + self.rows_read + 1
        return assembled(self._stream, converted, numbers, self._clock(), raw)


def _shown(value: pa.Scalar) -> object:
    """A value for people; Python has no nanoseconds."""
    is_finer = pa.types.is_timestamp(value.type) and value.type.unit == "ns"
    return (value.cast(pa.timestamp("us", value.type.tz), safe=False) if is_finer else value).as_py()


def _can_be(wanted: Type, found: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(found):
        return _can_be(wanted, found.value_type)
    match wanted:
        case Type.BIGINT:
            return bool(types.is_integer(found))
        case Type.DOUBLE:
            return bool(types.is_floating(found) or types.is_integer(found) or types.is_decimal(found))
        case Type.BOOLEAN:
            return bool(types.is_boolean(found))
        case Type.TIMESTAMP:
            return bool(types.is_integer(found) or types.is_timestamp(found) or types.is_date(found))
        case _:
            return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))


def _converted(column: Column, values: pa.Array) -> Converted:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_number: np.ndarray | None = None
    if column.type is Type.TIMESTAMP and not pa.types.is_integer(values.type):
        values = values.cast(pa.timestamp("ms")) if pa.types.is_date(values.type) else values
        values, is_number = of_arrow(values), np.zeros(len(values), bool)
    try:
        return Converted(values.cast(column.type.arrow, safe=column.type is not Type.DOUBLE), {}, is_number)
    except pa.ArrowInvalid:
        too_big = pc.fill_null(pc.greater(values, pa.scalar(2**63 - 1, pa.uint64())), False)
        rows = np.flatnonzero(too_big.to_numpy(zero_copy_only=False)).tolist()
        fitting = pc.if_else(too_big, pa.scalar(None, values.type), values)
        return Converted(fitting.cast(column.type.arrow), dict.fromkeys(rows, Code.OUT_OF_RANGE))
