"""Why a row is bad, in one word."""

from __future__ import annotations

import enum


class Code(enum.Enum):
    """Why a row is bad."""

    MALFORMED = "MALFORMED"
    """Not one JSON object in valid UTF-8, nor lines of them, nor an Arrow stream."""
    WRONG_TYPE = "WRONG_TYPE"
    MISSING_FIELD = "MISSING_FIELD"
    NULL_FIELD = "NULL_FIELD"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    """Only for a stream that says REJECT UNKNOWN FIELDS."""
    DUPLICATE_FIELD = "DUPLICATE_FIELD"
    FUTURE = "FUTURE"
    """Further ahead of its message's append time than the stream's FUTURE."""
    UNIT = "UNIT"
    """A time that is likely in another unit than milliseconds, of a stream that names none."""
    TOO_LARGE = "TOO_LARGE"
    SEALED = "SEALED"
    """It came while the stream was sealed or dropped."""
    TOMBSTONE = "TOMBSTONE"
    """A message for a table that has a key and no value: rows of a table are replaced, never deleted."""
