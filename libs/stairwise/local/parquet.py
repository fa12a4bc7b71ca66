"""Parquet files. Columns have types of their own here, so a type that cannot be is an error of the whole file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Clock
from stairwise.local.columns import Converted, assembled
from stairwise.schema import Column, Stream, Type
from stairwise.streams.codes import Code
from stairwise.streams.rows import expected
from stairwise.streams.times import of_arrow

ROWS = 65_536
"""Rows read at a time."""


class Parquet:
    """Rows from a parquet file."""

    def __init__(self, stream: Stream, path: str, clock: Clock) -> None:
        self._stream = stream
        self._path = path
        self._clock = clock
        try:
            self._file = pq.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise ConfigError(f"{path} cannot be read as parquet: {error}") from error
        present = self._file.schema_arrow.names
        self._columns = [c for c in stream.columns if c.name in present]
        for column in stream.columns:
            self._check(column, present)
        self.rows_read = 0

    @property
    def rows(self) -> int:
        count: int = self._file.metadata.num_rows
        return count

    def _check(self, column: Column, present: list[str]) -> None:
        if column.name in present:
            found = self._file.schema_arrow.field(column.name).type
            if not _can_be(column.type, found):
                raise ConfigError(
                    f"{self._path}: column {column.name!r} is {found}, and stream {self._stream.name} "
                    f"needs {column.type.value}: {expected(self._stream, column)}"
                )
        elif not column.nullable or column.name == self._stream.timestamp_by:
            raise ConfigError(
                f"{self._path} has no column {column.name!r}, which stream {self._stream.name} needs",
                hint=f"it has {', '.join(present)}",
            )

    def chunks(self) -> Iterator[Chunk]:
        names = [c.name for c in self._columns]
        for batch in self._file.iter_batches(ROWS, columns=names):
            yield self._chunk(batch)
            self.rows_read += batch.num_rows

    def _chunk(self, batch: pa.RecordBatch) -> Chunk:
        def raw(row: int) -> dict[str, object]:
            return {c.name: batch.column(c.name)[row].as_py() for c in self._columns}

        converted = {c.name: _converted(c, batch.column(c.name)) for c in self._columns}
        return assembled(self._stream, converted, batch.num_rows, self.rows_read + 1, self._clock(), raw)


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
