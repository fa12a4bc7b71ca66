"""Idle partitions: asks Kafka what the rule of ``stairwise.streams.idleness`` has to know, in the order it demands.

    1 what was taken here, and what others have committed    2 the rule: who may be given what
    3 where those partitions end, asked only now             4 given to those that have been read so far

Watermarks of others are read before the ends are asked for: what the broker held when their rows were taken is below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from services.ingest.beats import Beats
from services.ingest.partition_state import PartitionState
from services.ingest.recovery import CommittedPlace, Key
from stairwise.schema import Instant, Stream
from stairwise.streams.idleness import IdleWatch, Offer, Seen
from stairwise.wire import topics
from stairwise.wire.incarnations import Incarnation
from stairwise.wire.plans import PlanCatalogue


class WatchedLane(Protocol):
    """What is asked of a lane here."""

    incarnation: Incarnation
    state: PartitionState
    next_offset: int

    @property
    def pending(self) -> int: ...
    @property
    def watermark(self) -> Instant: ...
    def has_read(self, end: int) -> bool: ...


class Idleness:
    """Looks at the lanes of one instance, and through what is committed at those of the others."""

    def __init__(
        self,
        committed: Callable[[Collection[Key]], Mapping[Key, CommittedPlace]],
        ends: Callable[[Iterable[Key]], Mapping[Key, int]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._committed = committed
        self._ends = ends
        self._clock = clock
        self._watches: dict[Stream, IdleWatch] = {}
        self._beats = Beats()

    def watermarks(self, lanes: Mapping[Key, WatchedLane], plans: PlanCatalogue, now: float) -> dict[Key, Instant]:
        """The watermarks to give to idle partitions now."""
        ours: dict[Stream, dict[int, Seen]] = {}
        for key, lane in lanes.items():
            stream = lane.incarnation.stream
            if not (stream.is_table or lane.state.sealed or lane.incarnation.dropped):
                ours.setdefault(stream, {})[key[1]] = _seen(lane)
        self._watches = {s: self._watch(s) for s in ours if _may_wait(s, ours[s])}
        waiting = {s: watch for s, watch in self._watches.items() if watch.tick(now, ours[s])}
        elsewhere = self._elsewhere(waiting, lanes)
        clock = int(self._clock() * 1000)  # before the ends are asked for: what comes later is later than this
        offers: dict[Key, Instant] = {}
        for stream, watch in waiting.items():
            for number, offer in watch.look(clock, ours[stream] | elsewhere.get(stream, {})).items():
                if self._is_worth(stream, ours[stream][number].watermark, offer, plans):
                    offers[topics.incoming(stream.name), number] = offer.watermark
        ends = self._ends(offers)  # after everything above
        return {key: watermark for key, watermark in offers.items() if lanes[key].has_read(ends[key])}

    def _watch(self, stream: Stream) -> IdleWatch:
        """The one that looks at a stream, or another where ALTER STREAM has declared it otherwise."""
        known = self._watches.get(stream)
        return known if known is not None and known.stream.is_declared_as(stream) else IdleWatch(stream)

    def _elsewhere(self, streams: Iterable[Stream], lanes: Mapping[Key, WatchedLane]) -> dict[Stream, dict[int, Seen]]:
        """The partitions of other instances, as they are committed."""
        asked = {
            key: stream
            for stream in streams
            for number in range(stream.partitions)
            if (key := (topics.incoming(stream.name), number)) not in lanes
        }
        found: dict[Stream, dict[int, Seen]] = {}
        incarnations = {lane.incarnation.stream: lane.incarnation for lane in lanes.values()}
        for key, place in self._committed(asked).items() if asked else ():
            state, stream = place.state, asked[key]
            if state is not None and state.incarnation == stream.incarnation and not state.sealed:
                seen = Seen(place.offset, state.position.sequence, state.watermark(incarnations[stream]))
                found.setdefault(stream, {})[key[1]] = seen
        return found

    def _is_worth(self, stream: Stream, before: Instant, offer: Offer, plans: PlanCatalogue) -> bool:
        """A mark is written only if it moves something, or may be the last for now."""
        beat = self._beats.of(stream, plans)
        if offer.is_settled or (beat.by_row and not offer.by_clock):
            return True
        return beat.moves(before, offer.watermark)


def _seen(lane: WatchedLane) -> Seen:
    return Seen(lane.next_offset, lane.state.position.sequence, lane.watermark, None if lane.pending else lane)


def _may_wait(stream: Stream, ours: Mapping[int, Seen]) -> bool:
    """Could any of our partitions be given a watermark, sooner or later?"""
    return stream.live or stream.idle_after is not None or any(not seen.rows for seen in ours.values())
