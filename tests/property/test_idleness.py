"""Idleness, modelled: several instances of ingest over a simulated log, with a virtual clock.

Producers append, instances take, write, commit, stall, abort and hand partitions over, in any order and at any time;
also between the questions that an instance asks the broker. Whatever happens:

- a row comes too late for a watermark that idleness gave only if the broker got it more than the grace after the rows
  behind that watermark were taken; so never one that the broker held by then;
- once rows have stopped and everything is read, time moves on in every partition that may be idle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.ingest.idle_partitions import Idleness
from services.ingest.partition_state import PartitionState
from services.ingest.recovery import CommittedPlace, Key
from stairwise.schema import DAWN, Column, Instant, Stream, Type
from stairwise.streams.idleness import GRACE
from stairwise.streams.sequence import Position
from stairwise.wire import topics
from stairwise.wire.incarnations import Incarnation
from stairwise.wire.plans import PlanCatalogue

COLUMNS = (Column("ts", Type.TIMESTAMP),)
EVERY = 0.2
"""Seconds between two looks of an instance that keeps up."""


@dataclass(frozen=True)
class Row:
    time: Instant
    arrived: float


@dataclass(eq=False)
class SimulatedLane:
    """A partition as an instance takes it."""

    log: list[Row]
    incarnation: Incarnation
    state: PartitionState
    next_offset: int
    on_taken: Callable[[Instant], None]
    on_late: Callable[[Row, Instant], None]
    pending: int = 0

    @property
    def watermark(self) -> Instant:
        return self.state.position.watermark(self.incarnation.stream.lateness)

    def has_read(self, end: int) -> bool:
        return self.next_offset >= end

    def take(self, most: int) -> None:
        """Rows are judged as they are taken: no watermark is given between the two."""
        for row in self.log[self.next_offset : self.next_offset + most]:
            position = self.state.position
            if row.time <= self.watermark:
                self.on_late(row, self.watermark)
            else:
                position = Position(position.sequence + 1, max(position.highest, row.time))
            self.state = replace(self.state, position=position)
            self.next_offset += 1
            self.on_taken(self.watermark)


@dataclass
class Instance:
    lanes: dict[Key, SimulatedLane] = field(default_factory=dict)
    idleness: Idleness | None = None
    stalled_until: float = 0.0
    looked_at: float = 0.0


class IdlenessModel(RuleBasedStateMachine):
    @initialize(
        partitions=st.integers(2, 4),
        instances=st.integers(1, 3),
        idle_after=st.sampled_from([None, 500, 3_000, 60_000]),
        lateness=st.sampled_from([0, 7]),
    )
    def begin(self, partitions: int, instances: int, idle_after: int | None, lateness: int) -> None:
        self.stream = Stream("s", COLUMNS, "ts", lateness, idle_after, partitions=partitions)
        self.grace = min(GRACE, idle_after or GRACE) / 1000
        self.now = 100.0
        self.event_time = 1_000
        self.logs: dict[Key, list[Row]] = {(topics.incoming("s"), p): [] for p in range(partitions)}
        self.committed: dict[Key, CommittedPlace] = {}
        self.taken_at: dict[Instant, float] = {}
        """By watermark, when the row behind it was first taken; times are never used twice."""
        self.interruptions: list[Callable[[], None]] = []
        """What happens between two questions of an instance."""
        self.instances = [Instance() for _ in range(instances)]
        for instance in self.instances:
            instance.idleness = Idleness(self._committed, self._ends, lambda: 0.0)
        for number, key in enumerate(self.logs):
            self._open(self.instances[number % instances], key)

    # ── what instances ask ──────────────────────────────────────────────────────────────────────────────

    def _committed(self, keys: Collection[Key]) -> Mapping[Key, CommittedPlace]:
        self._interrupt()
        found = {key: self.committed.get(key, CommittedPlace(0, None)) for key in keys}
        self._interrupt()
        return found

    def _ends(self, keys: Iterable[Key]) -> Mapping[Key, int]:
        self._interrupt()
        ends = {key: len(self.logs[key]) for key in keys}
        self._interrupt()
        return ends

    def _interrupt(self) -> None:
        if self.interruptions:
            self.interruptions.pop(0)()

    # ── what happens ────────────────────────────────────────────────────────────────────────────────────

    def _append(self, key: Key, count: int) -> None:
        for _ in range(count):
            self.event_time += 10
            self.logs[key].append(Row(self.event_time, self.now))

    def _key(self, number: int) -> Key:
        return list(self.logs)[number % len(self.logs)]

    def _open(self, instance: Instance, key: Key) -> None:
        place = self.committed.get(key, CommittedPlace(0, None))
        state = place.state or PartitionState(self.stream.incarnation)
        incarnation = Incarnation(self.stream, 1)
        instance.lanes[key] = SimulatedLane(self.logs[key], incarnation, state, place.offset, self._taken, self._late)

    def _commit(self, instance: Instance) -> None:
        self.committed |= {key: CommittedPlace(lane.next_offset, lane.state) for key, lane in instance.lanes.items()}

    def _taken(self, watermark: Instant) -> None:
        self.taken_at.setdefault(watermark, self.now)

    def _late(self, row: Row, watermark: Instant) -> None:
        taken = self.taken_at[watermark]
        assert row.arrived >= taken + self.grace - 1e-6, f"{row} against {watermark}, whose rows were taken at {taken}"

    def _look(self, instance: Instance) -> None:
        assert instance.idleness is not None
        instance.looked_at = self.now
        for key, watermark in instance.idleness.watermarks(instance.lanes, PlanCatalogue(), self.now).items():
            lane = instance.lanes[key]
            lane.state = replace(lane.state, position=lane.state.position.raised(watermark))

    @rule(number=st.integers(0, 3), count=st.integers(1, 50), ahead=st.integers(0, 20_000))
    def a_producer_appends(self, number: int, count: int, ahead: int) -> None:
        self._append(self._key(number), count)
        self.event_time += ahead

    @rule(first=st.integers(0, 3), ahead=st.integers(1, 20_000), delay=st.floats(0, 0.4), data=st.data())
    def a_producer_fills_partitions_one_after_the_other(
        self, first: int, ahead: int, delay: float, data: st.DataObject
    ) -> None:
        """Rows of one stretch of event time, by partition: the first partition's are all there before the next one's,
        and instances go on meanwhile."""
        start = self.event_time
        for number in range(len(self.logs)):
            key = self._key(first + number)
            self.logs[key] += [Row(start + n * 100 + number, self.now) for n in range(1, 20)]
            self.event_time = max(self.event_time, start + 2_000)
            if data.draw(st.booleans()):
                self.an_instance_takes(first + number, data.draw(st.integers(1, 30)))
                self._go_on(delay)
        self.event_time += ahead

    @rule(number=st.integers(0, 3), most=st.integers(1, 100))
    def an_instance_takes(self, number: int, most: int) -> None:
        """Of one partition, as fetches bring them: it may be far ahead of the others."""
        key = self._key(number)
        for instance in self.instances:
            if key in instance.lanes and instance.stalled_until <= self.now:
                instance.lanes[key].take(most)

    @rule(number=st.integers(0, 2))
    def an_instance_commits(self, number: int) -> None:
        self._commit(self.instances[number % len(self.instances)])

    @rule(number=st.integers(0, 2))
    def a_transaction_is_aborted(self, number: int) -> None:
        instance = self.instances[number % len(self.instances)]
        for key in list(instance.lanes):
            self._open(instance, key)

    @rule(number=st.integers(0, 3), other=st.integers(0, 2), is_orderly=st.booleans())
    def a_partition_changes_hands(self, number: int, other: int, is_orderly: bool) -> None:
        key = self._key(number)
        for instance in self.instances:
            if instance.lanes.get(key) is not None:
                if is_orderly:
                    self._commit(instance)
                del instance.lanes[key]
        self._open(self.instances[other % len(self.instances)], key)

    @rule(number=st.integers(0, 2), seconds=st.floats(0.5, 20))
    def an_instance_stalls(self, number: int, seconds: float) -> None:
        self.instances[number % len(self.instances)].stalled_until = self.now + seconds

    @rule(seconds=st.floats(0.05, 8), numbers=st.lists(st.integers(0, 3), max_size=4))
    def time_passes(self, seconds: float, numbers: list[int]) -> None:
        """Instances look as often as they should; producers append, and others commit, between their questions."""
        for number in numbers:
            key = self._key(number)
            self.interruptions += [lambda key=key: self._append(key, 3), self._all_take_and_commit]
        self._go_on(seconds)
        self.interruptions.clear()

    def _all_take_and_commit(self) -> None:
        for instance in self.instances:
            if instance.stalled_until <= self.now:
                for lane in instance.lanes.values():
                    lane.take(2)
                self._commit(instance)

    def _go_on(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + EVERY / 4)
            for instance in self.instances:
                if instance.stalled_until <= self.now and self.now - instance.looked_at >= EVERY:
                    self._look(instance)
                    self._commit(instance)

    # ── what must hold ──────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: any(self.logs.values()))
    @rule()
    def in_the_end_nobody_holds_time_back(self) -> None:
        """Rows stop; everything is read; partitions that may be idle get the watermark of those that are not."""
        for instance in self.instances:
            instance.stalled_until = self.now
            for lane in instance.lanes.values():
                lane.take(1 << 30)
            self._commit(instance)
        fed = next(key for key, log in self.logs.items() if log)
        idle_after = self.stream.idle_after or GRACE
        for _ in range(3):  # one goes on having rows
            self._append(fed, 1)
            self._all_take_and_commit()
            self._go_on(idle_after / 1000 * 0.7)
        self._go_on((idle_after + GRACE) / 1000 + 2)
        lanes = {key: lane for instance in self.instances for key, lane in instance.lanes.items()}
        may_wait = [k for k, lane in lanes.items() if self.stream.idle_after or not lane.state.position.sequence]
        firm = [lane.watermark for key, lane in lanes.items() if key not in may_wait]
        reached = min(firm) if firm else lanes[fed].watermark
        behind = [k for k in may_wait if lanes[k].watermark < reached]
        assert reached > DAWN
        assert not behind, f"{behind} hold time back"

    @invariant()
    def watermarks_do_not_pass_all_rows(self) -> None:
        highest = max((row.time for log in getattr(self, "logs", {}).values() for row in log), default=None)
        for instance in getattr(self, "instances", ()):
            for lane in instance.lanes.values():
                assert lane.watermark == DAWN or (highest is not None and lane.watermark < highest)


TestIdleness = IdlenessModel.TestCase
