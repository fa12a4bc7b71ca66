"""Messages of ``s.<stream>.<incarnation>`` and ``t.<table>.<incarnation>``: one Arrow record batch of one partition.

The value of a few rows is the batch alone (the schema is the stream's), that of many an IPC stream with narrower
integers, packed with lz4. What was decided once and is replayed by everyone downstream stands in the headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from stairwise.schema import DAWN, Instant, Stream
from stairwise.state.pages import empty, from_page, to_page
from stairwise.wire import topics
from stairwise.wire.narrow import narrowed, widened

Headers = list[tuple[str, bytes]]

FEW = 256
"""So few rows are not packed: to say how would take more than it saves."""


@dataclass(frozen=True)
class BatchHeaders:
    """What ingest decided about a batch."""

    version: int
    """The plan version under which it was written. A partition never goes back to an older one."""
    sequence: int
    """The number of its first row; the others follow without gaps."""
    rows: int
    watermark: Instant
    """After the batch: no row at or below it follows in this partition."""
    previous: Instant
    """The partition's watermark before the batch."""
    lowest: Instant = DAWN
    """The bounds of the rows' times; DAWN both, where there is no row."""
    highest: Instant = DAWN
    sealed: bool = False
    """Is it the partition's last batch?"""
    follows: dict[str, Instant] = field(default_factory=dict)
    """Of a table's batch, by the topic of each stream that the table is joined with, the watermark that stream had come
    to before rows that follow in this partition, and those of the batch itself: for who reads that stream, none of them
    counts before. DUSK where the stream is sealed."""
    seen: Instant | None = None
    """The highest time of a row before the batch; None in batches of before ALTER STREAM, where LATENESS tells."""

    def seen_before(self, stream: Stream) -> Instant:
        """No row of the partition before the batch lies above it."""
        if self.seen is not None:
            return self.seen
        return DAWN if self.previous == DAWN else self.previous + stream.lateness + 1

    def followed(self, streams: Iterable[Stream]) -> Instant:
        """How far a table's partition has come for who joins it with these streams: to where all of them have."""
        return min((self.follows.get(topics.sequenced(stream), DAWN) for stream in streams), default=DAWN)

    def encode(self) -> Headers:
        encoded = [
            ("version", b"%d" % self.version),
            ("sequence", b"%d" % self.sequence),
            ("rows", b"%d" % self.rows),
            ("watermark", b"%d" % self.watermark),
            ("previous", b"%d" % self.previous),
            ("lowest", b"%d" % self.lowest),
            ("highest", b"%d" % self.highest),
            ("sealed", b"1" if self.sealed else b"0"),
        ]
        encoded += [("seen", b"%d" % self.seen)] if self.seen is not None else []
        return [*encoded, ("follows", msgspec.json.encode(self.follows))] if self.follows else encoded

    @staticmethod
    def decode(headers: Mapping[str, bytes]) -> BatchHeaders:
        return BatchHeaders(
            version=int(headers["version"]),
            sequence=int(headers["sequence"]),
            rows=int(headers["rows"]),
            watermark=int(headers["watermark"]),
            previous=int(headers["previous"]),
            lowest=int(headers["lowest"]),
            highest=int(headers["highest"]),
            sealed=headers["sealed"] == b"1",
            follows=_FOLLOWS.decode(headers["follows"]) if "follows" in headers else {},
            seen=int(headers["seen"]) if "seen" in headers else None,
        )


_FOLLOWS = msgspec.json.Decoder(dict[str, int])


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """The value of a message, as it is; an empty batch has an empty value."""
    return bytes(rows.serialize()) if rows.num_rows else b""


def pack_rows(rows: pa.RecordBatch) -> bytes:
    """The value of a message that Kafka keeps, in less than half of the bytes if the rows are many."""
    return encode_rows(rows) if rows.num_rows <= FEW else to_page(narrowed(rows), compression="lz4")


def decode_rows(value: bytes | pa.Buffer, stream: Stream) -> pa.RecordBatch:
    if not len(value):
        return empty(stream.arrow_schema)
    message = pa.ipc.read_message(value)
    if message.type == "schema":
        return widened(from_page(value), stream.arrow_schema)
    return pa.ipc.read_record_batch(message, stream.arrow_schema)
