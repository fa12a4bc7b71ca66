"""Tables: how far the streams have come that a table is joined with.

    s.trades.1/0   ──●────●──────●───▶          watermarks 12:00:01 ... 12:00:07
    t.companies.1  ─────▣──────────────▣─▶      a mark: trades has come to 12:00:07, and the input here is read so far

A table has no time of its own, so it is told that of its streams: a mark says how far each of them has come, once
everything is read that was in the table's input then. An update that was published before the rows that moved a stream
past its time is so before the mark; one that comes after it counts from there on. The marks are in the topic, so
everyone downstream reads the same of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer

from services.ingest.lane import Lane
from services.ingest.recovery import Key, committed, incarnation_of
from stairwise.platform import kafka
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.wire import topics
from stairwise.wire.plans import PlanCatalogue, PlanLog


class TableMarks:
    """Looks at the lanes of one instance, and through what is committed at those of the others."""

    def __init__(self, consumer: Consumer, ends: kafka.Ends) -> None:
        self._consumer = consumer
        self._ends = ends
        self._version = -1
        self._joined: dict[Stream, set[Stream]] = {}
        """By table, the streams that queries join it with, at a plan version."""

    def marks(self, lanes: Mapping[Key, Lane], plans: PlanLog) -> dict[Key, dict[str, Instant]]:
        """What the partitions of tables are to be told, where there is news."""
        tables = {key: lane for key, lane in lanes.items() if _is_open(lane)}
        if not tables:
            return {}
        joined = self._streams(plans.newest)
        wanted = {key: joined.get(lane.stream, set()) for key, lane in tables.items()}
        reached = self._reached(set().union(*wanted.values()), lanes, plans)
        news = {}
        for key, lane in tables.items():
            told = {topics.sequenced(stream): reached[stream] for stream in wanted[key]}
            follows = {topic: max(mark, lane.follows.get(topic, DAWN)) for topic, mark in told.items()}
            follows = {topic: mark for topic, mark in follows.items() if mark > DAWN}
            if follows != lane.follows:
                news[key] = follows
        ends = self._ends.of(news)  # after the watermarks are known: what was published before them is below
        return {key: follows for key, follows in news.items() if tables[key].has_read(ends[key])}

    def _streams(self, plans: PlanCatalogue) -> dict[Stream, set[Stream]]:
        if plans.version != self._version:
            self._version, self._joined = plans.version, joined_with(plans)
        return self._joined

    def _reached(self, streams: Iterable[Stream], lanes: Mapping[Key, Lane], plans: PlanLog) -> dict[Stream, Instant]:
        """The lowest watermark of each stream's partitions; DUSK where all of them are sealed."""
        places = {(topics.incoming(s.name), p): s for s in streams for p in range(s.partitions)}
        others = committed(self._consumer, [key for key in places if key not in lanes])
        reached: dict[Stream, Instant] = {}
        for key, stream in places.items():
            state = lanes[key].state if key in lanes else others[key].state
            mark = DAWN
            if state is not None and state.incarnation >= stream.incarnation:
                is_over = state.sealed or state.incarnation > stream.incarnation
                mark = DUSK if is_over else state.watermark(incarnation_of(plans.incarnations(stream.name), state))
            reached[stream] = min(mark, reached.get(stream, DUSK))
        return reached


def joined_with(plans: PlanCatalogue) -> dict[Stream, set[Stream]]:
    """By table, the streams that queries join it with."""
    found: dict[Stream, set[Stream]] = {}
    for registered in plans.queries.values():
        streams = registered.query.streams
        for table in (stream for stream in streams if stream.is_table):
            found.setdefault(table, set()).update(stream for stream in streams if not stream.is_table)
    return found


def _is_open(lane: Lane) -> bool:
    return lane.stream.is_table and not (lane.state.sealed or lane.incarnation.dropped or lane.pending)
