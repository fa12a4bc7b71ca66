"""Where streams stand and what a query waits for, as messages of ``Registry.Status``."""

from __future__ import annotations

from collections.abc import Mapping, Set

from stairwise.schema import DAWN, DUSK, Instant
from stairwise.v1 import registry_pb2 as pb
from stairwise.wire.failures import Failure
from stairwise.wire.stream_standing import Standing, StreamStanding
from stairwise.wire.waiting import Waiting, held_back, operators_behind


def status_to_proto(
    standing: Standing, sealed: Set[str], waiting: Waiting | None, failed: Mapping[str, Failure]
) -> pb.StatusResponse:
    streams = sorted(standing.streams.values(), key=lambda s: s.stream.name)
    return pb.StatusResponse(
        clock_ms=standing.clock,
        streams=[_stream(each, standing.clock, each.stream.name in sealed) for each in streams],
        waiting=None if waiting is None else _waiting(waiting),
        absent=sorted(standing.absent),
        failed=[_failed(name, failure) for name, failure in failed.items()],
    )


def _failed(name: str, failure: Failure) -> pb.FailedQuery:
    reported = failure.reported if failure.reported > DAWN else None
    return pb.FailedQuery(name=name, reason=failure.reason, reported_ms=reported)


def _stream(stream: StreamStanding, clock: Instant, sealed: bool) -> pb.StreamStatus:
    untaken, for_ms = operators_behind([stream], clock)
    has_time = DAWN < stream.watermark < DUSK and not stream.stream.is_table
    return pb.StreamStatus(
        name=stream.stream.name,
        rows=stream.rows,
        late=stream.late,
        dead=stream.dead,
        watermark_ms=stream.watermark if has_time else None,
        behind_ms=stream.furthest - stream.watermark if has_time else None,
        unread=stream.unread,
        untaken=untaken,
        untaken_ms=for_ms,
        waits_for=held_back(stream),
        failed=stream.failed,
        sealed=sealed,
    )


def _waiting(waiting: Waiting) -> pb.Waiting:
    return pb.Waiting(
        cause=pb.Waiting.Cause.Value(f"CAUSE_{waiting.cause.name}"),
        sentence=waiting.sentence,
        stream=waiting.stream,
        partition=waiting.partition,
        watermark_ms=waiting.watermark,
        next_report_ms=waiting.next_report,
        behind=waiting.behind,
        behind_ms=waiting.behind_ms,
    )
