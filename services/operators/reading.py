"""What a signature reads: its partitions, how far they have come for it, and its batches out of parcels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from services.operators.parcel import Parcel, Place, Portion
from stairwise.reports.contract import Batch
from stairwise.schema import Instant, Stream
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.plans import Registered


@dataclass(frozen=True)
class Reading:
    """What a signature reads, and which shards it runs on."""

    registered: Registered
    streams: dict[Place, Stream]
    beside: tuple[Stream, ...]
    """The streams without the tables."""
    distribution: str
    shards: range

    def watermark(self, place: Place, headers: BatchHeaders, *, before: bool = False) -> Instant:
        """How far a partition has come after a batch or before it: one of a table, by the streams beside it.

        Of a table's rows none is at or below what its batch says, so that holds before the batch as well.
        """
        if self.streams[place].is_table:
            return headers.followed(self.beside)
        return headers.previous if before else headers.watermark

    def batch(self, parcel: Parcel, portion: Portion) -> Batch:
        return parcel.batch(portion, self.streams[parcel.place], self.beside)

    @cached_property
    def time_columns(self) -> dict[str, str]:
        return {stream.name: stream.time_column for stream in self.streams.values()}
