"""The loop of ingest: consume, and every few hundredths of a second write what came in one transaction.

Offsets, batches and rejects are committed together, and the state of each lane rides in its offset's metadata:
whatever is killed, everything is in ``s.*``, ``late.*`` or ``dlq.*`` exactly once. Several instances share the
partitions as one consumer group; who loses a partition writes what it has of it before it lets go, and if it cannot,
the next owner reads it again.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from services.ingest import metrics, recovery
from services.ingest.dispatch import Dispatch
from services.ingest.failures import Failures, StreamError, blaming
from services.ingest.idle_partitions import Idleness
from services.ingest.lane import Lane, Outcome
from services.ingest.partition_state import PartitionState
from services.ingest.recovery import Key
from services.ingest.rejects import Outgoing
from services.ingest.table_marks import TableMarks
from services.ingest.transactions import OVERDUE, AbortedError, StrangerError, Transactions
from stairwise.errors import ConfigError
from stairwise.platform import kafka, telemetry
from stairwise.platform.config import Settings
from stairwise.platform.free_space import FreeSpace
from stairwise.wire import topics
from stairwise.wire.plans import PlanReader

log = logging.getLogger(__name__)

GROUP = "stairwise-ingest"
SESSION_MS = 6_000
"""After how long without a sign of life an instance's partitions go to the others."""
LEAVE_WITHIN = 10.0
"""How long leaving the group may take, in seconds."""
FETCH_BYTES = 768 << 10
"""How much is fetched at a time, as Kafka holds it: enough for Arrow messages, and partitions stay close together. With
lz4 it may be 255 times as much once it is here."""
REFRESH_MS = 2_000
"""How often it is asked which topics there are: one that was made a moment before it was subscribed to may have been
unknown, and would else be read only minutes later."""
QUEUE_KB = 32 << 10
"""With how much fetched and not yet taken no more is fetched."""
MAX_ROWS = 200_000
MAX_BYTES = 24 << 20
"""With how much waiting a transaction is written at once. Bytes may become rows that are much larger, and all of them
must be written within the transaction's timeout."""
AHEAD_BYTES = 16 << 20
"""How much is made ready for the next transaction while the one before is being committed."""
BACKLOG = 4
"""While more is there than can be read, rows wait for so many lingers: fewer, larger transactions."""
TICK = 0.02
MARK_EVERY = 0.2
"""How often an idle partition is given a new watermark, and a table told how far its streams are, in seconds."""
CLOSE_EVERY = 1.0
"""How often it is asked whether all partitions of a dropped stream have said so, in seconds."""


class Ingest:
    def __init__(self, settings: Settings, tell: Callable[[str, bool], None] = lambda stream, is_well: None) -> None:
        """``tell`` is told which stream fails (False), and which is tried again (True)."""
        self._settings = settings
        self._failures = Failures(tell)
        self._linger = settings.ingest_linger_ms / 1000
        self._plans = PlanReader(settings.brokers)
        self._ends = kafka.Ends(settings.brokers)
        self._consumer = kafka.consumer(
            settings.brokers,
            GROUP,
            enable_partition_eof=True,
            group_instance_id=f"{GROUP}-{settings.instance}",
            partition_assignment_strategy="cooperative-sticky",
            session_timeout_ms=SESSION_MS,
            fetch_message_max_bytes=FETCH_BYTES,
            fetch_max_bytes=FETCH_BYTES,
            message_max_bytes=FETCH_BYTES,  # of what is produced, but less than this is never fetched either
            queued_max_messages_kbytes=QUEUE_KB,
            topic_metadata_refresh_interval_ms=REFRESH_MS,
        )
        self._transactions = Transactions(settings.brokers, f"{GROUP}-{settings.instance}")
        self._committer = ThreadPoolExecutor(1, "commit")
        self._commit: Future[float] | None = None
        """The transaction that is being committed while the next messages are read."""
        self._outcomes: list[tuple[str, Outcome]] = []
        self._lanes: dict[Key, Lane] = {}
        self._dispatch = Dispatch(self._lanes)
        self._idleness = Idleness(partial(recovery.committed, self._consumer), self._ends.of)
        self._following = TableMarks(self._consumer, self._ends)
        self._space = FreeSpace(settings.directory, settings.min_free_bytes, self._hold)
        self._resting: set[Key] = set()
        """Partitions that were paused, and not resumed since."""
        self._seal_at: dict[Key, int] = {}
        self._subscribed: set[str] = set()
        self._dropped: set[str] = set()
        """Names of streams that are gone and of which some partition may not have said so yet."""
        self._closed_at = self._marked_at = 0.0
        self._waiting_since: float | None = None
        self._is_touched = True
        self._is_aborted = False
        """Did the last transaction not hold? Then the lanes say what was never said."""
        self._is_lost = False
        self._must_follow = False
        self._has_joined = False
        """A static member that comes back is given what it had, whatever it asks for now; only a member that is in the
        group and changes what it asks for makes the group share anew. So it asks for one topic more until it is in; not
        for longer, since that topic's partition would count as a share of the work."""
        metrics.watch(self._lanes)
        metrics.watch_failures(self._failures)

    def start(self) -> None:
        """Take over from whoever had this identity, and join the group."""
        self._transactions.start()
        self._plans.read_to_end()
        self._dropped = {n for n in self._plans.log.stream_names() if n not in self._plans.log.newest.streams}
        self._follow()

    def run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            if self._plans.poll() or self._must_follow:
                self._must_follow = False
                self._follow()
            self._retry()
            if self._space.look(time.monotonic()) and (awake := self._awake()):
                self._consumer.pause(awake)
                self._resting |= {(p.topic, p.partition) for p in awake}
            asked = self._dispatch.appetite
            messages = self._consumer.consume(asked, timeout=self._patience())
            if self._is_lost:
                # Its clients may be in any state; a new process has new ones, and everything that counts is in Kafka.
                raise ConfigError("the group has given this instance's partitions away", hint="did it hang, or Kafka?")
            if self._is_aborted:
                self._rewind()
                continue
            now = time.monotonic()
            try:
                if self._dispatch.take(messages) and self._waiting_since is None:
                    self._waiting_since = now
            except StreamError as fault:
                self._set_aside(fault)
                continue
            if not self._space.is_low and self._is_due(now, is_backlog=len(messages) == asked):
                self._write()
        if not self._is_aborted:
            self._write()
            self._finish()
        self._leave_group()
        self._plans.close()

    def _leave_group(self) -> None:
        """The client may wait for good while the group is being shared anew. Everything is written by then, so the
        process ends without it."""
        leaving = threading.Thread(target=self._consumer.close, daemon=True)
        leaving.start()
        leaving.join(LEAVE_WITHIN)
        if leaving.is_alive():
            log.warning("the group does not answer: leaving without it")

    def _hold(self, is_low: bool, free: int) -> None:
        """The volume has too little room, or enough again: rows wait in Kafka meanwhile, and nothing is lost."""
        metrics.hold(is_low)
        told = telemetry.fields(directory=str(self._settings.directory), free=free)
        if is_low:
            log.error("ingest pauses: its volume has less than STAIRWISE_MIN_FREE_BYTES free", extra=told)
            return
        log.warning("ingest goes on: its volume has room again", extra=told)
        mine = [p for p in self._consumer.assignment() if topics.stream_of(p.topic) not in self._failures]
        if mine:
            self._consumer.resume(mine)
        self._resting -= {(p.topic, p.partition) for p in mine}

    def _awake(self) -> list[TopicPartition]:
        return [p for p in self._consumer.assignment() if (p.topic, p.partition) not in self._resting]

    # ── what to read ────────────────────────────────────────────────────────────────────────────────────

    def _follow(self) -> None:
        """Read the input of the streams that there are, and of those gone whose partitions have not said so."""
        names = set(self._plans.log.newest.streams)
        self._dropped |= {topics.stream_of_incoming(t) for t in self._subscribed - {topics.PLANS}} - names
        self._dropped = self._unclosed(self._dropped - names)
        self._closed_at = time.monotonic()
        self._is_touched = True
        wanted = {topics.incoming(name) for name in names | self._dropped}
        if wanted and not self._has_joined:
            wanted.add(topics.PLANS)
        if wanted != self._subscribed:
            self._subscribed = wanted
            if wanted:
                self._consumer.subscribe(
                    sorted(wanted), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
                )
            else:
                self._consumer.unsubscribe()

    def _unclosed(self, names: set[str]) -> set[str]:
        if not names:
            return names
        existing = self._ends.topics(recovery.TIMEOUT)
        incarnations = {name: self._plans.log.incarnations(name) for name in names if topics.incoming(name) in existing}
        keys = [
            (topics.incoming(name), p) for name in incarnations for p in range(incarnations[name][-1].stream.partitions)
        ]
        return recovery.open_ends(recovery.committed(self._consumer, keys), incarnations)

    # ── whose partitions ────────────────────────────────────────────────────────────────────────────────

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._assign([(p.topic, p.partition) for p in partitions])
        self._is_touched = True
        if not self._has_joined:
            self._has_joined = self._must_follow = True

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Write what was read, while the partitions are ours."""
        if not self._is_aborted:
            self._write()
            self._finish()
        self._leave(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """They are somebody else's already: this process hung, or the broker was away.

        Unless others stay: then it is the client that does not find their topics (any more, or in what it was told
        just after they were made), and the group has not given them away.
        """
        if len(partitions) < len(consumer.assignment()):
            self._revoked(consumer, partitions)
            return
        self._leave(partitions)
        self._is_lost = True

    def _leave(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._seal_at.pop((partition.topic, partition.partition), None)
            if self._lanes.pop((partition.topic, partition.partition), None) is not None:
                fields = telemetry.fields(topic=partition.topic, partition=partition.partition)
                log.info("partition left", extra=fields)

    def _assign(self, keys: list[Key]) -> None:
        """Read partitions from where they were committed; those of streams that failed rest there."""
        self._consumer.incremental_assign([TopicPartition(*key, at) for key, at in self._open(keys).items()])
        mine = [(p.topic, p.partition) for p in self._consumer.assignment()]
        resting = {key for key in mine if topics.stream_of(key[0]) in self._failures}
        # A partition that was paused stays so when it is unassigned and assigned again.
        if awake := [key for key in keys if key in self._resting - resting]:
            self._consumer.resume([TopicPartition(*key) for key in awake])
        if resting:
            self._consumer.pause([TopicPartition(*key) for key in resting])
        self._resting = (self._resting | resting).difference(awake)

    def _retry(self) -> None:
        """Try streams again that had failed, now that their plans have changed."""
        if changed := self._failures.take_changed(self._plans.log):
            mine = self._consumer.assignment()
            keys = [(p.topic, p.partition) for p in mine if topics.stream_of(p.topic) in changed]
            self._consumer.incremental_unassign([TopicPartition(*key) for key in keys])
            self._assign(keys)
            self._is_touched = True

    def _set_aside(self, fault: StreamError) -> None:
        """A stream cannot go on: what was begun is not said, and the others begin again from what is committed."""
        self._finish()
        self._failures.add(fault, self._plans.log)
        self._is_aborted = True

    def _open(self, keys: list[Key]) -> dict[Key, int]:
        """Lanes for partitions, as they were committed; the offsets at which they go on."""
        while True:
            try:
                return self._opened(keys)
            except StreamError as fault:
                self._failures.add(fault, self._plans.log)
                for key in [key for key in self._lanes if topics.stream_of(key[0]) == fault.stream]:
                    del self._lanes[key]

    def _opened(self, keys: list[Key]) -> dict[Key, int]:
        """The same, without those that rest; raises ``StreamError`` for one more that has to."""
        places = recovery.committed(self._consumer, keys)
        behind = max((p.state.version for p in places.values() if p.state is not None), default=0)
        self._plans.read_upto(behind)  # whoever had them before may have known newer plans
        incarnations_of = {key: self._plans.log.incarnations(topics.stream_of(key[0])) for key in keys}
        well = {key for key in keys if incarnations_of[key] and topics.stream_of(key[0]) not in self._failures}
        unknown = {key: incarnations_of[key] for key in well if places[key].state is None}
        if unknown:
            places |= recovery.from_outputs(self._settings.brokers, unknown)
        for key, place in places.items():
            if key not in well:
                continue
            incarnation = recovery.incarnation_of(incarnations_of[key], place.state)
            state = place.state or PartitionState(incarnation.stream.incarnation)
            self._lanes[key] = Lane(key[1], incarnation, state, place.offset, self._settings.ingest_max_bytes)
            fields = telemetry.fields(topic=key[0], partition=key[1], offset=place.offset)
            log.info("partition opened", extra=fields)
        tables = {
            key: lane.stream for key, lane in self._lanes.items() if key in incarnations_of and lane.stream.is_table
        }
        if tables:
            for key, follows in recovery.followed(self._settings.brokers, tables).items():
                self._lanes[key].follows = follows
        return {key: place.offset if incarnations_of[key] else OFFSET_END for key, place in places.items()}

    def _rewind(self) -> None:
        """Begin again from what is committed, after a transaction that did not hold."""
        keys = [(p.topic, p.partition) for p in self._consumer.assignment()]
        self._lanes.clear()
        self._seal_at.clear()
        self._waiting_since = None
        self._is_aborted = False
        self._consumer.incremental_unassign([TopicPartition(*key) for key in keys])
        self._assign(keys)

    # ── when to write ───────────────────────────────────────────────────────────────────────────────────

    def _patience(self) -> float:
        """How long to wait for messages."""
        if self._waiting_since is None:
            return TICK
        left = self._waiting_since + self._linger - time.monotonic()
        return min(TICK, max(0.001, left))

    def _is_due(self, now: float, *, is_backlog: bool) -> bool:
        if self._is_touched or now - self._marked_at >= MARK_EVERY:
            return True
        if self._waiting_since is None:
            return False
        waited = now - self._waiting_since
        full = self._dispatch.rows >= MAX_ROWS or self._dispatch.bytes >= MAX_BYTES
        return full or waited >= self._linger * (BACKLOG if is_backlog else 1)

    # ── what to write ───────────────────────────────────────────────────────────────────────────────────

    def _write(self) -> None:
        """Everything that there is to say, in one transaction."""
        started = time.monotonic()
        if self._waiting_since is not None and self._plans.catch_up(self._ends):
            self._follow()  # an event belongs to the incarnation that was there when it was published
        self._waiting_since = None
        self._is_touched = False
        self._dispatch.reset()
        said: dict[Key, Lane] = {}
        outgoing = self._outgoing(said)
        try:
            ahead = self._ahead(outgoing)
            self._finish()
            if self._is_aborted:
                return
            group = self._consumer.consumer_group_metadata()
            if self._transactions.begin(itertools.chain(ahead, outgoing)):
                offsets = [_offset(key, lane) for key, lane in said.items()]
                self._outcomes = [(lane.stream.name, lane.settle()) for lane in said.values()]
                self._commit = self._committer.submit(self._transactions.commit, offsets, group)
        except AbortedError as error:
            self._take_back(error)
            return
        except StreamError as fault:
            self._set_aside(fault)
            return
        if self._dropped and started - self._closed_at >= CLOSE_EVERY:
            self._follow()

    def _ahead(self, outgoing: Iterator[tuple[int, Outgoing]]) -> list[tuple[int, Outgoing]]:
        """What can be made ready while the transaction before is being committed; if that fails, it was never said."""
        ready: list[tuple[int, Outgoing]] = []
        size = 0
        while self._commit is not None and not self._commit.done() and size < AHEAD_BYTES:
            message = next(outgoing, None)
            if message is None:
                break
            ready.append(message)
            size += len(message[1].value)
        return ready

    def _finish(self) -> None:
        """Wait until the transaction that was written last is committed."""
        if self._commit is None:
            return
        commit, self._commit = self._commit, None
        try:
            metrics.transaction(commit.result(OVERDUE))
        except AbortedError as error:
            self._take_back(error)
            return
        except StreamError as fault:
            self._set_aside(fault)
            return
        except TimeoutError:
            raise ConfigError("Kafka has not answered a commit", hint="is it there, and well?") from None
        for stream, outcome in self._outcomes:
            metrics.committed(stream, outcome)

    def _take_back(self, error: AbortedError) -> None:
        metrics.aborted()
        self._is_aborted = True
        # A group that has given the partitions away may tell so here first, and then calls it a revocation.
        self._is_lost |= isinstance(error, StrangerError)

    def _outgoing(self, said: dict[Key, Lane]) -> Iterator[tuple[int, Outgoing]]:
        now = time.monotonic()
        clock = int(time.time() * 1000)
        for key, lane in list(self._lanes.items()):
            with blaming(lane.stream.name):
                for message in self._advance(key, lane, clock):
                    said[key] = lane
                    if message.rows and message.topic.startswith(("s.", "t.")):
                        metrics.batch(lane.stream.name, message.rows)
                    yield key[1], message
        if now - self._marked_at >= MARK_EVERY:
            self._marked_at = now
            for key, lane in self._lanes.items():
                lane.end_told = self._consumer.get_watermark_offsets(TopicPartition(*key), cached=True)[1]
            for key, watermark in self._idleness.watermarks(self._lanes, self._plans.log.newest, now).items():
                lane = said[key] = self._lanes[key]
                yield key[1], lane.mark(self._version_of(lane), watermark)
            for key, follows in self._following.marks(self._lanes, self._plans.log).items():
                lane = said[key] = self._lanes[key]
                yield key[1], lane.follow(self._version_of(lane), follows)

    @property
    def _version(self) -> int:
        """The plan version in force here."""
        return self._plans.log.newest.version

    def _version_of(self, lane: Lane) -> int:
        """The version of a lane's next batch."""
        return max(lane.state.version, lane.incarnation.version(self._version))

    def _advance(self, key: Key, lane: Lane, clock: int) -> Iterator[Outgoing]:
        """What a lane has to say: its rows, the end of an incarnation, the beginning of the next."""
        incarnations = self._plans.log.incarnations(lane.stream.name)
        while True:
            incarnation = lane.incarnation = recovery.incarnation_of(incarnations, lane.state)
            if not lane.state.has_ended(incarnation):
                yield from self._rows_and_end(key, lane, clock)
            if not lane.state.has_ended(incarnation):
                return
            following = recovery.next_incarnation(incarnations, incarnation)
            if following is None:
                if not incarnation.dropped:
                    yield from lane.reject_closed()
                return
            lane.enter(following, PartitionState(following.stream.incarnation))
            self._seal_at.pop(key, None)

    def _rows_and_end(self, key: Key, lane: Lane, clock: int) -> Iterator[Outgoing]:
        """The rows of a lane's incarnation, and its end where it has one."""
        incarnation = lane.incarnation
        if incarnation.dropped:
            assert incarnation.gone is not None
            yield lane.mark(incarnation.gone)
            return
        version = self._version_of(lane)
        if incarnation.sealed is None:
            yield from lane.write(version, clock)
            if lane.state.version < self._plans.log.touched(incarnation.stream.name):
                yield lane.mark(version)
            return
        end = self._seal_at.get(key)
        if end is None:
            end = self._seal_at[key] = incarnation.ends[key[1]] if incarnation.ends else self._ends.of([key])[key]
        yield from lane.write(version, clock, end)
        if lane.has_read(end):
            yield lane.mark(version, sealed=True)


def _offset(key: Key, lane: Lane) -> TopicPartition:
    return TopicPartition(*key, lane.written_upto, lane.state.encode())
