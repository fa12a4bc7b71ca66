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

_HEADER = 2
_COMPRESSION = 3
_u32 = struct.Struct("<I").unpack_from
_i32 = struct.Struct("<i").unpack_from
_u16 = struct.Struct("<H").unpack_from


def schema_size(data: bytes) -> int:
    """How many bytes the first message takes; a schema has no body."""
    return int(_u32(data, 4)[0]) + PREFIX


def is_compressed(metadata: memoryview) -> bool:
    """Does a batch's metadata say that its body is compressed?"""
    header = _field(metadata, int(_u32(metadata, 0)[0]), _HEADER)
    if header is None:
        return False
    return _field(metadata, header + int(_u32(metadata, header)[0]), _COMPRESSION) is not None


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer table stands; None if it has none."""
    vtable = table - int(_i32(data, table)[0])
    if 4 + 2 * number >= _u16(data, vtable)[0]:
        return None
    offset = int(_u16(data, vtable + 4 + 2 * number)[0])
    return table + offset if offset else None
