"""Where streams stand and what a query waits for, as the registry says it."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Duration, Instant
from stairwise.v1 import registry_pb2 as pb
from stairwise.wire.waiting import Cause, Waiting


@dataclass(frozen=True)
class StreamStatus:
    """A stream or table over all of its partitions."""

    name: str
    rows: int
    """Rows that were on time, as committed."""
    late: int | None
    """Since ingest was started; None where ingest does not tell."""
    dead: int | None
    watermark: Instant | None
    """None where a partition has none yet, where the input has ended, and of a table."""
    behind_ms: Duration | None
    """How far that is behind the partition that has come furthest."""
    unread: int
    """Messages that ingest has not written yet."""
    untaken: int
    """Messages of its batches that operators have not taken yet."""
    untaken_ms: Duration | None
    """For how long the oldest of these has been waiting."""
    waits_for: str
    """What holds its time back, in words; empty where it goes on."""
    failed: str
    """Why ingest has set it aside; empty where it has not."""
    sealed: bool


@dataclass(frozen=True)
class FailedQuery:
    """A query that operators has set aside; RESTART QUERY tries again."""

    name: str
    reason: str
    reported: Instant | None
    """Up to where its reports were made; None where there is none."""


@dataclass(frozen=True)
class Status:
    """One look. Two answers with the same ``clock`` are of one look."""

    clock: Instant
    streams: tuple[StreamStatus, ...]
    waiting: Waiting | None
    """What the query that was asked for waits for."""
    absent: frozenset[str]
    """Which of ingest and operators did not answer."""
    failed: tuple[FailedQuery, ...] = ()

    @staticmethod
    def from_proto(message: pb.StatusResponse) -> Status:
        waiting = _waiting(message.waiting) if message.HasField("waiting") else None
        streams, failed = tuple(map(_stream, message.streams)), tuple(map(_failed, message.failed))
        return Status(message.clock_ms, streams, waiting, frozenset(message.absent), failed)


def _failed(message: pb.FailedQuery) -> FailedQuery:
    return FailedQuery(message.name, message.reason, _optional(message, "reported_ms"))


def _stream(message: pb.StreamStatus) -> StreamStatus:
    return StreamStatus(
        name=message.name,
        rows=message.rows,
        late=_optional(message, "late"),
        dead=_optional(message, "dead"),
        watermark=_optional(message, "watermark_ms"),
        behind_ms=_optional(message, "behind_ms"),
        unread=message.unread,
        untaken=message.untaken,
        untaken_ms=_optional(message, "untaken_ms"),
        waits_for=message.waits_for,
        failed=message.failed,
        sealed=message.sealed,
    )


def _waiting(message: pb.Waiting) -> Waiting:
    return Waiting(
        cause=Cause[pb.Waiting.Cause.Name(message.cause).removeprefix("CAUSE_")],
        sentence=message.sentence,
        stream=message.stream,
        partition=_optional(message, "partition"),
        watermark=_optional(message, "watermark_ms"),
        next_report=_optional(message, "next_report_ms"),
        behind=_optional(message, "behind"),
        behind_ms=_optional(message, "behind_ms"),
    )


def _optional(message: pb.StreamStatus | pb.FailedQuery | pb.Waiting, field: str) -> int | None:
    value: int | None = getattr(message, field) if message.HasField(field) else None  # type: ignore[arg-type]
    return value
