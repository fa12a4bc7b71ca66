"""Where a subscription stands, and the token that says so.

report        10            20             30
changes       a  b  c  ✓    d  e  f  ✓     …
                    ▲          ▲
                    │          └ Cursor((20, 0), sent=1): after d
                    └ Cursor((10, 0), complete=True): after the progress mark of 10
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from services.results.assembly import just_after
from stairwise.errors import StairwiseError
from stairwise.reports.contract import Position
from stairwise.schema import DAWN, DUSK
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered

HIGHEST = 2**63 - 2
"""The greatest ordinal whose successor a token can hold."""


class TokenError(StairwiseError):
    """A token that is not one, or one of another query."""


@dataclass(frozen=True)
class Cursor:
    """``position`` is a report that was sent in whole or in part; before that, where to begin."""

    position: Position = (DAWN, 0)
    complete: bool = False
    sent: int = 0
    """How many changes of the report have been sent."""
    snapshot: bool = False
    """Does the report go out whole, as the snapshot with which a subscription to changes begins?"""
    offset: int | None = None
    """Where on the topic reading has to begin in order to go on from here."""
    filter: bytes = b""
    """The digest of the subscription's filter: what ``sent`` counts depends on it."""

    @property
    def at(self) -> Position:
        """The next report is the first one here or after."""
        return just_after(self.position) if self.complete else self.position

    @property
    def is_exact(self) -> bool:
        """Was something sent of the very report at ``position``? Then it must still be there."""
        return self.complete or self.sent > 0

    def token(self, registered: Registered) -> bytes:
        return pb.ResumeToken(
            query=registered.query.name,
            version=registered.version,
            time_ms=self.position[0],
            ordinal=self.position[1],
            sent=self.sent,
            complete=self.complete,
            snapshot=self.snapshot,
            offset=-1 if self.offset is None else self.offset,
            filter=self.filter,
        ).SerializeToString()


def read_token(token: bytes, query: str) -> tuple[int, Cursor]:
    """The plan version of the token's query, and where the token stands."""
    try:
        said = pb.ResumeToken.FromString(token)
    except DecodeError as error:
        raise TokenError("the resume token can't be read", hint="hand back the bytes as they came") from error
    is_sane = said.version >= 1 and said.sent >= 0 and 0 <= said.ordinal <= HIGHEST and DAWN <= said.time_ms <= DUSK
    if not said.query or not is_sane:
        raise TokenError("the resume token can't be read", hint="hand back the bytes as they came")
    if said.query != query:
        raise TokenError(f"the resume token is one of query {said.query!r}, not of {query!r}")
    offset = said.offset if said.offset >= 0 else None
    position = said.time_ms, said.ordinal
    return said.version, Cursor(position, said.complete, said.sent, said.snapshot, offset, said.filter)
