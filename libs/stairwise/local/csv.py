"""Comma-separated values with a header line. An empty field is NULL; a quoted empty one is the empty string.

Fields are read as bytes, then turned into the stream's types a column at a time. Only a column in which Arrow finds
something wrong is looked at value by value.
"""

from __future__ import annotations

import datetime
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Clock, Rejected
from stairwise.local.columns import Converted, assembled, check_columns
from stairwise.schema import Column, Stream, Type
from stairwise.streams.reason_codes import Code
from stairwise.streams.times import floored

BLOCK = 4 * 2**20
_INTEGER = re.compile(r"-?[0-9]+")
_DIGITS = re.compile(rb"-?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class CommaSeparated:
    """Rows from a binary file of comma-separated values."""

    def __init__(self, stream: Stream, file: BinaryIO, clock: Clock, name: str) -> None:
        self._stream = stream
        self._file = file
        self._clock = clock
        self._name = name
        self._torn: deque[Rejected] = deque()
        """Lines that have too few or too many fields; the reader is ahead of the chunk that is being made."""

    def chunks(self) -> Iterator[Chunk]:
        reader = self._open()
        if reader is None:
            return
        present = self._names(reader)
        columns = [c for c in self._stream.columns if c.name in present]
        check_columns(self._stream, self._name, present)
        number = 2  # the header is the first line
        for batch in reader:
            torn: list[Rejected] = []
            while self._torn and self._torn[0].number < number + batch.num_rows + len(torn):
                torn.append(self._torn.popleft())
            end = number + batch.num_rows + len(torn)
            numbers = np.setdiff1d(np.arange(number, end), [bad.number for bad in torn])
            number = end
            chunk = self._chunk(batch, columns, numbers)
            yield Chunk(chunk.rows, sorted([*torn, *chunk.rejected], key=lambda bad: bad.number))
        if self._torn:
            yield Chunk(pa.RecordBatch.from_pylist([], schema=self._stream.arrow_schema), list(self._torn))

    def _open(self) -> csv.CSVStreamingReader | None:
        """The file as batches of bytes; None where it is empty."""
        names = [c.name for c in self._stream.columns]
        try:
            return csv.open_csv(
                pa.PythonFile(self._file, "r"),
                csv.ReadOptions(use_threads=False, block_size=BLOCK),
                csv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._reject),
                csv.ConvertOptions(
                    column_types={name: pa.binary() for name in names},
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return None
            raise ConfigError(f"{self._name} cannot be read as csv: {error}") from error

    def _names(self, reader: csv.CSVStreamingReader) -> list[str]:
        try:
            names: list[str] = reader.schema.names
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{self._name} cannot be read as csv: its header is not valid UTF-8", hint="is it a csv file at all?"
            ) from error
        return names

    def _reject(self, row: Any) -> str:
        text = f"{row.actual_columns} fields where the header has {row.expected_columns}"
        number = row.number if row.number is not None else 0
        self._torn.append(Rejected(number, Code.MALFORMED, None, text, row.text))
        return "skip"

    def _chunk(self, batch: pa.RecordBatch, columns: list[Column], numbers: np.ndarray) -> Chunk:
        def raw(row: int) -> dict[str, object]:
            found = {c.name: batch.column(c.name)[row].as_py() for c in columns}
            return {name: v.decode("utf-8", "replace") if v is not None else None for name, v in found.items()}

        converted = {c.name: from_text(c, batch.column(c.name)) for c in columns}
        return assembled(self._stream, converted, numbers, self._clock(), raw)


def from_text(column: Column, fields: pa.BinaryArray) -> Converted:
    """The fields of a column as values of its type."""
    try:
        return Converted(_at_once(column.type, pc.cast(fields, pa.string())), {})
    except pa.ArrowInvalid:
        return _one_by_one(column, fields)


def _at_once(type_: Type, texts: pa.StringArray) -> pa.Array:
    if type_ is Type.TIMESTAMP:
        is_integer = pc.match_substring_regex(texts, r"^-?[0-9]+$")
        if not pc.all(is_integer).as_py():
            raise pa.ArrowInvalid("not all milliseconds")
    return pc.cast(texts, type_.arrow)


def _one_by_one(column: Column, fields: pa.BinaryArray) -> Converted:
    convert = _CONVERSIONS[column.type]
    values: list[Any] = []
    wrong: dict[int, Code] = {}
    texts = fields.to_pylist()
    for i, field in enumerate(texts):
        value = None
        if field is not None:
            try:
                value = convert(field.decode())
            except UnicodeDecodeError:
                wrong[i] = Code.MALFORMED
            except OverflowError:
                wrong[i] = Code.OUT_OF_RANGE
            except (ValueError, msgspec.ValidationError):
                wrong[i] = Code.WRONG_TYPE
        values.append(value)
    is_number: np.ndarray | None = None
    if column.type is Type.TIMESTAMP:
        is_number = np.array([field is not None and _DIGITS.fullmatch(field) is not None for field in texts], bool)
    return Converted(pa.array(values, column.type.arrow), wrong, is_number)


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    if len(text) > 20 or not -(2**63) <= (value := int(text)) < 2**63:
        raise OverflowError(text)
    return value


def _double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _timestamp(text: str) -> int:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    time = msgspec.convert(text, datetime.datetime)
    if time.tzinfo is None:
        raise ValueError(text)
    return floored(time, text)


_CONVERSIONS: dict[Type, Callable[[str], Any]] = {
    Type.BIGINT: _integer,
    Type.DOUBLE: _double,
    Type.STRING: str,
    Type.BOOLEAN: _boolean,
    Type.TIMESTAMP: _timestamp,
}
