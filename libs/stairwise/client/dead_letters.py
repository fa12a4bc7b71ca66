"""Dead letters: what ingest could not take, read back with its reason, and published again.

How far a stream's dead letters were published again is kept for each code, as the offsets of a consumer group, and
committed in the transaction that publishes them: a replay that is run twice publishes once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from stairwise.errors import NotFoundError
from stairwise.platform import kafka
from stairwise.streams.messages import CONTENT_TYPE
from stairwise.streams.reason_codes import Code
from stairwise.wire import topics

AT_ONCE = 5_000
"""How many are published in a transaction."""
TIMEOUT = 30.0


@dataclass(frozen=True)
class DeadLetter:
    """A message, or the part of one, that ingest put aside."""

    partition: int
    """Of both topics: that of the input is that of the dead letters."""
    number: int
    """Its offset among the dead letters."""
    offset: int
    """The offset in ``in.<stream>`` at which it came."""
    time: int
    """When it was put aside, in milliseconds."""
    code: str
    field: str
    reason: str
    rows: int
    size: int
    value: bytes
    content_type: bytes | None
    key: bytes | None = None
    of_all: bool = False
    """Is it about all rows of its message? ``rows`` does not know how many these are."""

    @property
    def is_whole(self) -> bool:
        """Are its bytes here? Those of a message that was too large are not."""
        return self.code != Code.TOO_LARGE.name

    @staticmethod
    def of(message: Message) -> DeadLetter:
        headers = kafka.headers_of(message)
        return DeadLetter(
            message.partition(),
            message.offset(),
            int(headers["offset"]),
            message.timestamp()[1],
            headers["code"].decode(),
            headers["field"].decode(),
            headers["reason"].decode(),
            int(headers.get("rows", b"1")),
            int(headers.get("size", b"0")),
            message.value() or b"",
            headers.get(CONTENT_TYPE),
            message.key(),
            topics.WHOLE in headers,
        )


@dataclass(frozen=True)
class Replayed:
    published: int
    skipped: int
    """Too large to have been kept."""


class DeadLetters:
    """The dead letters of one stream; with ``late``, its late rows, which can only be read."""

    def __init__(self, brokers: str, stream: str, *, late: bool = False) -> None:
        self._brokers = brokers
        self._stream = stream
        self._topic = topics.late(stream) if late else topics.dead(stream)

    def read(self, codes: Collection[str] = ()) -> Iterator[DeadLetter]:
        """All that are retained, partition by partition; only those with one of the codes, if any are given."""
        reader = kafka.consumer(self._brokers, "stairwise-dlq", enable_partition_eof=True)
        try:
            for partition in self._partitions(reader):
                for message in kafka.read_to_end(reader, [TopicPartition(self._topic, partition, 0)]):
                    letter = DeadLetter.of(message)
                    if not codes or letter.code in codes:
                        yield letter
        finally:
            reader.close()

    def replay(self, codes: Collection[str] = (), *, again: bool = False) -> Replayed:
        """Publish them to the stream again: those that were not yet, or with ``again`` all of them."""
        producer = kafka.producer(self._brokers, transactional_id=f"stairwise-dlq-{self._stream}")
        producer.init_transactions(TIMEOUT)
        places = _Places(self._brokers, self._topic)
        published = skipped = 0
        try:
            for some in _chunks(self.read(codes)):
                due = [letter for letter in some if again or places.is_new(letter)]
                skipped += sum(not letter.is_whole for letter in due)
                due = [letter for letter in due if letter.is_whole]
                if not due:
                    continue
                producer.begin_transaction()
                for letter in due:
                    headers = [(CONTENT_TYPE, letter.content_type)] if letter.content_type is not None else None
                    topic = topics.incoming(self._stream)
                    producer.produce(topic, letter.value, letter.key, partition=letter.partition, headers=headers)
                for consumer, offsets in places.after(due):
                    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT)
                producer.commit_transaction(TIMEOUT)
                published += len(due)
        finally:
            places.close()
        return Replayed(published, skipped)

    def _partitions(self, reader: Consumer) -> list[int]:
        found = reader.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic]
        if found.error is not None and found.error.code() in kafka.ABSENT:
            raise NotFoundError("stream", self._stream, ())
        if found.error is not None:
            raise KafkaException(found.error)
        return sorted(found.partitions)


class _Places:
    """Up to where the letters of each code were published again, by partition."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._brokers = brokers
        self._topic = topic
        self._groups: dict[str, Consumer] = {}
        self._next: dict[tuple[str, int], int] = {}

    def is_new(self, letter: DeadLetter) -> bool:
        key = letter.code, letter.partition
        if key not in self._next:
            asked = [TopicPartition(self._topic, letter.partition)]
            self._next[key] = kafka.committed(self._group(letter.code), asked, TIMEOUT)[0].offset
        return letter.number >= self._next[key]

    def after(self, letters: Iterable[DeadLetter]) -> Iterator[tuple[Consumer, list[TopicPartition]]]:
        """By group, the offsets behind the letters."""
        last: dict[str, dict[int, int]] = {}
        for letter in letters:
            last.setdefault(letter.code, {})[letter.partition] = letter.number + 1
        for code, offsets in last.items():
            yield self._group(code), [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]

    def close(self) -> None:
        for group in self._groups.values():
            group.close()

    def _group(self, code: str) -> Consumer:
        if code not in self._groups:
            self._groups[code] = kafka.consumer(self._brokers, f"stairwise-dlq-{self._topic}-{code}")
        return self._groups[code]


def _chunks(letters: Iterable[DeadLetter]) -> Iterator[list[DeadLetter]]:
    some: list[DeadLetter] = []
    for letter in letters:
        some.append(letter)
        if len(some) == AT_ONCE:
            yield some
            some = []
    yield some
