"""Arrow messages: an IPC stream of record batches, checked and brought into the stream's own columns.

The whole message is refused where its schema cannot be the stream's, or where a value does not fit; single rows are
bad only for a NULL or an impossible time. What could be small on the wire and huge in memory is not accepted:
compressed bodies (Kafka compresses anyway), dictionaries and views.

  stream      accepts
  BIGINT      every integer type
  DOUBLE      every integer and floating point type
  STRING      string, large_string
  BOOLEAN     bool
  TIMESTAMP   every integer type (milliseconds, or what the stream says of its time), timestamp of any unit (finer
              digits are cut off; without a zone, UTC)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.schema import Column, Stream, Type
from stairwise.streams.framing import BROKEN, END, end_of_plain_batch, is_compressed, metadata_size
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import BadRow, Decoded, expected, must_be_there, within_time
from stairwise.streams.times import of_arrow

MAX_ROWS = 1 << 20
"""Of one message, and no more than it has bytes: a column of bits is small, the columns that it lacks would not be."""


class RefusedError(Exception):
    """Why a message is not taken, as a whole."""

    def __init__(self, code: Code, field: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


@dataclass(frozen=True)
class ArrowRows:
    """Rows of one or several messages: as they came, and what they are."""

    raw: pa.RecordBatch
    message: np.ndarray
    """For each row of ``raw``, which of the messages it came from."""
    decoded: Decoded
    """``index`` and the bad rows' indices are rows of ``raw``."""

    def excerpt(self, rows: np.ndarray) -> bytes:
        """These rows as a message of their own."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.raw.schema) as writer:
            writer.write_batch(self.raw.take(pa.array(rows)))
        return bytes(sink.getvalue())


@dataclass(frozen=True)
class Refusal:
    """A message that is not taken, as a whole."""

    message: int
    error: RefusedError


class ArrowDecoder:
    """Decodes the Arrow messages of one stream.

    What costs the same for a few rows as for many is done for several messages together: those that begin with the
    schema that was seen last and hold one plain batch are put together as they are and checked as one. Where that
    fails, each is looked at by itself, so what is said of a message does not depend on its neighbours.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._checked: pa.Schema | None = None
        """The schema that was seen last and found right."""
        self._opening: bytes | None = None
        """The bytes with which its messages begin, if batches of it can be put together unseen."""
        self._metadata = b""
        """What the last plain batch said of itself; a batch that says the same is as long and as plain."""
        self._length = 0

    def decode(
        self, values: Sequence[bytes], some: range, times: np.ndarray | None, rows: int
    ) -> Iterator[ArrowRows | Refusal]:
        """Some of the messages in their order, so many ``rows`` at a time; ``times`` are append times."""
        alike: list[pa.RecordBatch] = []
        first = count = 0
        for number in some:
            value = values[number]
            batch = self._plain_batch(value, rows)
            if alike and (batch is None or count + batch.num_rows > rows):
                yield from self._together(alike, values, first, times, rows)
                alike, count = [], 0
            if batch is None:
                yield from self._alone(number, value, times, rows)
                continue
            if not alike:
                first = number
            alike.append(batch)
            count += batch.num_rows
        if alike:
            yield from self._together(alike, values, first, times, rows)

    def _plain_batch(self, value: bytes, rows: int) -> pa.RecordBatch | None:
        """The batch of a message of the usual kind, checked just so far that it is safe to copy."""
        if self._opening is None or not value.startswith(self._opening):
            return None
        start = len(self._opening)
        try:
            end = self._end_of_plain_batch(value, start)
            if end is None or (end != len(value) and value[end:] != END):
                return None
            batch = pa.ipc.read_record_batch(pa.py_buffer(value).slice(start), self._checked)
            batch.validate()
        except (*BROKEN, pa.ArrowException, OSError, EOFError, ValueError):
            return None
        return batch if batch.num_rows <= min(rows, len(value)) else None

    def _end_of_plain_batch(self, value: bytes, start: int) -> int | None:
        if self._metadata and value.startswith(self._metadata, start):
            return start + self._length
        end = end_of_plain_batch(value, start)
        if end is not None:
            self._metadata, self._length = value[start : start + metadata_size(value, start)], end - start
        return end

    def _together(
        self, batches: list[pa.RecordBatch], values: Sequence[bytes], first: int, times: np.ndarray | None, rows: int
    ) -> Iterator[ArrowRows | Refusal]:
        try:
            raw = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            raw.validate(full=True)
            message = np.repeat(np.arange(first, first + len(batches)), [batch.num_rows for batch in batches])
            found = self._conformed(raw, message, times)
        except (pa.ArrowException, RefusedError):
            for number in range(first, first + len(batches)):
                yield from self._alone(number, values[number], times, rows)
        else:
            yield found

    def _alone(self, number: int, value: bytes, times: np.ndarray | None, rows: int) -> Iterator[ArrowRows | Refusal]:
        try:
            for batch in self._batches(value):
                for start in range(0, batch.num_rows, rows):
                    some = batch.slice(start, rows)
                    yield self._conformed(some, np.full(some.num_rows, number), times)
        except RefusedError as error:
            yield Refusal(number, error)

    def _batches(self, value: bytes) -> list[pa.RecordBatch]:
        """All of them or none: a message that is broken further on is refused as a whole."""
        try:
            reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(value))
            schema = self._schema(pa.ipc.read_schema(reader.read_next_message()), value)
            batches: list[pa.RecordBatch] = []
            most = min(MAX_ROWS, len(value))
            for message in reader:
                if message.type != "record batch":
                    raise RefusedError(
                        Code.WRONG_TYPE, None, f"an Arrow message of type {message.type!r}: send batches"
                    )
                if is_compressed(memoryview(message.metadata)):
                    raise RefusedError(
                        Code.MALFORMED, None, "the Arrow batch is compressed; Kafka compresses: send it plain"
                    )
                batch = pa.ipc.read_record_batch(message, schema)
                most -= batch.num_rows
                if most < 0:
                    text = f"more rows than are taken of a message; at most {MAX_ROWS:,}, and one for each byte"
                    raise RefusedError(Code.TOO_LARGE, None, text)
                batch.validate(full=True)
                batches.append(batch)
        except (*BROKEN, pa.ArrowException, OSError, EOFError, ValueError, StopIteration) as error:
            raise RefusedError(
                Code.MALFORMED, None, f"not an Arrow IPC stream: {error or 'it ends too soon'}"
            ) from error
        return batches

    def _schema(self, schema: pa.Schema, value: bytes) -> pa.Schema:
        if self._checked is not None and schema.equals(self._checked):
            return self._checked
        names = schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RefusedError(Code.DUPLICATE_FIELD, twice, f"field {twice!r}: comes more than once in the schema")
        unknown = [name for name in names if name not in self._stream.by_name]
        if unknown and self._stream.reject_unknown:
            raise RefusedError(Code.UNKNOWN_FIELD, unknown[0], f"field {unknown[0]!r}: not declared")
        if len(unknown) == len(names):
            declared = ", ".join(self._stream.by_name)
            raise RefusedError(
                Code.MISSING_FIELD, None, f"no column of the stream is in the batch; declared: {declared}"
            )
        for column in self._stream.columns:
            if column.name in names:
                found = schema.field(column.name).type
                if not _can_be(column.type, found):
                    text = f"field {column.name!r}: expected {expected(self._stream, column)}, got a column of {found}"
                    raise RefusedError(Code.WRONG_TYPE, column.name, text)
            elif must_be_there(self._stream, column):
                text = f"field {column.name!r}: missing; expected {expected(self._stream, column)}"
                raise RefusedError(Code.MISSING_FIELD, column.name, text)
        self._checked = schema
        self._opening = value[: metadata_size(value)] if all(map(_is_plain, schema.types)) else None
        return schema

    def _conformed(self, raw: pa.RecordBatch, message: np.ndarray, times: np.ndarray | None) -> ArrowRows:
        stream, count = self._stream, raw.num_rows
        present = set(raw.schema.names)
        arrays = [
            _converted(stream, c, raw.column(c.name)) if c.name in present else pa.nulls(count, c.type.arrow)
            for c in stream.columns
        ]
        if stream.timestamp_by is None:
            assert times is not None
            arrays.append(pa.array(times[message]))
        index = np.arange(count)
        bad: list[BadRow] = []
        for column, array in zip(stream.columns, arrays, strict=False):
            if array.null_count and must_be_there(stream, column):
                wanted = expected(stream, column)
                text = f"field {column.name!r}: null, but the column is NOT NULL; expected {wanted}"
                null: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
                bad += [BadRow(int(i), Code.NULL_FIELD, column.name, text) for i in index[null[index]]]
                index = index[~null[index]]
        if bad:
            arrays = [array.take(pa.array(index)) for array in arrays]
        rows = pa.RecordBatch.from_arrays(arrays, schema=stream.arrow_schema)
        is_number: np.ndarray | None = None
        if stream.timestamp_by in present and pa.types.is_timestamp(raw.schema.field(stream.timestamp_by).type):
            is_number = np.zeros(rows.num_rows, bool)
        return ArrowRows(raw, message, within_time(stream, Decoded(rows, index, bad), is_number))


def _is_plain(found: pa.DataType) -> bool:
    """Are arrays of this type safe to copy once their ends are checked?"""
    types = pa.types
    return bool(types.is_primitive(found) or types.is_string(found) or types.is_large_string(found))


def _can_be(wanted: Type, found: pa.DataType) -> bool:
    types = pa.types
    match wanted:
        case Type.BIGINT:
            return bool(types.is_integer(found))
        case Type.DOUBLE:
            return bool(types.is_floating(found) or types.is_integer(found))
        case Type.BOOLEAN:
            return bool(types.is_boolean(found))
        case Type.TIMESTAMP:
            return bool(types.is_integer(found) or types.is_timestamp(found))
        case _:
            return bool(types.is_string(found) or types.is_large_string(found))


def _converted(stream: Stream, column: Column, values: pa.Array) -> pa.Array:
    wanted = column.type.arrow
    if values.type.equals(wanted):
        return values
    try:
        if pa.types.is_timestamp(values.type):
            return of_arrow(values)
        return values.cast(wanted, safe=column.type is not Type.DOUBLE)
    except pa.ArrowInvalid as error:
        text = f"field {column.name!r}: expected {expected(stream, column)} of 64 bits: {error}"
        raise RefusedError(Code.OUT_OF_RANGE, column.name, text) from error
