"""From JSON to columns: every message is either a row of the stream or a bad row with a reason.

      messages   {"ts":1,"qty":5}   {"ts":2,"qty":"x"}   {"ts":3}
                        │                   │               │
      rows              0                   ✗               1         qty: 5, NULL
      index             0                                   2         the message that each row came from
      bad                           (1, WRONG_TYPE, "qty")

Decoding is msgspec's, one typed struct per message: it validates while it parses. ``list.extend`` over
a ``map`` keeps the rows before an exception and the same iterator goes on behind it, so good rows are never
touched one by one in Python, and only a bad row pays for a diagnosis of its own.

What a message may hold:

  BIGINT      an integer of 64 bits; 1.0 is not one
  DOUBLE      a number, or one of the strings "NaN", "Infinity" and "-Infinity"
  STRING      a string
  BOOLEAN     true or false
  TIMESTAMP   integer milliseconds, or an RFC 3339 string with its offset (finer digits are cut off)

Of the time column, integers count what the stream says, milliseconds if it says nothing (see ``times``).

A missing field is NULL. Fields that the stream does not declare are skipped unread, or make the row bad if the
stream says REJECT UNKNOWN FIELDS. A declared field that comes twice makes it bad: which one was meant? Every
instant must lie in the years 1 to 9999.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.schema import LATEST, Column, Instant, Stream, Type
from stairwise.streams.duplicates import DuplicateFinder
from stairwise.streams.objects import FIELDS, ObjectField, object_reader
from stairwise.streams.reason_codes import Code
from stairwise.streams.times import beyond_all_years, floored, in_milliseconds

_BIGINT = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_DOUBLE = float | Literal["NaN", "Infinity", "-Infinity"]
_TIMESTAMP = _BIGINT | Annotated[datetime.datetime, msgspec.Meta(tz=True)]
_JSON_TYPES: dict[Type, Any] = {
    Type.BIGINT: _BIGINT,
    Type.DOUBLE: _DOUBLE,
    Type.STRING: str,
    Type.BOOLEAN: bool,
    Type.TIMESTAMP: _TIMESTAMP,
}
_VALUES = {type_: msgspec.json.Decoder(json_type) for type_, json_type in _JSON_TYPES.items()}
_INTEGER = re.compile(rb"-?[0-9]+")
_FINER_INSTANT = re.compile(rb'\.[0-9]{7,}(?:[Zz]|[+-][0-9:]+)"')
_EXPECTED = {
    Type.BIGINT: "an integer",
    Type.DOUBLE: 'a number, "NaN", "Infinity" or "-Infinity"',
    Type.STRING: "a string",
    Type.BOOLEAN: "true or false",
    Type.TIMESTAMP: "integer milliseconds or an RFC 3339 string with its offset",
}
"""What a value of each type looks like, for messages to people."""


def expected(stream: Stream, column: Column) -> str:
    """What a value of a column looks like, for messages to people."""
    text = _EXPECTED[column.type]
    if column.name == stream.timestamp_by and stream.unit is not None:
        return text.replace("milliseconds", stream.unit.value.lower())
    return text


@dataclass(frozen=True)
class BadRow:
    index: int
    """The message's place among those given to ``decode``."""
    code: Code
    field: str | None
    message: str


@dataclass(frozen=True)
class Decoded:
    rows: pa.RecordBatch
    """The good rows, with the stream's Arrow schema."""
    index: np.ndarray
    """For each row, the message that it came from."""
    bad: list[BadRow]


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the decoder raises for text that is no row."""


class RowDecoder:
    """Decodes the JSON messages of one stream."""

    def __init__(self, stream: Stream, latest: Instant = LATEST) -> None:
        """``latest`` is the latest time that a row may have."""
        self._stream = stream
        self._latest = latest
        fields = [ObjectField(c.name, _JSON_TYPES[c.type], must_be_there(stream, c)) for c in stream.columns]
        self._reader = object_reader(fields, forbid_unknown=stream.reject_unknown)
        self._duplicates = DuplicateFinder(column.name for column in stream.columns)
        self.read = self._reader.read
        """One message to an object; raises one of ``UNREADABLE``."""

    def decode(self, messages: Sequence[bytes], times: np.ndarray | None = None) -> Decoded:
        """All messages as rows or bad rows; ``times`` are append times, for a stream without TIMESTAMP BY."""
        structs: list[Any] = []
        bad: list[BadRow] = []
        rest = map(self.read, messages)
        while True:
            try:
                structs.extend(rest)
                break
            except UNREADABLE as error:
                at = len(structs) + len(bad)
                bad.append(diagnose(self._stream, messages[at], at, error))
        index = _kept(len(messages), [b.index for b in bad])
        kept = messages if not bad else [messages[i] for i in index.tolist()]
        if times is not None:
            times = times[index]
        decoded = self.columns(structs, times, b"".join(kept), lambda: kept)
        bad += [replace(b, index=int(index[b.index])) for b in decoded.bad]
        return Decoded(decoded.rows, index[decoded.index], sorted(bad, key=lambda b: b.index))

    def decode_lines(self, block: bytes, times: np.ndarray | None = None) -> Decoded | None:
        """Lines of one message each, decoded in one go; None where some line has to be looked at by itself.

        The decoder would also take two objects on a line, or one on two lines. But where every line begins with
        ``{`` and ends with ``}``, an object cannot go on behind a line end: no JSON has ``}`` before ``{``.
        """
        if (structs := self.structs_of(block)) is None:
            return None
        decoded = self.columns(structs, times, block, lambda: block.removesuffix(b"\n").split(b"\n"))
        return decoded if not decoded.bad else None

    def structs_of(self, block: bytes) -> list[Any] | None:
        """The structs of a block of lines, one for each; None where some line has to be looked at by itself."""
        lines = block.count(b"\n")
        if not block.startswith(b"{") or not block.endswith(b"}\n") or block.count(b"}\n{") != lines - 1:
            return None
        try:
            structs = self._reader.read_lines(block)
        except UNREADABLE:
            return None
        return structs if len(structs) == lines else None

    def columns(
        self, structs: list[Any], times: np.ndarray | None, text: bytes, raw: Callable[[], Sequence[bytes]]
    ) -> Decoded:
        """Structs as rows. ``text`` is all that they were read from; ``raw``, asked only in doubt, that of each."""
        columns = []
        is_number: np.ndarray | None = None
        for values, column in zip(self._reader.values, self._stream.columns, strict=True):
            found = values(structs)
            array, is_plain = _column(column, found, lambda: raw() if _FINER_INSTANT.search(text) else None)
            columns.append(array)
            if column.name == self._stream.timestamp_by and not is_plain:
                is_number = np.fromiter((type(value) is int for value in found), bool, len(found))
        if self._stream.timestamp_by is None:
            if times is None:
                raise ValueError(f"stream {self._stream.name} takes its time from the transport: give times")
            columns.append(pa.array(np.asarray(times, np.int64)))
        rows = pa.RecordBatch.from_arrays(columns, schema=self._stream.arrow_schema)
        twice = self._duplicates.find(text, raw, columns)
        if not twice:
            return within_time(self._stream, Decoded(rows, np.arange(len(structs)), []), is_number, self._latest)
        is_kept = np.ones(len(structs), bool)
        is_kept[list(twice)] = False
        bad = [
            BadRow(at, Code.DUPLICATE_FIELD, name, f"field {name!r}: comes more than once in the object")
            for at, name in twice.items()
        ]
        is_number = None if is_number is None else is_number[is_kept]
        once = Decoded(rows.filter(pa.array(is_kept)), np.flatnonzero(is_kept), bad)
        return within_time(self._stream, once, is_number, self._latest)


def diagnose(stream: Stream, message: bytes, index: int, error: Exception) -> BadRow:
    """Say what is wrong with a message that could not be decoded: the first bad field in declared order."""
    if isinstance(error, RecursionError):
        return BadRow(index, Code.MALFORMED, None, "the JSON is nested too deeply")
    if not message.strip():
        return BadRow(index, Code.MALFORMED, None, "the message is empty; one JSON object was expected")
    try:
        message.decode()
        row = FIELDS.decode(message)
    except UnicodeDecodeError:
        return BadRow(index, Code.MALFORMED, None, "the message is not valid UTF-8")
    except RecursionError:
        return BadRow(index, Code.MALFORMED, None, "the JSON is nested too deeply")
    except msgspec.ValidationError:
        shown = _shown(message.strip())
        return BadRow(index, Code.MALFORMED, None, f"one JSON object was expected, got {shown}")
    except msgspec.DecodeError as malformed:
        return BadRow(index, Code.MALFORMED, None, str(malformed))
    if stream.reject_unknown:
        for name in row:
            if name not in stream.by_name:
                known = ", ".join(stream.by_name)
                return BadRow(index, Code.UNKNOWN_FIELD, name, f"field {name!r}: not declared; declared: {known}")
    for column in stream.columns:
        found = _wrong(stream, column, row)
        if found is not None:
            return BadRow(index, found[0], column.name, f"field {column.name!r}: {found[1]}")
    code = Code.OUT_OF_RANGE if "out of range" in str(error) else Code.MALFORMED
    return BadRow(index, code, None, str(error))


def must_be_there(stream: Stream, column: Column) -> bool:
    return not column.nullable or column.name == stream.timestamp_by


def _wrong(stream: Stream, column: Column, row: Mapping[str, msgspec.Raw]) -> tuple[Code, str] | None:
    """What is wrong with a column's value in a row, if anything is."""
    wanted = expected(stream, column)
    if column.name not in row:
        if not must_be_there(stream, column):
            return None
        return Code.MISSING_FIELD, f"missing; expected {wanted}"
    value = bytes(row[column.name])
    if value == b"null":
        forbidden = must_be_there(stream, column)
        return (Code.NULL_FIELD, f"null, but the column is NOT NULL; expected {wanted}") if forbidden else None
    try:
        _VALUES[column.type].decode(value)
    except msgspec.ValidationError as error:
        if "out of range" in str(error):  # of every type: what the row's own decoder said stands
            return None
        too_big = column.type in (Type.BIGINT, Type.TIMESTAMP) and _INTEGER.fullmatch(value) is not None
        code = Code.OUT_OF_RANGE if too_big else Code.WRONG_TYPE
        what = f"{wanted} of 64 bits" if too_big else wanted
        return code, f"expected {what}, got {_shown(value)}"
    return None


def _shown(value: bytes) -> str:
    """A JSON value for a message: its text, cut short."""
    text = value[:41].decode(errors="replace")
    return text if len(value) <= 40 else text[:37] + "..."


def _kept(count: int, bad: list[int]) -> np.ndarray:
    if not bad:
        return np.arange(count)
    keep = np.ones(count, bool)
    keep[bad] = False
    return np.flatnonzero(keep)


def _column(column: Column, values: list[Any], finer: Callable[[], Sequence[bytes] | None]) -> tuple[pa.Array, bool]:
    """The values of a column in its Arrow type, and whether all were plain.

    Rare spellings are only looked for where Arrow refuses. ``finer`` gives the messages if some may hold an instant
    with digits beyond microseconds.
    """
    try:
        return pa.array(values, column.type.arrow), True
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if column.type is Type.DOUBLE:
            return pa.array([float(v) if isinstance(v, str) else v for v in values], pa.float64()), False
        if column.type is not Type.TIMESTAMP:
            raise
        messages = finer()
        times = [
            floored(v, None if messages is None else msgspec.json.decode(messages[at])[column.name])
            if isinstance(v, datetime.datetime)
            else v
            for at, v in enumerate(values)
        ]
        return pa.array(times, pa.int64()), False


def within_time(
    stream: Stream, decoded: Decoded, is_number: np.ndarray | None = None, latest: Instant = LATEST
) -> Decoded:
    """The rows with their times in milliseconds; those with an instant that cannot be are moved to the bad ones.

    ``is_number`` and ``latest`` are as ``in_milliseconds`` has them.
    """
    came: np.ndarray = decoded.rows.column(stream.time_column).to_numpy()
    time, wrong = in_milliseconds(stream, came, is_number, latest)
    rows = decoded.rows
    if time is not came:
        at = rows.schema.get_field_index(stream.time_column)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(time))
    reasons = {at: (code, stream.time_column, text) for at, (code, text) in wrong.items()}
    for at, name, text in beyond_all_years(stream, rows):
        reasons.setdefault(at, (Code.OUT_OF_RANGE, name, text))
    if not reasons:
        return Decoded(rows, decoded.index, decoded.bad)
    bad = decoded.bad + [BadRow(int(decoded.index[at]), *reason) for at, reason in reasons.items()]
    kept = _kept(len(time), list(reasons))
    return Decoded(rows.take(pa.array(kept)), decoded.index[kept], sorted(bad, key=lambda b: b.index))
