"""Where streams stand, partition by partition: what ingest has written, and what operators have taken of that.

    in.trades/0    ──────────────────────┤unread├     messages that ingest has not written yet
    s.trades.1/0   ────────────┤untaken├              batches that operators have not taken yet
                            taken   watermark         how far time has come for operators, and for ingest

Both say their positions on Kafka, as committed offsets: ingest as the group ``stairwise-ingest``, with each partition's
state beside them, operators as ``stairwise-operators``, after each micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from stairwise.schema import DAWN, DUSK, Instant, Stream

INGEST_GROUP = "stairwise-ingest"
OPERATORS_GROUP = "stairwise-operators"


@dataclass(frozen=True)
class Written:
    """What ingest says of a partition beside its committed offset: the first fields of its ``PartitionState``."""

    incarnation: int
    sequence: int
    highest: Instant
    version: int
    sealed: bool
    active: Instant
    floor: Instant = DAWN

    @staticmethod
    def decode(metadata: str) -> Written:
        return Written(*json.loads(metadata)[:7])

    def watermark(self, lateness: int) -> Instant:
        if self.sealed:
            return DUSK
        return self.floor if self.highest == DAWN else max(self.floor, self.highest - lateness - 1)


@dataclass(frozen=True)
class PartitionStanding:
    """One partition of a stream's present incarnation."""

    watermark: Instant = DAWN
    """As ingest has committed it; DUSK where the partition is sealed."""
    taken: Instant = DAWN
    """The watermark up to which operators have taken it."""
    rows: int = 0
    """How many rows of it were on time."""
    version: int = 0
    """The plan version that it has carried."""
    active: Instant = DAWN
    """When its last row came, by the clock."""
    unread: int = 0
    untaken: int = 0
    untaken_since: Instant | None = None
    """When the oldest batch was written that operators have not taken, by the clock."""

    @property
    def is_sealed(self) -> bool:
        return self.watermark >= DUSK


@dataclass(frozen=True)
class StreamStanding:
    """A stream or table, all of its partitions."""

    stream: Stream
    partitions: tuple[PartitionStanding, ...]
    failed: str = ""
    """Why ingest has set the stream aside, if it has."""
    late: int | None = None
    """Rows that were late, and rows that were none, since ingest was started; None where ingest does not tell."""
    dead: int | None = None

    @property
    def watermark(self) -> Instant:
        return min(p.watermark for p in self.partitions)

    @property
    def furthest(self) -> Instant:
        """The highest watermark of a partition that is not sealed; DAWN where there is none."""
        return max((p.watermark for p in self.partitions if not p.is_sealed), default=DAWN)

    @property
    def taken(self) -> Instant:
        return min(p.taken for p in self.partitions)

    @property
    def rows(self) -> int:
        return sum(p.rows for p in self.partitions)

    @property
    def unread(self) -> int:
        return sum(p.unread for p in self.partitions)

    @property
    def untaken(self) -> int:
        return sum(p.untaken for p in self.partitions)

    @property
    def untaken_since(self) -> Instant | None:
        return min((p.untaken_since for p in self.partitions if p.untaken_since is not None), default=None)

    @property
    def active(self) -> Instant:
        return max(p.active for p in self.partitions)


@dataclass(frozen=True)
class Standing:
    """The streams as they were at a moment of the clock."""

    clock: Instant
    streams: Mapping[str, StreamStanding]
    """By the topic of their batches."""
    absent: frozenset[str] = field(default_factory=frozenset)
    """Which of ingest and operators did not answer."""
    is_carried: bool = False
    """Have operators reports to make that their last micro-batch had no time for?"""
