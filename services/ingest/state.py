"""What a partition must find again, whoever owns it next: the metadata of its committed offset.

It is committed in the transaction that wrote the batches, so it is as true as they are. Where the broker has forgotten
it (offsets of a group that was away for long expire), the last batch's own headers tell the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from stairwise.platform.batches import BatchHeaders
from stairwise.platform.lives import Life
from stairwise.schema import DAWN, Instant, Stream
from stairwise.streams.sequence import Position

NEXT = "next"
"""The header of a batch with the offset in ``in.<stream>`` up to which everything is written."""


@dataclass(frozen=True)
class State:
    """Where a partition of an incarnation stands."""

    incarnation: int
    position: Position = field(default_factory=Position)
    version: int = 0
    """The plan version of its last batch; it never goes back."""
    sealed: bool = False
    active: Instant = DAWN
    """When its last row came, by the clock: instances of the release before tell by it whether it is idle."""

    def encode(self) -> str:
        at = self.position
        return json.dumps([self.incarnation, at.sequence, at.highest, self.version, self.sealed, self.active])

    @staticmethod
    def decode(metadata: str) -> State:
        incarnation, sequence, highest, version, sealed, active = json.loads(metadata)
        return State(incarnation, Position(sequence, highest), version, sealed, active)

    @staticmethod
    def of_batch(stream: Stream, headers: Mapping[str, bytes]) -> State:
        """The state after a batch, as its headers tell it."""
        batch = BatchHeaders.decode(headers)
        highest = DAWN if batch.watermark == DAWN else batch.watermark + stream.lateness + 1
        return State(stream.incarnation, Position(batch.sequence + batch.rows, highest), batch.version, batch.sealed)

    def has_ended(self, life: Life) -> bool:
        """Has it written the last batch of this life?"""
        return self.sealed or (life.dropped and life.gone is not None and self.version >= life.gone)
