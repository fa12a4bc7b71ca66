"""What a partition must find again, whoever owns it next: the metadata of its committed offset.

It is committed in the transaction that wrote the batches, so it is as true as they are. Where the broker has forgotten
it (offsets of a group that was away for long expire), the last batch's own headers tell the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from stairwise.schema import DAWN, Instant
from stairwise.streams.sequence import Position
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.incarnations import Incarnation

NEXT = "next"
"""The header of a batch with the offset in ``in.<stream>`` up to which everything is written."""


@dataclass(frozen=True)
class PartitionState:
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
    def decode(metadata: str) -> PartitionState:
        incarnation, sequence, highest, version, sealed, active, *floor = json.loads(metadata)
        return PartitionState(incarnation, Position(sequence, highest, *floor), version, sealed, active)

    @staticmethod
    def of_batch(incarnation: Incarnation, headers: Mapping[str, bytes]) -> PartitionState:
        """The state after a batch, as its headers tell it."""
        batch = BatchHeaders.decode(headers)
        highest = max(batch.highest, batch.seen_before(incarnation.at(batch.version)))
        position = Position(batch.sequence + batch.rows, highest, batch.watermark)
        return PartitionState(incarnation.stream.incarnation, position, batch.version, batch.sealed)

    def watermark(self, incarnation: Incarnation) -> Instant:
        """That of its last batch, by the LATENESS that held when it was written."""
        return self.position.watermark(incarnation.at(self.version).lateness)

    def has_ended(self, incarnation: Incarnation) -> bool:
        """Has it written the last batch of this incarnation?"""
        return self.sealed or (
            incarnation.dropped and incarnation.gone is not None and self.version >= incarnation.gone
        )
