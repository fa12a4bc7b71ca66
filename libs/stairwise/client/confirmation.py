"""What became of the rows that were published, read back from what ingest committed.

    Kafka says where each message is ──▶ ingest's committed offsets pass them ──▶ late.* and dlq.* name the refused

Ingest commits its offsets together with what it refused, so what is behind a committed offset is in the stream unless
it is in one of those topics.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from stairwise.client.dead_letters import DeadLetter
from stairwise.client.deliveries import Deliveries
from stairwise.errors import StairwiseError
from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from stairwise.wire.stream_standing import INGEST_GROUP

PATIENCE = 30.0
"""How long ingest may take without getting any further, in seconds, unless told otherwise."""
EVERY = 0.05
TIMEOUT = 10.0
ATTEMPT = 2.0
"""How long a single question may take, of those that are asked again."""
DENIED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})
"""What Kafka answers those who may not look."""

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


class PublishError(StairwiseError):
    """Rows that did not reach Kafka, or that ingest refused."""


@dataclass(frozen=True)
class Confirmation:
    """What became of rows. Of those that ingest has judged, each was taken, late or dead."""

    rows: int
    """All that Kafka has."""
    judged: int | None
    """How many of them ingest has judged so far; None if that may not be known, as ``untold`` says."""
    late: int | None = None
    dead: int | None = None
    reason: str | None = None
    """Why the first that was refused was."""
    untold: str | None = None
    """Why it is not known what became of them."""

    @property
    def taken(self) -> int | None:
        """How many are in the stream."""
        if self.judged is None or self.late is None or self.dead is None:
            return None
        return self.judged - self.late - self.dead

    @property
    def waiting(self) -> int | None:
        """How many ingest has not judged yet."""
        return None if self.judged is None else self.rows - self.judged

    @property
    def refused(self) -> int:
        return (self.late or 0) + (self.dead or 0)


class Aftermath:
    """Follows the rows of a publisher. It is made before the first is sent: what was refused earlier is not read."""

    def __init__(self, brokers: str, stream: Stream) -> None:
        self._brokers = brokers
        self._stream = stream
        self._admin = kafka.admin(brokers, logger=_log)
        self._rejecting = [topics.dead(stream.name)] + ([] if stream.is_table else [topics.late(stream.name)])
        self._starts: dict[str, list[int]] = {}
        self._denied: str | None = None
        try:
            for topic in self._rejecting:
                self._find(topic)
            self._starts = {topic: self._ends(topic) for topic in self._rejecting}
        except KafkaException as error:
            if error.args[0].code() not in DENIED:
                hint = "is it up? `stairwise status` tells"
                raise PublishError(f"Kafka at {brokers} does not answer: {error.args[0].str()}", hint=hint) from error
            self._denied = self._unknown(error)

    def confirm(self, deliveries: Deliveries, patience: float) -> Confirmation:
        """Wait until ingest has judged all that was delivered, or for ``patience`` seconds without its going on."""
        if not deliveries.rows:
            return Confirmation(0, 0, 0, 0)
        onlooker = kafka.consumer(self._brokers, INGEST_GROUP, enable_partition_eof=True, logger=_log)
        judged: int | None = None
        try:
            places = self._awaited(onlooker, deliveries, patience)
            judged = deliveries.rows_below(places)
            if self._denied is not None:
                return Confirmation(deliveries.rows, judged, untold=self._denied)
            ends = {topic: self._ends(topic) for topic in self._rejecting}
            refused = dict.fromkeys(self._rejecting, 0)
            first: DeadLetter | None = None
            for topic, rows, letter in self._refused(onlooker, deliveries, places, ends):
                refused[topic] += rows
                first = letter if first is None else min(first, letter, key=_order)
            if judged == deliveries.rows:
                self._starts = ends
        except KafkaException as error:
            return Confirmation(deliveries.rows, judged, untold=self._unknown(error))
        finally:
            onlooker.close()
        late, dead = (refused.get(of(self._stream.name), 0) for of in (topics.late, topics.dead))
        return Confirmation(deliveries.rows, judged, late, dead, None if first is None else first.reason)

    def _awaited(self, onlooker: Consumer, deliveries: Deliveries, patience: float) -> dict[int, int]:
        """Up to where ingest has judged each partition. The onlooker has its group's name, and never joins it."""
        ends = deliveries.ends()
        asked = [TopicPartition(topics.incoming(self._stream.name), partition) for partition in ends]
        best, deadline = 0, time.monotonic() + patience
        silent = time.monotonic() + TIMEOUT
        while True:
            try:
                places = {p.partition: max(0, p.offset) for p in kafka.committed(onlooker, asked, ATTEMPT)}
            except KafkaException:
                told = onlooker.poll(0)  # an answer that the group may not be seen comes this way, if at all
                if told is not None and told.error() is not None and told.error().code() in DENIED:
                    raise KafkaException(told.error()) from None
                if time.monotonic() > max(deadline, silent):
                    raise
            else:
                reached = sum(places.values())  # those of others before ours count: ingest goes on
                if deliveries.rows_below(places) == deliveries.rows or time.monotonic() > deadline:
                    return places
                if reached > best:
                    best, deadline = reached, time.monotonic() + patience
            time.sleep(EVERY)

    def _refused(
        self,
        onlooker: Consumer,
        deliveries: Deliveries,
        places: Mapping[int, int],
        ends: Mapping[str, list[int]],
    ) -> Iterator[tuple[str, int, DeadLetter]]:
        """By topic, how many rows were refused, and the letter about them."""
        grown = {
            (topic, p): starts[p]
            for topic, starts in self._starts.items()
            for p in places
            if ends[topic][p] > starts[p]
        }
        if not grown:
            return
        for topic in {topic for topic, _ in grown}:
            self._await_readable(topic, ends[topic])
            onlooker.list_topics(topic, timeout=TIMEOUT)  # without, the first message comes after a second
        for message in kafka.read_to_end(onlooker, [TopicPartition(*key, start) for key, start in grown.items()]):
            letter = DeadLetter.of(message)
            of_message = deliveries.rows_at(letter.partition, letter.offset)
            if of_message and letter.offset < places[letter.partition]:
                yield message.topic(), of_message if letter.of_all else letter.rows, letter

    def _await_readable(self, topic: str, ends: list[int]) -> None:
        """Wait until everything below the ends can be read: a commit does not reach all partitions at once."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            readable = topics.ends(self._admin, topic, len(ends), readable=True)
            if all(map(operator.ge, readable, ends)):
                return
            time.sleep(EVERY)

    def _find(self, topic: str) -> None:
        """Make sure that the topic is there and may be seen; one that was made a moment ago may not be known yet.

        Without it, the first question where the topic ends may take 3 s.
        """
        deadline = time.monotonic() + TIMEOUT
        while (error := self._admin.list_topics(topic, timeout=TIMEOUT).topics[topic].error) is not None:
            if error.code() not in kafka.ABSENT or time.monotonic() > deadline:
                raise KafkaException(error)
            time.sleep(EVERY)

    def _ends(self, topic: str) -> list[int]:
        return topics.ends(self._admin, topic, self._stream.partitions)

    def _unknown(self, error: KafkaException) -> str:
        """Why it is not known what became of the rows: most likely a right is missing."""
        rights = f"read the topics {' and '.join(self._rejecting)}, and describe the group {INGEST_GROUP}"
        return f"{error.args[0].str()}; you need the right to {rights}"


def _order(letter: DeadLetter) -> tuple[int, int, int]:
    return letter.time, letter.partition, letter.number
