"""Idle partitions: how far time has come for one without rows.

Idleness is a watermark that ingest writes: the minimum over the stream's active partitions as they are committed,
whoever owns them; where none is active and the stream is LIVE, what the clock says. A partition whose end has not
been read is never idle, so a backlog is never made late by a timer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer

from services.ingest.lane import Lane
from services.ingest.recovery import Key, committed
from stairwise.platform import kafka, topics
from stairwise.schema import DAWN, Instant


class Idleness:
    """Looks at the lanes of one instance, and through what is committed at those of the others."""

    def __init__(self, consumer: Consumer, ends: kafka.Ends) -> None:
        self._consumer = consumer
        self._ends = ends

    def watermarks(self, lanes: Mapping[Key, Lane], now: float) -> dict[Key, Instant]:
        """The watermarks to give to idle partitions."""
        quiet = {key: lane for key, lane in lanes.items() if _is_quiet(lane, now)}
        clock = int(time.time() * 1000)  # before the ends are asked for: what comes later is later than this
        ends = self._ends.of(quiet)
        given = {}
        active: dict[str, Instant | None] = {}
        for key, lane in quiet.items():
            stream = lane.stream
            if not lane.has_read(ends[key]):
                continue
            if stream.name not in active:
                active[stream.name] = self._active_watermark(lane, lanes, now, clock)
            watermark = active[stream.name]
            if watermark is None and stream.live:
                watermark = clock - stream.lateness - 1
            if watermark is not None and watermark > lane.watermark:
                given[key] = watermark
        return given

    def _active_watermark(self, idle: Lane, lanes: Mapping[Key, Lane], now: float, clock: Instant) -> Instant | None:
        """The lowest watermark of the stream's partitions that have rows; None where none has."""
        stream = idle.stream
        assert stream.idle_after is not None
        topic = topics.incoming(stream.name)
        found: list[Instant] = []
        elsewhere: list[Key] = []
        for partition in range(stream.partitions):
            lane = lanes.get((topic, partition))
            if lane is None:
                elsewhere.append((topic, partition))
            elif lane.life is idle.life and now - lane.active_at < stream.idle_after / 1000:
                found.append(lane.watermark)
        for place in committed(self._consumer, elsewhere).values():
            state = place.state
            if (
                state is not None
                and state.incarnation == stream.incarnation
                and not state.sealed
                and state.is_active(clock, stream.idle_after)
            ):
                found.append(state.watermark(idle.life))
        return min((watermark for watermark in found if watermark > DAWN), default=None)


def _is_quiet(lane: Lane, now: float) -> bool:
    """Has a partition that may be idle had no rows for as long as its stream says?"""
    idle_after = lane.stream.idle_after
    if idle_after is None or lane.state.sealed or lane.life.dropped or lane.pending:
        return False
    return now - lane.active_at >= idle_after / 1000
