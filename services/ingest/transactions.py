"""One producer, one transaction at a time: messages and the offsets up to which they speak, all or nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from opentelemetry.trace import SpanKind

from services.ingest.failures import OF_A_TOPIC, StreamError
from services.ingest.rejects import Outgoing
from stairwise.platform import kafka, telemetry
from stairwise.wire import topics

log = logging.getLogger(__name__)

START_WITHIN = 30.0
"""How long Kafka may take to let a process take over, in seconds."""
TIMEOUT = 5.0
"""How long a step of a transaction may take, in seconds; then it is asked for again."""
PATIENCE = 15.0
"""After how long a step that Kafka keeps putting off is given up, and the process with it: a new one has new clients,
which find a broker that was away sooner than old ones that wait for answers of before."""
OVERDUE = 45.0
"""After how long a commit that has not even failed is given up, and the process with it: where a broker goes away in
the middle of a step, the client's own timeouts may not hold."""

UNDELIVERED_MS = 5_000
"""How long a message may wait for its broker. Well below the broker's own patience with a transaction (10 s): there it
would fence this process, which ends it, where a message that waits for a deleted topic only sets its stream aside."""

MAX_WAITING_KB = 32 << 10
"""How much may wait to be sent: who produces faster than Kafka takes it waits, instead of filling the memory."""

LINGER_MS = 20
"""How long messages wait for more of their partition before they are sent, if no commit sends them. Sent one by one,
they soon wait for the answers to those before, and meanwhile the client's thread does nothing but look at the clock."""
BATCH_BYTES = 4 << 20
"""How much of a partition is sent at a time."""

RETRY_MS = 20
"""A transaction that follows the last one closely is put off by the broker until that one is wound up, which takes it a
few milliseconds: the default of 100 would be most of a row's way."""


class AbortedError(Exception):
    """The transaction was taken back: what it said was not said."""


class StrangerError(AbortedError):
    """The group does not know this instance any more: its partitions are somebody else's."""


class Transactions:
    def __init__(self, brokers: str, identity: str) -> None:
        self._producer = kafka.producer(
            brokers,
            transactional_id=identity,
            queue_buffering_max_kbytes=MAX_WAITING_KB,
            linger_ms=LINGER_MS,
            batch_size=BATCH_BYTES,
            retry_backoff_ms=RETRY_MS,
            message_timeout_ms=UNDELIVERED_MS,
            compression_type="none",  # batches are packed, and the topics of rejects see to it themselves
            delivery_report_only_error=True,
        )
        self._refused: dict[str, KafkaError] = {}
        """The topics that messages of the transaction could not be written to, and why."""

    def start(self) -> None:
        """Take over: whatever an earlier process of this identity left open is aborted, and it can write no more."""
        self._producer.init_transactions(START_WITHIN)

    def begin(self, messages: Iterable[tuple[int, Outgoing]]) -> bool:
        """Begin a transaction with messages for their partitions; False, and none is begun, if there is none.

        Raises ``AbortedError`` when nothing of it holds but the next one may, ``StreamError`` when it may without a
        stream, else the KafkaException from which this process cannot go on: another one has its identity, or the
        broker has lost the transaction.
        """
        begun = False
        self._refused = {}
        try:
            for partition, message in messages:
                if not begun:
                    self._producer.begin_transaction()
                    begun = True
                self._produce(partition, message)
        except StreamError:
            if begun:
                self._insist(lambda: self._producer.abort_transaction(TIMEOUT))
            raise
        except KafkaException as error:
            self._abort(error)
        return begun

    def commit(self, offsets: Sequence[TopicPartition], group: Any) -> float:
        """Commit what was begun, and the offsets with it; how many seconds it took. Raises as ``begin`` does."""
        started = time.monotonic()
        try:
            self._insist(lambda: self._producer.send_offsets_to_transaction(list(offsets), group, TIMEOUT))
            self._insist(lambda: self._producer.commit_transaction(TIMEOUT))
        except KafkaException as error:
            self._abort(error)
        return time.monotonic() - started

    def _abort(self, error: KafkaException) -> None:
        if not error.args[0].txn_requires_abort():
            raise error
        log.warning("transaction aborted: %s", error.args[0].str())
        self._insist(lambda: self._producer.abort_transaction(TIMEOUT))
        for topic, refusal in self._refused.items():
            if refusal.code() == KafkaError._MSG_TIMED_OUT and self._is_there(topic):
                continue
            raise StreamError(topics.stream_of(topic), KafkaException(refusal)) from error
        kind = StrangerError if error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID else AbortedError
        raise kind(error.args[0].str()) from error

    def _insist(self, step: Callable[[], None]) -> None:
        """Ask again for a step that Kafka could not do now; it goes on where it was."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return step()
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                log.warning("Kafka is asked again: %s", error.args[0].str())

    def _produce(self, partition: int, message: Outgoing) -> None:
        headers = message.headers
        if message.contexts:
            stream = topics.parse_sequenced(message.topic)[0]
            attributes = {"stairwise.stream": stream, "stairwise.partition": partition}
            span = telemetry.begin("ingest batch", message.contexts, attributes, SpanKind.CONSUMER)
            headers = headers + telemetry.header(span)
            span.end()
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    partition=partition,
                    headers=headers,
                    on_delivery=self._undelivered,
                )
                return
            except BufferError:
                self._producer.poll(0.05)
            except KafkaException as error:
                if error.args[0].code() not in OF_A_TOPIC:
                    raise
                raise StreamError(topics.stream_of(message.topic), error) from error

    def _undelivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and (error.code() in OF_A_TOPIC or error.code() == KafkaError._MSG_TIMED_OUT):
            self._refused[message.topic()] = error

    def _is_there(self, topic: str) -> bool:
        """Is there such a topic, as far as the broker answers? The client waits for one that was deleted to come."""
        try:
            return topic in self._producer.list_topics(timeout=TIMEOUT).topics
        except KafkaException:
            return True
