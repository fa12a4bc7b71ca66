"""Idleness: the watermark that a partition without rows may be given, as one instance of ingest sees a stream.

    partition 0   ●──●─●●──●──────●──▶     W, the least watermark of the partitions with rows, is noted at every look
    partition 1   ●                        without a row for IDLE AFTER: it waits for a watermark
                         ├─ grace ─┤
                      W noted      W offered, and given if all is taken that the broker holds for partition 1 by now

So a row comes too late for a watermark that idleness gave only if the broker got it more than the grace after ingest
had taken the rows behind that watermark: producers fill partitions one after the other, and machines stall. Whoever
acts on an offer asks where the partition ends *after* the look; what lies between the two questions is taken care of.

Time here is watched time, and passes tick by tick. A process that hung for a minute has not watched a partition for a
minute, and what came meanwhile has the whole grace to be taken.

A partition counts as quiet
- after IDLE AFTER, where the stream declares it;
- else, if it has never had a row on time, after the grace: nothing was ever written to it, or nothing that counts;
- else never.
When no partition has rows any more time stands still, unless the stream is LIVE: then it goes by the clock, as soon as
no partition has had a row for IDLE AFTER, or for the grace where none is declared.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stairwise.schema import Duration, Instant, Stream

GRACE: Duration = 5_000
"""For how long partitions may lag behind each other on their way to the broker, in milliseconds, where IDLE AFTER is
not shorter."""
APPEND_GRACE: Duration = 500
"""The same where rows have the time at which the broker took them: only brokers' clocks may lag behind each other."""
LONGEST: Duration = 400
"""How much time passes between two ticks at the most: twice what it should be. Whoever hung has not watched. A shorter
IDLE AFTER counts as this."""
SETTLED: Duration = 1_000
"""A watermark that has stood for so long is given even if nobody waits for it."""


@dataclass(frozen=True)
class Seen:
    """A partition of the stream, at a look."""

    taken: int
    """The offset up to which its messages were taken: it moves when some come."""
    rows: int
    """How many of its rows were ever on time."""
    watermark: Instant
    owner: object | None = None
    """What takes its messages here, another one after each change of hands; None where another instance does, or
    where it cannot be given a watermark."""


class Offer(NamedTuple):
    watermark: Instant
    by_clock: bool
    """Did the clock move it, and not rows?"""
    is_settled: bool
    """Has it stood for a while, so that it may be the last?"""


class IdleWatch:
    """Looks at one incarnation of a stream, from time to time."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        # What moves between two ticks is seen to be active at one of them at least.
        self._idle_after = math.inf if stream.idle_after is None else max(stream.idle_after, LONGEST)
        self.grace = min(self._idle_after, APPEND_GRACE if stream.timestamp_by is None else GRACE)
        self._still_after = self.grace if stream.live and stream.idle_after is None else self._idle_after
        """When no partition has had a row for so long, a stream that is LIVE goes by the clock."""
        self._ticked: float | None = None
        self._watched = 0.0
        """Milliseconds."""
        self._places: dict[int, tuple[object | None, int]] = {}
        self._moved: dict[int, float] = {}
        """When each partition was last seen to have taken messages, or to have changed hands."""
        self._notes: deque[tuple[float, Instant]] = deque()
        """The least watermark of the active partitions, and when it was first seen: one past the grace, then newer."""

    def tick(self, now: float, ours: Mapping[int, Seen]) -> bool:
        """Time passes, and our partitions have come this far; is there one that stands, so that a look is called for?

        ``now`` is seconds of a clock that never goes back.
        """
        if self._ticked is not None:
            self._watched += min((now - self._ticked) * 1000, LONGEST)
        self._ticked = now
        standing = [number for number, seen in ours.items() if not self._has_moved(number, seen)]
        return bool(standing)

    def look(self, clock: Instant, partitions: Mapping[int, Seen]) -> dict[int, Offer]:
        """What each of our quiet partitions may be given, once everything is taken that the broker holds for it.

        ``clock`` is the time of day in milliseconds; ``partitions`` are ours and those of other instances.
        """
        for number, seen in partitions.items():
            self._has_moved(number, seen)
        active = [seen.watermark for number, seen in partitions.items() if self._is_active(number, seen)]
        if active:
            self._note(min(active))
        offer = self._offer(clock, is_still=self._is_still(partitions))
        if offer is None:
            return {}
        return {
            number: offer
            for number, seen in partitions.items()
            if seen.owner is not None and offer.watermark > seen.watermark and self._waits(number, seen, offer)
        }

    def _has_moved(self, number: int, seen: Seen) -> bool:
        place = (seen.owner, seen.taken)
        if self._places.get(number) == place:
            return False
        self._places[number], self._moved[number] = place, self._watched
        return True

    def _since(self, number: int) -> float:
        return self._watched - self._moved[number]

    def _is_active(self, number: int, seen: Seen) -> bool:
        return seen.rows > 0 and self._since(number) < self._idle_after

    def _is_still(self, partitions: Mapping[int, Seen]) -> bool:
        """Have rows come once, unless IDLE AFTER is declared, and none for long?"""
        with_rows = [number for number, seen in partitions.items() if seen.rows]
        has_begun = bool(with_rows) or self.stream.idle_after is not None
        return has_begun and all(self._since(number) >= self._still_after for number in with_rows)

    def _waits(self, number: int, seen: Seen, offer: Offer) -> bool:
        if not seen.rows and self.stream.idle_after is None:
            return self._since(number) >= self.grace
        return self._since(number) >= (self._still_after if offer.by_clock else self._idle_after)

    def _note(self, watermark: Instant) -> None:
        """It never goes back: what was right to give stays right, whoever has rows again."""
        if not self._notes or watermark > self._notes[-1][1]:
            self._notes.append((self._watched, watermark))

    def _offer(self, clock: Instant, *, is_still: bool) -> Offer | None:
        while len(self._notes) > 1 and self._is_past_grace(self._notes[1]):
            self._notes.popleft()
        noted = self._notes[0] if self._notes and self._is_past_grace(self._notes[0]) else None
        if self.stream.live and is_still:
            by_clock = clock - self.stream.lateness - 1
            return Offer(by_clock if noted is None else max(by_clock, noted[1]), by_clock=True, is_settled=False)
        if noted is None:
            return None
        is_settled = len(self._notes) == 1 and self._watched - noted[0] >= SETTLED
        return Offer(noted[1], by_clock=False, is_settled=is_settled)

    def _is_past_grace(self, note: tuple[float, Instant]) -> bool:
        return self._watched - note[0] >= self.grace
