"""Kafka clients with the settings that were measured to matter; TLS and SASL as ``kafka_security`` says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from stairwise.platform.kafka_security import KafkaSecurity

MAX_MESSAGE = 8 << 20
"""The largest message on any topic, in bytes."""
ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC})
"""Errors of a topic that is not there, or was made a moment ago."""
ELSEWHERE = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
"""Errors of a group whose coordinator is being found."""
UNLED = frozenset({KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION})
"""Errors of a partition whose leader is being found, as that of a new one is."""
STALE = frozenset({KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH}) | UNLED
"""What a client is told that has not noticed that a broker was started again: it learns that from new metadata."""
STEP = 0.05
"""How long to wait for messages at a time, in seconds: ``consume`` waits for all that it may bring."""

Answer = TypeVar("Answer")


def consumer(brokers: str, group: str, **settings: Any) -> Consumer:
    """A consumer that sees only what is committed and commits nothing by itself.

    The default fetch.queue.backoff.ms of a second starves a loop that keeps up; large fetches make partitions
    drift apart while a backlog is read.
    """
    return Consumer(
        {
            **_reaching(brokers),
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 20_000,
            "queued.max.messages.kbytes": 65_536,
            "fetch.message.max.bytes": 262_144,
            "fetch.wait.max.ms": 50,
            **_dotted(settings),
        }
    )


def producer(brokers: str, **settings: Any) -> Producer:
    """An idempotent producer; give it a ``transactional_id`` to make it transactional."""
    return Producer(
        {
            **_reaching(brokers),
            "enable.idempotence": True,
            "linger.ms": 0,
            "compression.type": "lz4",
            "message.max.bytes": MAX_MESSAGE,
            "batch.size": 2 << 20,
            **({"transaction.timeout.ms": 10_000} if "transactional_id" in settings else {}),
            **_dotted(settings),
        }
    )


def admin(brokers: str, **settings: Any) -> AdminClient:
    return AdminClient({**_reaching(brokers), **_dotted(settings)})


def _reaching(brokers: str) -> dict[str, Any]:
    return {"bootstrap.servers": brokers, **KafkaSecurity.from_environment().librdkafka()}


class Ends:
    """Asks which topics there are and where their partitions end, over a connection of its own.

    A broker answers the requests of a connection one after the other, so on a consumer's own the question would wait
    behind a fetch that waits for messages: 50 ms where this takes 2. And a consumer whose ``list_topics`` is called
    while it tells of partitions given or taken forgets that it does, and ends the process when it tells of the next.
    """

    def __init__(self, brokers: str) -> None:
        self._admin = admin(brokers)

    def topics(self, timeout: float = 30) -> set[str]:
        return set(self._admin.list_topics(timeout=timeout).topics)

    def of(self, partitions: Iterable[tuple[str, int]], timeout: float = 30) -> dict[tuple[str, int], int]:
        """The offsets behind everything that is committed now, in one question, asked again while Kafka is away."""
        asked = {TopicPartition(*key): OffsetSpec.latest() for key in partitions}
        deadline = time.monotonic() + timeout
        while asked:
            answers = self._admin.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout
            )
            try:
                return {(p.topic, p.partition): int(answer.result().offset) for p, answer in answers.items()}
            except KafkaException as error:
                if error.args[0].code() in ABSENT or time.monotonic() > deadline:
                    raise
                time.sleep(STEP)
                if error.args[0].code() in STALE:
                    self._admin.list_topics(timeout=timeout)
        return {}


def committed(group: Consumer, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
    """What a consumer's group has committed; a negative offset where that is nothing."""
    return _asked(lambda left: group.committed(partitions, timeout=left), ELSEWHERE, timeout)


def bounds(
    reader: Consumer, partition: TopicPartition, timeout: float, *, made_just_now: bool = False
) -> tuple[int, int]:
    """The first offset that is retained, and the end; the topic may not be known yet if it was ``made_just_now``."""
    passing = UNLED | ABSENT if made_just_now else UNLED
    low, high = _asked(lambda left: reader.get_watermark_offsets(partition, timeout=left), passing, timeout)
    return low, high


def _asked(question: Callable[[float], Answer], passing: Set[int], timeout: float) -> Answer:
    """The answer to a question that the client does not ask again by itself after errors that will pass."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return question(max(STEP, deadline - time.monotonic()))
        except KafkaException as error:
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise
            time.sleep(STEP)


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """As librdkafka spells them; callbacks are the Python client's own."""
    return {name if callable(value) else name.replace("_", "."): value for name, value in settings.items()}


def headers_of(message: Message) -> dict[str, bytes]:
    return dict(message.headers() or ())


def checked(message: Message) -> Message:
    """The message, or the error that it stands for."""
    if message.error() is not None:
        raise KafkaException(message.error())
    return message


def read_to_end(reader: Consumer, partitions: list[TopicPartition], timeout: float = 30) -> Iterator[Message]:
    """Every message of the partitions from the offsets given to their end as it is now.

    ``reader`` must have ``enable.partition.eof`` set, since transactions leave control records at the end.
    """
    reader.assign(partitions)
    open_ends = {(p.topic, p.partition) for p in partitions}
    silent_since = time.monotonic()
    while open_ends:
        messages = reader.consume(1000, timeout=STEP)
        if messages:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since > timeout:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer for {timeout} s", False))
        for message in messages:
            if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                open_ends.discard((message.topic(), message.partition()))
            else:
                yield checked(message)
