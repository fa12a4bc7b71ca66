"""Which signatures operators has set aside, and why: the messages of the topic ``failures``.

A signature that failed never comes back under its name. RESTART QUERY, and a CREATE QUERY that would join it, give the
query a signature of its own (``Registered.apart``), so a reader that has seen the end of the name has seen all of it.
"""

from __future__ import annotations

import msgspec

from stairwise.errors import StairwiseError
from stairwise.schema import Instant

LONGEST = 500
"""So many characters of what an error says are kept."""


class Failure(msgspec.Struct, frozen=True):
    """The value of a message; its key is ``signature/shard``. Also that of the mark which ends the signature."""

    signature: str
    reason: str
    reported: Instant
    """Up to where its reports were made."""

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @staticmethod
    def decode(value: bytes) -> Failure:
        return msgspec.json.decode(value, type=Failure)


def reason_of(error: Exception) -> str:
    """What people are told: an error of ours speaks for itself, any other is named."""
    said = error.message if isinstance(error, StairwiseError) else f"{type(error).__name__}: {error}"
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
