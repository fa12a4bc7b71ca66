"""Messages of ``s.<stream>.<incarnation>``: one message is one Arrow record batch of one partition.

The value is the batch alone (the schema is the stream's); everything that was decided once and is replayed by
everyone downstream stands in the headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from stairwise.operators.pages import empty
from stairwise.schema import DAWN, Instant, Stream

Headers = list[tuple[str, bytes]]


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

    def encode(self) -> Headers:
        return [
            ("version", b"%d" % self.version),
            ("sequence", b"%d" % self.sequence),
            ("rows", b"%d" % self.rows),
            ("watermark", b"%d" % self.watermark),
            ("previous", b"%d" % self.previous),
            ("lowest", b"%d" % self.lowest),
            ("highest", b"%d" % self.highest),
            ("sealed", b"1" if self.sealed else b"0"),
        ]

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
        )


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """The value of a message; an empty batch has an empty value."""
    return bytes(rows.serialize()) if rows.num_rows else b""


def decode_rows(value: bytes | pa.Buffer, stream: Stream) -> pa.RecordBatch:
    if not len(value):
        return empty(stream.arrow_schema)
    return pa.ipc.read_record_batch(value if isinstance(value, pa.Buffer) else pa.py_buffer(value), stream.arrow_schema)
