"""Messages of ``results``: one message is one report of one signature and shard. And those of ``lives``.

A replayed micro-batch writes its reports again. Their identity (signature, shard, time, ordinal) tells a repeat;
the value is an Arrow IPC stream with one record batch. Where a signature has many queries, its report holds what all
of them show (``plan.published``); when they come and go, a mark stands between the reports before and after:

    report 10      report 20      turn 20,v7      report 25      report 30 until 9000

Where nothing changes for long, one report stands for all of them up to the time that ``until`` says: a run.

A report holds a whole answer, or what moved since the one before (``reports.query_reports``). Then the header
``keyframe`` names the last report that says what stood before it, too, and the value holds both, one after the other:

    value       ── what stood before ──┬── what moved ──        ``before``: how many rows the first part has

``lives`` says for each query of such a signature from when on it reports and how far it sees back.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from stairwise.reports.contract import Position, Report
from stairwise.schema import DAWN, Instant
from stairwise.state.pages import concat, from_page, to_page
from stairwise.wire.narrow import narrowed, widened

LARGE = 64 << 10
"""Reports of so many bytes and more are compressed."""
PACKED = 4 << 10
"""The same of reports that say what moved."""
_BEFORE = b"before"
"""In the metadata of a keyframe: how many of its rows stood before."""


class Mark(enum.Enum):
    """What a message of ``results`` says."""

    REPORT = "report"
    SEALED = "sealed"
    """All streams of the signature are sealed and its last report stands before this."""
    LEFT = "left"
    """The query was dropped and its last report stands before this."""
    TURN = "turn"
    """Queries of the signature have come or gone: every report of those gone stands before this."""
    FAILED = "failed"
    """Operators has set the signature aside on this shard; the value is a ``Failure``, and no report follows."""
    OVERSIZED = "oversized"
    """In place of a report that is larger than may be published."""


@dataclass(frozen=True)
class ReportHeaders:
    """The identity of a report, and what results needs to know before it opens the value."""

    signature: str
    shard: int
    shards: int
    """How many shards report for this signature: a report is complete when all have."""
    time: Instant
    ordinal: int = 0
    mark: Mark = Mark.REPORT
    horizon: Instant = DAWN
    """The query sees no row at or before this."""
    version: int = 0
    """The plan version whose queries the report is made for."""
    size: int = 0
    """About how many bytes the rows take in memory, however many the message has."""
    until: Instant | None = None
    """Of a run: the same is said at every report time of the signature up to here."""
    keyframe: Position | None = None
    """Of a report that says what moved: the last one, or itself, that says what stood before. None: a whole answer."""

    @property
    def position(self) -> Position:
        return self.time, self.ordinal

    @property
    def end(self) -> Position:
        """The position of the last report that it stands for."""
        return self.position if self.until is None else (self.until, 0)

    def of(self, report: Report) -> ReportHeaders:
        """The headers of one of the reports that these are for; a shard may make thousands at a time."""
        return ReportHeaders(
            signature=self.signature,
            shard=self.shard,
            shards=self.shards,
            time=report.time,
            ordinal=report.ordinal,
            mark=self.mark,
            horizon=self.horizon,
            version=self.version,
            until=report.until,
            keyframe=report.keyframe,
        )

    def key(self) -> bytes:
        return f"{self.signature}/{self.shard}".encode()

    def encode(self) -> list[tuple[str, bytes]]:
        return [
            ("signature", self.signature.encode()),
            ("shard", b"%d" % self.shard),
            ("shards", b"%d" % self.shards),
            ("time", b"%d" % self.time),
            ("ordinal", b"%d" % self.ordinal),
            ("mark", self.mark.value.encode()),
            ("horizon", b"%d" % self.horizon),
            ("version", b"%d" % self.version),
            ("size", b"%d" % self.size),
            ("until", b"" if self.until is None else b"%d" % self.until),
            ("keyframe", b"" if self.keyframe is None else b"%d/%d" % self.keyframe),
        ]

    @staticmethod
    def decode(headers: Mapping[str, bytes]) -> ReportHeaders:
        return ReportHeaders(
            signature=headers["signature"].decode(),
            shard=int(headers["shard"]),
            shards=int(headers["shards"]),
            time=int(headers["time"]),
            ordinal=int(headers["ordinal"]),
            mark=Mark(headers["mark"].decode()),
            horizon=int(headers["horizon"]),
            version=int(headers["version"]),
            size=int(headers.get("size", b"0")),
            until=int(headers["until"]) if headers.get("until") else None,
            keyframe=_position(headers["keyframe"]) if headers.get("keyframe") else None,
        )


def _position(said: bytes) -> Position:
    time, ordinal = said.split(b"/")
    return int(time), int(ordinal)


class LifeRecord(msgspec.Struct, frozen=True):
    """The value of a message of ``lives``; its key is the query's identity."""

    after: Instant
    horizon: Instant

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @staticmethod
    def decode(value: bytes) -> LifeRecord:
        return msgspec.json.decode(value, type=LifeRecord)


def encode_report(report: Report) -> bytes:
    """The value of a report's message. A large one is compressed here: Spark copies it half a dozen times."""
    if report.keyframe is None:
        return to_page(report.rows, compression="lz4" if report.rows.nbytes >= LARGE else None)
    rows = report.rows
    if report.before is not None:
        metadata = {_BEFORE: b"%d" % report.before.num_rows}
        rows = concat([report.before, rows]).replace_schema_metadata(metadata)
    return to_page(narrowed(rows), compression="lz4" if rows.nbytes >= PACKED else None)


def decode_report(headers: ReportHeaders, value: bytes) -> Report:
    rows, before = from_page(value), None
    if headers.keyframe is not None:
        rows = widened(rows)
        if (count := (rows.schema.metadata or {}).get(_BEFORE)) is not None:
            rows = rows.replace_schema_metadata(None)
            before, rows = rows.slice(0, int(count)), rows.slice(int(count))
    return Report(headers.signature, headers.time, rows, headers.ordinal, keyframe=headers.keyframe, before=before)
