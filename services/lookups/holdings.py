"""What a worker holds: for each of its partitions, how far it has read and what came of it.

    offsets   0     1     2     3     4     5        of s.trades.1/2
              ├─────┴─────┴─────┤     │
              taken        next_offset │
                                       target: the last batch that was there when the partition was taken over

A partition is ready when it has passed its target: what is answered from it then is no older than the moment at
which it was taken over. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from stairwise.errors import StairwiseError
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, decode_rows

Key = tuple[str, int]
"""A topic and a partition of it."""


class GapError(StairwiseError):
    """Batches are missing between what was taken and what came: only a replay from the start puts that right."""

    def __init__(self, key: Key, expected: int, came: int) -> None:
        super().__init__(
            f"{key[0]} partition {key[1]} goes from row {expected} to row {came}",
            hint="rows between them were deleted or never delivered; the worker starts again and replays",
        )


@dataclass
class Partition:
    """The recent past of one partition."""

    stream: Stream
    number: int
    target: int | None = None
    """The offset of the last batch that was there when it was taken over; -1: none was. None: not known yet."""
    target_sequence: int = 0
    """The number of the next row after the target."""
    next_offset: int = 0
    next_sequence: int | None = None
    marks: int = 0
    """How many batches without rows came last, one after the other."""
    rows: int = 0
    watermark: Instant = DAWN
    newest: Instant = DAWN
    """The highest time of a row."""
    retain: Retain = field(default_factory=Retain)
    reached: Callable[[], Instant] = lambda: DUSK
    """How far the stream has come as a whole."""

    def __post_init__(self) -> None:
        self.history = PartitionHistory(self.stream, self.number, self.retain, self.reached)

    @property
    def is_ready(self) -> bool:
        return self.target is not None and self.next_offset > self.target

    def redeclare(self, stream: Stream, retain: Retain) -> None:
        """ALTER STREAM has changed what the stream says."""
        self.stream, self.retain = stream, retain
        self.history.keep(retain)

    def take(self, key: Key, offset: int, headers: BatchHeaders, value: bytes) -> bool:
        """Take a batch in; False for one that was taken before: a rebalance may deliver it again."""
        if offset < self.next_offset:
            return False
        if self.next_sequence is None and headers.sequence:
            self.history.begin_after(headers.sequence, headers.seen_before(self.stream))
        elif self.next_sequence is not None and headers.sequence != self.next_sequence:
            raise GapError(key, self.next_sequence, headers.sequence)
        rows = decode_rows(value, self.stream)
        self.next_offset = offset + 1
        self.next_sequence = rows_upto(headers)
        self.marks = 0 if headers.rows else self.marks + 1
        self.rows += rows.num_rows
        self.watermark = headers.watermark
        self.newest = max(self.newest, headers.highest)
        self.history.take(rows, DUSK if headers.sealed else headers.watermark)
        return True


def rows_upto(headers: BatchHeaders) -> int:
    """The number of the next row after a batch."""
    return headers.sequence + headers.rows


class Holdings:
    """The partitions that this worker holds. Each lives from its assignment until it is given to another worker."""

    def __init__(self, retain: Retain | None = None) -> None:
        self._retain = retain if retain is not None else Retain()
        """What is kept of streams that do not say it themselves."""
        self._partitions: dict[Key, Partition] = {}
        self._whole: dict[str, list[Partition]] = {}
        """By topic, the partitions of streams that were found to be here and ready as a whole."""
        self._heard: dict[str, Instant] = {}
        """By topic, where a lookup was last asked at: as far as the stream had come, wherever its partitions are."""

    def assign(self, assigned: Mapping[Key, Stream]) -> None:
        """Hold exactly these: what was held stays as it is, what is new starts empty, what is gone is freed."""
        self._partitions = {
            key: self._partitions.get(key)
            or Partition(
                stream,
                key[1],
                retain=self._retain.of(stream),
                reached=partial(self._reached, key[0], stream.partitions),
            )
            for key, stream in assigned.items()
        }
        self._whole.clear()

    def redeclare(self, streams: Mapping[str, Stream]) -> None:
        """Keep of each stream, by its topic, what it says now."""
        for (topic, _), partition in self:
            stream = streams.get(topic)
            if stream is not None and not stream.is_declared_as(partition.stream):
                partition.redeclare(stream, self._retain.of(stream))

    def whole(self, stream: Stream) -> list[Partition] | None:
        """All partitions of a stream, if they are all here and ready."""
        topic = topics.sequenced(stream)
        known = self._whole.get(topic)
        if known is None:
            held = [self._partitions.get((topic, number)) for number in range(stream.partitions)]
            known = [partition for partition in held if partition is not None and partition.is_ready]
            if len(known) < stream.partitions:
                return None
            self._whole[topic] = known
        return known

    def hear(self, stream: Stream, at: Instant) -> None:
        """A lookup was asked at this instant; one may be asked about the past, and the stream has come further."""
        topic = topics.sequenced(stream)
        self._heard[topic] = max(at, self._heard.get(topic, at))

    def _reached(self, topic: str, partitions: int) -> Instant:
        """How far a stream has come, as far as is known here: of partitions elsewhere, by what was asked last."""
        held = [partition.history.watermark for key, partition in self if key[0] == topic]
        heard = self._heard.get(topic, DUSK) if len(held) < partitions else DUSK
        return min([heard, *held])

    def get(self, key: Key) -> Partition | None:
        return self._partitions.get(key)

    def __iter__(self) -> Iterator[tuple[Key, Partition]]:
        return iter(self._partitions.items())

    @property
    def are_ready(self) -> bool:
        return all(partition.is_ready for partition in self._partitions.values())

    def without_target(self) -> dict[Key, Partition]:
        """The partitions for which somebody has yet to find out what was there."""
        return {key: partition for key, partition in self if partition.target is None}
