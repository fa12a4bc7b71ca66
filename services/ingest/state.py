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
from stairwise.schema import DAWN, Instant
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
        said = [self.incarnation, at.sequence, at.highest, self.version, self.sealed, self.active]
        return json.dumps([*said, at.floor] if at.floor > DAWN else said)

    @staticmethod
    def decode(metadata: str) -> State:
        incarnation, sequence, highest, version, sealed, active, *floor = json.loads(metadata)
        return State(incarnation, Position(sequence, highest, *floor), version, sealed, active)

    @staticmethod
    def of_batch(life: Life, headers: Mapping[str, bytes]) -> State:
        """The state after a batch, as its headers tell it."""
        batch = BatchHeaders.decode(headers)
        highest = max(batch.highest, batch.seen_before(life.at(batch.version)))
        position = Position(batch.sequence + batch.rows, highest, batch.watermark)
        return State(life.stream.incarnation, position, batch.version, batch.sealed)

    def watermark(self, life: Life) -> Instant:
        """That of its last batch, by the LATENESS that held when it was written."""
        return self.position.watermark(life.at(self.version).lateness)

    def has_ended(self, life: Life) -> bool:
        """Has it written the last batch of this life?"""
        return self.sealed or (life.dropped and life.gone is not None and self.version >= life.gone)
