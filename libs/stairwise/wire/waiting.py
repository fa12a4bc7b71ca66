"""What a query waits for, as one sentence and as data. The first of these that holds is told:

    a stream that ingest has set aside             volumes waits for trades, which ingest has set aside: ...
    its streams' end                               volumes is over: trades is sealed and every report was made
    ingest, to begin with it                       volumes waits for ingest: trades partition 3 has not taken it up yet
    operators, with a report that is due           volumes waits for operators: 14,403 batches behind, about 40 s
    ingest, with rows for the slowest partition    volumes waits for ingest: 120,000 messages of trades behind
    a stream, or a partition, without a row        volumes waits for trades partition 3: no row yet (...)
    a partition behind the others                  volumes waits for trades partition 3: its watermark ... is 40 s ...
    its first report, as it joined late            volumes joined at 12:00:07, first report at 12:01:00 (...)
    event time                                     volumes waits for event time: next report at ..., the watermark ...

The words go by what is so at the moment that was looked at, not by what is expected to come.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from stairwise.algebra.query import Query, inputs
from stairwise.schema import DAWN, DUSK, Duration, Instant, Stream
from stairwise.windows.schedule import next_report, report_grids
from stairwise.wire import topics
from stairwise.wire.stream_standing import PartitionStanding, Standing, StreamStanding

LONG = 10_000
"""From when on a partition or a part is called behind where nothing else is wrong, in milliseconds."""


class Cause(enum.Enum):
    FAILED = "failed"
    ENDED = "ended"
    STARTING = "starting"
    OPERATORS = "operators"
    INGEST = "ingest"
    NO_ROWS = "no_rows"
    EMPTY_PARTITION = "empty_partition"
    PARTITION_BEHIND = "partition_behind"
    JOINED_LATE = "joined_late"
    EVENT_TIME = "event_time"


@dataclass(frozen=True)
class Waiting:
    """``sentence`` says it all; the rest is the same as data, as far as the cause has it."""

    cause: Cause
    sentence: str
    stream: str = ""
    partition: int | None = None
    watermark: Instant | None = None
    next_report: Instant | None = None
    behind: int | None = None
    """Messages that ingest, batches that operators have not taken."""
    behind_ms: Duration | None = None


def waiting(query: Query, version: int, standing: Standing, joined: Instant | None = None) -> Waiting:
    """What a query, registered at a plan version, waits for.

    ``joined`` is the watermark above which it reports (DAWN: from the first row on); None where that is not known.
    """
    return _Case(query, version, standing, joined).told()


def held_back(stream: StreamStanding) -> str:
    """What a stream's time waits for, for its line in ``status``; empty where time goes on or has ended."""
    if stream.failed:
        return f"FAILED: {stream.failed}"
    if stream.watermark >= DUSK or stream.stream.is_table:
        return ""
    if stream.watermark == DAWN:
        if any(p.unread for p in _slowest(stream, DAWN)):
            return "waits for ingest"
        return "no row yet" if stream.furthest == DAWN else f"{_empty(stream)}: no row yet"
    slowest = min(stream.partitions, key=lambda p: p.watermark)
    if stream.furthest - slowest.watermark >= LONG and not slowest.unread:
        return f"partition {stream.partitions.index(slowest)} is {duration(stream.furthest - slowest.watermark)} behind"
    return ""


def operators_behind(streams: Sequence[StreamStanding], clock: Instant) -> tuple[int, Duration | None]:
    """How many batches operators have not taken, and for how long the oldest has been waiting."""
    since = min((s.untaken_since for s in streams if s.untaken_since is not None), default=None)
    return sum(s.untaken for s in streams), None if since is None else max(0, clock - since)


@dataclass(frozen=True)
class _Case:
    query: Query
    version: int
    standing: Standing
    joined: Instant | None

    def told(self) -> Waiting:
        return next(self._applying())

    def _applying(self) -> Iterator[Waiting]:
        """Every cause that holds, the first being what to tell."""
        yield from self._failed()
        yield from self._starting()
        yield from self._operators()
        yield from self._ended()
        yield from self._ingest()
        yield from self._empty()
        yield from self._behind()
        yield from self._joined_late()
        yield self._time()

    @property
    def _all(self) -> list[StreamStanding]:
        return [self.standing.streams[topics.sequenced(stream)] for stream in self.query.streams]

    @property
    def _streams(self) -> list[StreamStanding]:
        """Those whose time it goes by: a table has none of its own."""
        return [s for s in self._all if not s.stream.is_table]

    @property
    def _watermark(self) -> Instant:
        return min(s.watermark for s in self._streams)

    @property
    def _taken(self) -> Instant:
        if self.query.by_lookups:
            return self._watermark
        return min(s.taken for s in self._streams)

    @property
    def _has_grid(self) -> bool:
        return any(report_grids(i.window) for i in inputs(self.query.relation))

    @property
    def _next(self) -> Instant | None:
        """The next report time after those that are made; None where rows decide, or none comes."""
        after = max(self._taken, self.joined if self.joined is not None else DAWN)
        if not DAWN < after < DUSK:
            return None
        return next_report((i.window for i in inputs(self.query.relation)), after + 1)

    def _say(self, cause: Cause, text: str, **more: object) -> Waiting:
        return Waiting(cause, f"{self.query.name} {text}", **more)  # type: ignore[arg-type]

    def _failed(self) -> Iterator[Waiting]:
        for stream in self._all:
            if stream.failed:
                name = stream.stream.name
                text = f"waits for {name}, which ingest has set aside: {stream.failed}"
                yield self._say(Cause.FAILED, text, stream=name)

    def _ended(self) -> Iterator[Waiting]:
        if self._watermark >= DUSK:
            names = _listed([s.stream.name for s in self._streams])
            are = "is" if len(self._streams) == 1 else "are"
            yield self._say(Cause.ENDED, f"is over: {names} {are} sealed and every report was made")
        elif self._taken > DAWN and self._has_grid and self._next is None:
            yield self._say(Cause.ENDED, "is over: its window has ended and every report was made")

    def _starting(self) -> Iterator[Waiting]:
        for stream in self._all:
            for number, partition in enumerate(stream.partitions):
                if partition.version < self.version and not partition.is_sealed:
                    name = stream.stream.name
                    text = (
                        f"waits for ingest{self._absent('ingest')}: {name} partition {number} has not taken it up yet"
                    )
                    yield self._say(Cause.STARTING, text, stream=name, partition=number)

    def _operators(self) -> Iterator[Waiting]:
        behind, since = operators_behind(self._all, self.standing.clock)
        if self.query.by_lookups:
            return
        if not behind:
            if self.standing.is_carried and self._taken > DAWN:
                text = "waits for operators: they have taken all batches, and make reports that were carried over"
                yield self._say(Cause.OPERATORS, text, next_report=self._next)
            return
        due = self._next
        if self._taken == DAWN or not self._has_grid:
            is_due = self._watermark > self._taken
        else:
            is_due = self._watermark >= DUSK or (due is not None and due <= self._watermark)
        if is_due:
            about = "" if since is None else f", about {duration(since)}"
            text = f"waits for operators{self._absent('operators')}: {_counted(behind, 'batch')} behind{about}"
            yield self._say(Cause.OPERATORS, text, behind=behind, behind_ms=since, next_report=due)

    def _ingest(self) -> Iterator[Waiting]:
        for stream in self._all:
            slowest = stream.stream.is_table or any(p.unread for p in _slowest(stream, self._watermark))
            if stream.unread and slowest:
                name = stream.stream.name
                many = _counted(stream.unread, "message")
                text = f"waits for ingest{self._absent('ingest')}: {many} of {name} behind"
                yield self._say(Cause.INGEST, text, stream=name, behind=stream.unread)

    def _empty(self) -> Iterator[Waiting]:
        for stream in self._streams:
            if stream.watermark > DAWN:
                continue
            name = stream.stream.name
            if stream.furthest == DAWN:
                yield self._say(Cause.NO_ROWS, f"waits for {name}: no row yet", stream=name)
                continue
            partition = next(n for n, p in enumerate(stream.partitions) if p.watermark == DAWN)
            empty = len(_slowest(stream, DAWN))
            text = f"waits for {name} {_empty(stream)}: no row yet{_remedy(stream.stream, empty)}"
            yield self._say(Cause.EMPTY_PARTITION, text, stream=name, partition=partition)

    def _behind(self) -> Iterator[Waiting]:
        """Would the report be due without the slowest partition?"""
        due = self._next
        furthest = max(s.furthest for s in self._streams)
        if due is None or furthest < due:
            return
        stream = min(self._streams, key=lambda s: s.watermark)
        name, mark = stream.stream.name, stream.watermark
        number = None if stream.furthest < due else _number_at(stream, mark)
        where, remedy = (name, "") if number is None else (f"{name} partition {number}", _remedy(stream.stream))
        text = (
            f"waits for {where}: its watermark {moment(mark, self.standing.clock)} is {duration(furthest - mark)}"
            f" behind the others, next report at {moment(due, self.standing.clock)}{remedy}"
        )
        more = {"watermark": mark, "next_report": due, "behind_ms": furthest - mark}
        yield self._say(Cause.PARTITION_BEHIND, text, stream=name, partition=number, **more)

    def _joined_late(self) -> Iterator[Waiting]:
        due, joined = self._next, self.joined
        if joined is None or joined == DAWN or due is None:
            return
        if next_report((i.window for i in inputs(self.query.relation)), joined + 1) == due:
            clock = self.standing.clock
            text = f"joined at {moment(joined, clock)}, first report at {moment(due, clock)} ({self._stands()})"
            yield self._say(Cause.JOINED_LATE, text, watermark=self._watermark, next_report=due)

    def _time(self) -> Waiting:
        due, slowest = self._next, min(self._streams, key=lambda s: s.watermark)
        what = "rows" if due is None else f"event time: next report at {moment(due, self.standing.clock)}"
        text = f"waits for {what}, {self._stands()}{self._last_row()}"
        more = {"watermark": self._watermark, "next_report": due}
        return self._say(Cause.EVENT_TIME, text, stream=slowest.stream.name, **more)

    def _stands(self) -> str:
        slowest = min(self._streams, key=lambda s: s.watermark)
        lateness = f" (LATENESS {duration(slowest.stream.lateness)})" if slowest.stream.lateness else ""
        return f"the watermark of {slowest.stream.name} is {moment(slowest.watermark, self.standing.clock)}{lateness}"

    def _last_row(self) -> str:
        active = max(s.active for s in self._streams)
        ago = self.standing.clock - active
        return f", its last row came {duration(ago)} ago" if active > DAWN and ago >= LONG else ""

    def _absent(self, part: str) -> str:
        return ", which does not answer" if part in self.standing.absent else ""


def _slowest(stream: StreamStanding, watermark: Instant) -> list[PartitionStanding]:
    return [p for p in stream.partitions if p.watermark <= watermark]


def _number_at(stream: StreamStanding, watermark: Instant) -> int:
    return next(number for number, p in enumerate(stream.partitions) if p.watermark == watermark)


def _empty(stream: StreamStanding) -> str:
    """Its partitions without a row, by their numbers."""
    numbers = [str(number) for number, p in enumerate(stream.partitions) if p.watermark == DAWN]
    return f"partition{'s' if len(numbers) > 1 else ''} {_listed(numbers)}"


def _remedy(stream: Stream, partitions: int = 1) -> str:
    if stream.idle_after is not None or stream.partitions == 1:
        return ""
    them = "it" if partitions == 1 else "them"
    return f" (ALTER STREAM {stream.name} SET IDLE AFTER 10 SECONDS would let time go on without {them})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _counted(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def duration(milliseconds: Duration) -> str:
    """A length of time as people say it: 0.4 s, 42 s, 3 min 20 s, 5 h 12 min, 3 d 4 h."""
    if milliseconds < 10_000 and milliseconds % 1000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"


def moment(instant: Instant, clock: Instant) -> str:
    """An instant as people read it, in UTC, without the date where that is the clock's; else as its number."""
    try:
        when, today = (datetime.fromtimestamp(t / 1000, UTC) for t in (instant, clock))
    except (OverflowError, ValueError, OSError):
        return str(instant)
    text = when.strftime("%H:%M:%S" if when.date() == today.date() else "%Y-%m-%d %H:%M:%S")
    return text + (f".{instant % 1000:03d}" if instant % 1000 else "")
