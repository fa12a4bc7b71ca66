"""Rows in protobuf's wire format, column by column: what ``Row.SerializeToString`` gives, without an object a row.

    column BIGINT     5        ∅        -1              Value   08 0a │      │ 08 01
    column STRING     "ab"     "c"      ∅               Value   1a 02 61 62 │ 1a 01 63 │
    row               0a 02 08 0a  0a 04 1a 02 61 62    Row     each value behind its tag and length

    answers        the bytes of each row of a batch, as one Arrow array
    update         O(bytes), by numpy and Arrow kernels
    space          O(bytes)

A varint has 7 bits a byte, lowest first, and a high bit that says "more"; zigzag maps 0, −1, 1, −2, … to 0, 1, 2, 3, ….
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.views import int64_view
from stairwise.schema import Type

_VALUE_IN_ROW = b"\x0a"
_DIFF, _ROW_IN_CHANGE, _UNTIL = b"\x08", b"\x12", b"\x18"


def rows(types: Sequence[Type], batch: pa.RecordBatch) -> pa.BinaryArray:
    """Of each row, the bytes of its ``Row``."""
    parts: list[object] = []
    for type_, column in zip(types, batch.columns, strict=True):
        parts += [_VALUE_IN_ROW, *_with_length(_values(type_, column))]
    return _joined(parts, batch.num_rows)


def changes(diff: np.ndarray, of_rows: pa.BinaryArray, until: np.ndarray | None) -> pa.BinaryArray:
    """Of each row, the bytes of its ``Update.Change``."""
    parts = [_DIFF, _varints(_zigzag(diff.astype(np.int64))), _ROW_IN_CHANGE, *_with_length(of_rows)]
    return _joined(parts if until is None else [*parts, _UNTIL, _varints(_zigzag(until))], len(diff))


def fields(tag: bytes, messages: pa.BinaryArray) -> pa.BinaryArray:
    """Each message as an element of a repeated field."""
    return _joined([tag, *_with_length(messages)], len(messages))


def lengths(messages: pa.BinaryArray) -> np.ndarray:
    return np.asarray(pc.binary_length(messages)).astype(np.int64)


def content(messages: pa.BinaryArray) -> bytes:
    """All messages, one after the other."""
    if len(messages) == 0:
        return b""
    offsets = np.frombuffer(messages.buffers()[1], np.int32)
    start, stop = int(offsets[messages.offset]), int(offsets[messages.offset + len(messages)])
    found: bytes = messages.buffers()[2].slice(start, stop - start).to_pybytes()
    return found


def delimited(tag: bytes, message: bytes) -> bytes:
    """One message as a field."""
    length, rest = bytearray(), len(message)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return tag + bytes([*length, rest]) + message


def _values(type_: Type, column: pa.Array) -> pa.BinaryArray:
    """Of each cell, the bytes of its ``Value``; NULL has none."""
    written = _WRITERS[type_](column.fill_null(_FILL[type_]) if column.null_count else column)
    return pc.if_else(column.is_valid(), written, b"") if column.null_count else written


def _integers(column: pa.Array) -> pa.BinaryArray:
    return _joined([b"\x08", _varints(_zigzag(int64_view(column)))], len(column))


def _doubles(column: pa.Array) -> pa.BinaryArray:
    cells = np.empty((len(column), 9), np.uint8)
    cells[:, 0] = 0x11
    cells[:, 1:] = np.ascontiguousarray(column.to_numpy(zero_copy_only=False), "<f8").view(np.uint8).reshape(-1, 8)
    return _from_cells(cells, np.full(len(column), 9, np.int32))


def _strings(column: pa.Array) -> pa.BinaryArray:
    return _joined([b"\x1a", *_with_length(column.cast(pa.binary()))], len(column))


def _booleans(column: pa.Array) -> pa.BinaryArray:
    return pc.if_else(column, b"\x20\x01", b"\x20\x00")


def _huge(column: pa.Array) -> pa.BinaryArray:
    return _joined([b"\x2a", *_with_length(column.cast(pa.string()).cast(pa.binary()))], len(column))


_WRITERS: dict[Type, Callable[[pa.Array], pa.BinaryArray]] = {
    Type.BIGINT: _integers,
    Type.TIMESTAMP: _integers,
    Type.DOUBLE: _doubles,
    Type.STRING: _strings,
    Type.BOOLEAN: _booleans,
    Type.HUGEINT: _huge,
}
_FILL: dict[Type, object] = {
    Type.BIGINT: 0,
    Type.TIMESTAMP: 0,
    Type.DOUBLE: 0.0,
    Type.STRING: "",
    Type.BOOLEAN: False,
    Type.HUGEINT: 0,
}


def _with_length(messages: pa.BinaryArray) -> list[pa.BinaryArray]:
    return [_varints(lengths(messages).astype(np.uint64)), messages]


def _zigzag(values: np.ndarray) -> np.ndarray:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _varints(values: np.ndarray) -> pa.BinaryArray:
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    cells = np.empty((len(values), width), np.uint8)
    length = np.ones(len(values), np.int32)
    for place in range(width):
        cells[:, place] = values & np.uint64(0x7F)
        values = values >> np.uint64(7)
        if place + 1 < width:
            more = values != 0
            cells[more, place] |= 0x80
            length += more
    return _from_cells(cells, length)


def _from_cells(cells: np.ndarray, length: np.ndarray) -> pa.BinaryArray:
    """The first bytes of each line of a matrix."""
    offsets = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=offsets[1:])
    full = int(offsets[-1]) == cells.size
    data = cells if full else cells[np.arange(cells.shape[1], dtype=np.int32) < length[:, None]]
    return pa.BinaryArray.from_buffers(pa.binary(), len(length), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _joined(parts: Sequence[object], count: int) -> pa.BinaryArray:
    if count == 0 or not parts:
        return pa.array([b""] * count, pa.binary())
    return pc.binary_join_element_wise(*(_scalar(part) for part in parts), pa.scalar(b"", pa.binary()))


def _scalar(part: object) -> object:
    return pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part
