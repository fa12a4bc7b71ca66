"""What an Arrow IPC stream says of itself before it is decoded: how large its schema is, whether a batch is compressed.

    ff ff ff ff │ length │ metadata, a flatbuffer │ body │ ff ff ff ff 00 00 00 00
                                │                            the end, which may be left out
                                └─ Message: header ─▶ RecordBatch: compression

Arrow has no way to ask, and would unpack a small body into a huge one. Whatever is cut off or points nowhere raises
one of ``BROKEN``.
"""

from __future__ import annotations

import struct

MARKER = b"\xff\xff\xff\xff"
"""How an IPC stream begins, and each of its messages."""
PREFIX = 8
"""The bytes before the metadata: the marker and the length."""
END = MARKER + bytes(4)
BROKEN = (struct.error, IndexError)

_KIND, _HEADER, _BODY = 1, 2, 3
_RECORD_BATCH = 3
_COMPRESSION = 3
_u32 = struct.Struct("<I").unpack_from
_i32 = struct.Struct("<i").unpack_from
_i64 = struct.Struct("<q").unpack_from
_u16 = struct.Struct("<H").unpack_from


def metadata_size(data: bytes, start: int = 0) -> int:
    """How many bytes the message that begins here takes without its body, which a schema has none of."""
    return int(_u32(data, start + 4)[0]) + PREFIX


def is_compressed(metadata: memoryview) -> bool:
    """Does a batch's metadata say that its body is compressed?"""
    header = _field(metadata, int(_u32(metadata, 0)[0]), _HEADER)
    return header is not None and _has_compression(metadata, header)


def end_of_plain_batch(data: bytes, start: int) -> int | None:
    """Where the message that begins here ends, if it is a record batch that is not compressed."""
    if not data.startswith(MARKER, start):
        return None
    metadata = start + PREFIX
    message = metadata + int(_u32(data, metadata)[0])
    kind, header, body = _field(data, message, _KIND), _field(data, message, _HEADER), _field(data, message, _BODY)
    if kind is None or data[kind] != _RECORD_BATCH or header is None or _has_compression(data, header):
        return None
    return metadata + int(_u32(data, start + 4)[0]) + (0 if body is None else int(_i64(data, body)[0]))


def _has_compression(data: bytes | memoryview, header: int) -> bool:
    return _field(data, header + int(_u32(data, header)[0]), _COMPRESSION) is not None


def _field(data: bytes | memoryview, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer table stands; None if it has none."""
    vtable = table - int(_i32(data, table)[0])
    if 4 + 2 * number >= _u16(data, vtable)[0]:
        return None
    offset = int(_u16(data, vtable + 4 + 2 * number)[0])
    return table + offset if offset else None
