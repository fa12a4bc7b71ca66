"""What stage 1 sends to stage 2: for each run of messages of a partition of ``s.*`` or ``t.*``, a parcel to each shard.

Every shard gets what the headers of all messages say, so that all of them see the same watermarks and plan versions; of
the rows each gets only its own, once for each distribution however many queries share it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.expressions.views import int64_view
from stairwise.reports.contract import Batch
from stairwise.schema import Instant, Stream
from stairwise.wire.batches import BatchHeaders, decode_rows

Place = str
"""A topic partition, ``topic/partition``: a key that JSON and msgpack can have."""


def place_of(topic: str, partition: int) -> Place:
    return f"{topic}/{partition}"


class Portion(msgspec.Struct, frozen=True, array_like=True):
    """A shard's rows of one run for one distribution."""

    distribution: str
    rows: bytes
    sequence: bytes
    """The rows' sequence numbers; empty where they are consecutive from the run's first."""


class TraceContext(msgspec.Struct, frozen=True, array_like=True):
    """The trace of a message, with the lowest time among its rows."""

    lowest: Instant
    traceparent: str


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    partition: int
    offset: int
    """Of the last message."""
    headers: BatchHeaders
    """Of one message, or what they say of all together."""
    contexts: list[TraceContext]
    portions: list[Portion]

    @property
    def place(self) -> Place:
        return place_of(self.topic, self.partition)

    def only(self, distribution: str) -> Parcel:
        """The same with the rows of one distribution alone."""
        return msgspec.structs.replace(
            self, portions=[portion for portion in self.portions if portion.distribution == distribution]
        )

    def encode(self) -> bytes:
        return _ENCODER.encode(self)

    @staticmethod
    def decode(blob: bytes) -> Parcel:
        return _DECODER.decode(blob)

    def batch(self, portion: Portion, stream: Stream, beside: Sequence[Stream] = ()) -> Batch:
        """A portion's rows as operators take them. ``beside``: the streams that a query joins the table with.

        An update of a table does not count before the time that these had come to when it came."""
        rows = decode_rows(portion.rows, stream)
        time = None
        if stream.is_table:
            time = np.maximum(int64_view(rows.column(stream.time_column)), self.headers.followed(beside) + 1)
        first = self.headers.sequence
        sequence = (
            np.frombuffer(portion.sequence, np.int64) if portion.sequence else np.arange(first, first + rows.num_rows)
        )
        return Batch(stream.name, self.partition, rows, sequence, self.headers.lowest, self.headers.highest, time)


def portion_of(distribution: str, rows: pa.RecordBatch, chosen: np.ndarray, first: int) -> Portion:
    """The chosen rows of a run whose first row has the sequence number ``first``."""
    kept = rows.take(pa.array(chosen))
    return Portion(distribution, bytes(kept.serialize()) if len(chosen) else b"", (chosen + first).tobytes())


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Parcel)
