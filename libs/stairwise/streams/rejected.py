"""Rows that a publisher found bad while it read a file: they go through ingest like all others, to the dead letters.

A message is a JSON array, code, field, reason and the row as the file has it, and so can never be read as a row.
"""

from __future__ import annotations

import msgspec

from stairwise.streams.decoded_rows import Bad
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import BadRow

LONGEST = 1 << 20
"""How many characters of a bad row are sent."""


class Rejection(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    code: Code
    field: str | None
    reason: str
    raw: str


_DECODER = msgspec.json.Decoder(Rejection)


def encode(code: Code, field: str | None, reason: str, raw: str) -> bytes:
    return msgspec.json.encode(Rejection(code, field, reason, raw[:LONGEST]))


def decode(message: int, value: bytes) -> Bad:
    """What is wrong with the row that a message is about."""
    try:
        said = _DECODER.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Bad(message, 1, BadRow(message, Code.MALFORMED, None, f"not a rejected row: {error}"), None)
    return Bad(message, 1, BadRow(message, said.code, said.field, said.reason), said.raw.encode())
