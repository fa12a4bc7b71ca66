"""Where the streams stand, asked of Kafka: a few questions for all partitions together, within seconds.

    1  ends of in.*                        2  what ingest has committed, with each partition's state
    3  ends of s.*                         4  what operators have committed
    5  of partitions that operators have not taken to their end, the first message that they have not

Asked in this order, a partition never looks further behind than it is, and operators never further ahead. A look is
good for a second for whoever asks next, and covers what others have asked for lately: however many ask, Kafka is asked
about once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from services.windows import scraped_metrics
from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.stream_standing import (
    INGEST_GROUP,
    OPERATORS_GROUP,
    PartitionStanding,
    Standing,
    StreamStanding,
    Written,
)

TIMEOUT = 3.0
"""How long Kafka may take for a question, in seconds."""
GOOD_FOR = 0.8
"""For how long a look, or that it failed, is given to others, in seconds."""
LATELY = 5.0
"""For how long streams are looked at after somebody has asked for them, in seconds."""
PEEK = 1.0
"""How long to wait for messages that operators have not taken, in seconds."""
MOST_PEEKED = 256
"""Of how many partitions these are read."""

Key = tuple[str, int]


class Positions:
    """Answers one asker at a time; the others wait, and take the same look if it is of their streams."""

    def __init__(self, brokers: str, scrape: Mapping[str, str]) -> None:
        self._scrape = scrape
        self._ends = kafka.Ends(brokers)
        self._admin = kafka.admin(brokers)
        # Without waiting for transactions that are under way: what was committed before them is true as well.
        asking = {"isolation_level": "read_uncommitted"}
        self._ingest = kafka.consumer(brokers, INGEST_GROUP, **asking)
        self._operators = kafka.consumer(brokers, OPERATORS_GROUP, **asking)
        self._reader = kafka.consumer(
            brokers, "stairwise-windows-positions", enable_partition_eof=True, queued_min_messages=1
        )
        self._lock = threading.Lock()
        self._clock: Instant = 0
        self._looked = float("-inf")
        self._known: dict[str, StreamStanding] = {}
        self._failure: ConfigError | None = None
        self._asked: dict[str, tuple[Stream, float]] = {}
        """The streams that were asked for, and when."""
        self._told = scraped_metrics.Scraped()
        self._is_carried = self._may_carry = False

    def close(self) -> None:
        for consumer in (self._ingest, self._operators, self._reader):
            consumer.close()

    def of(self, streams: Iterable[Stream]) -> Standing:
        """Where these streams stand; raises ``ConfigError`` where Kafka does not tell in time."""
        wanted = {topics.sequenced(stream): stream for stream in streams}
        if not self._lock.acquire(timeout=TIMEOUT):  # or the threads of the registry would all come to wait here
            raise ConfigError("Kafka has not yet told others where the streams stand", hint="is the broker up?")
        try:
            is_fresh = time.monotonic() - self._looked < GOOD_FOR
            if not (is_fresh and (self._failure is not None or wanted.keys() <= self._known.keys())):
                self._look(wanted)
            if self._failure is not None:
                raise self._failure
            known = {topic: self._known[topic] for topic in wanted}
            return Standing(self._clock, known, self._told.absent, self._is_carried)
        finally:
            self._lock.release()

    def _look(self, wanted: Mapping[str, Stream]) -> None:
        now = time.monotonic()
        asked = {topic: (stream, now) for topic, stream in wanted.items()}
        lately = {topic: before for topic, before in self._asked.items() if now - before[1] < LATELY}
        self._told = scraped_metrics.read(self._scrape)
        self._clock = int(time.time() * 1000)
        self._failure = None
        for self._asked in (lately | asked, asked):  # those of others may have been dropped meanwhile
            try:
                stood = self._stand([stream for stream, _ in self._asked.values()])
                self._known = {topics.sequenced(each.stream): each for each in stood}
                self._is_carried = self._looks_carried()
                break
            except KafkaException as error:
                is_absent = error.args[0].code() in kafka.ABSENT
                if is_absent and self._asked is not asked:
                    continue
                said = f"Kafka does not tell where the streams stand: {error.args[0].str()}"
                failure = ConfigError(said, hint="is the broker up?")
                if is_absent:
                    raise failure from error  # which concerns nobody else
                self._failure = failure
                break
        self._looked = time.monotonic()

    def _looks_carried(self) -> bool:
        """Is there a message by which operators have told themselves to go on, and which they have not taken?"""
        key = (topics.CARRIED, 0)
        if not self._may_carry:  # operators makes the topic when it first starts
            self._may_carry = topics.CARRIED in self._ends.topics(TIMEOUT)
        if not self._may_carry:
            return False
        taken = _committed(self._operators, [key]).get(key)
        return self._ends.of([key], TIMEOUT)[key] > (0 if taken is None else taken.offset)

    def _stand(self, streams: Sequence[Stream]) -> list[StreamStanding]:
        incoming = [(topics.incoming(s.name), p) for s in streams for p in range(s.partitions)]
        sequenced = [(topics.sequenced(s), p) for s in streams for p in range(s.partitions)]
        came = self._ends.of(incoming, TIMEOUT)
        read = _committed(self._ingest, incoming)
        written = self._ends.of(sequenced, TIMEOUT)
        taken = _committed(self._operators, sequenced)
        starts = self._starts(
            [key for key in incoming if key not in read and came[key]]
            + [key for key in sequenced if key not in taken and written[key]]
        )
        positions = {key: taken[key].offset if key in taken else starts.get(key, 0) for key in sequenced}
        behind = {key: at for key, at in positions.items() if written[key] > at}
        first = self._peek(behind)
        found = []
        for stream in streams:
            partitions = []
            for number in range(stream.partitions):
                key, own = (topics.incoming(stream.name), number), (topics.sequenced(stream), number)
                at = read[key].offset if key in read else starts.get(key, 0)
                untaken = written[own] - positions[own] if own in behind and first.get(own, True) is not None else 0
                state = Written.decode(read[key].metadata) if key in read and read[key].metadata else None
                partitions.append(_partition(stream, state, max(0, came[key] - at), untaken, first.get(own)))
            found.append(self._stream(stream, partitions))
        return found

    def _stream(self, stream: Stream, partitions: Sequence[PartitionStanding]) -> StreamStanding:
        told, name = self._told, stream.name
        late = told.late.get(name, 0) if told.counts else None
        dead = told.dead.get(name, 0) if told.counts else None
        return StreamStanding(stream, tuple(partitions), told.failed.get(name, ""), late, dead)

    def _starts(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The first offsets that there are, of partitions for which a group has committed nothing."""
        if not keys:
            return {}
        asked = {TopicPartition(*key): OffsetSpec.earliest() for key in keys}
        try:
            return self._answered(asked)
        except KafkaException as error:
            if error.args[0].code() not in kafka.STALE:
                raise
            self._admin.list_topics(timeout=TIMEOUT)
            return self._answered(asked)

    def _answered(self, asked: dict[TopicPartition, OffsetSpec]) -> dict[Key, int]:
        answers = self._admin.list_offsets(asked, request_timeout=TIMEOUT)
        return {(p.topic, p.partition): int(answer.result().offset) for p, answer in answers.items()}

    def _peek(self, behind: Mapping[Key, int]) -> dict[Key, Message | None]:
        """The first message at or after an offset of each partition, as far as they come in time; None where none is
        left but marks of transactions."""
        asked = dict(list(behind.items())[:MOST_PEEKED])
        found: dict[Key, Message | None] = {}
        if not asked:
            return found
        self._reader.assign([TopicPartition(*key, at) for key, at in asked.items()])
        deadline = time.monotonic() + PEEK
        while len(found) < len(asked) and time.monotonic() < deadline:
            for message in self._reader.consume(1000, timeout=kafka.STEP):
                if message.error() is None:
                    found.setdefault((message.topic(), message.partition()), message)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    found.setdefault((message.topic(), message.partition()), None)
        self._reader.unassign()
        return found


def _partition(
    stream: Stream, state: Written | None, unread: int, untaken: int, first: Message | None
) -> PartitionStanding:
    if state is None or state.incarnation < stream.incarnation:
        return PartitionStanding(unread=unread, untaken=untaken)
    mark = DUSK if state.incarnation > stream.incarnation else state.watermark(stream.lateness)
    taken, since = mark, None
    if untaken:
        taken = DAWN if first is None else BatchHeaders.decode(kafka.headers_of(first)).previous
        since = None if first is None else first.timestamp()[1]
    return PartitionStanding(mark, taken, state.sequence, state.version, state.active, unread, untaken, since)


def _committed(group: Consumer, keys: Sequence[Key]) -> dict[Key, TopicPartition]:
    asked = [TopicPartition(*key) for key in keys]
    answers = kafka.committed(group, asked, TIMEOUT) if asked else []
    return {(a.topic, a.partition): a for a in answers if a.error is None and a.offset >= 0}
