"""Where partitions stand, as they were committed: by the group's offsets, else by what the topics end with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from services.ingest.failures import blaming
from services.ingest.partition_state import NEXT, PartitionState
from stairwise.platform import kafka
from stairwise.schema import Instant, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.incarnations import Incarnation

log = logging.getLogger(__name__)

TIMEOUT = 30.0
LOOK_BACK = 64
"""How many offsets from its end a topic is first searched for its last message."""

Key = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True)
class CommittedPlace:
    """The next offset to read, and the state there; None where nothing was ever committed."""

    offset: int
    state: PartitionState | None


def committed(consumer: Consumer, keys: Iterable[Key]) -> dict[Key, CommittedPlace]:
    """What the group has committed. A transaction that is under way is waited for, as long as it may take."""
    asked = [TopicPartition(*key) for key in keys]
    places = {}
    for answer in kafka.committed(consumer, asked, TIMEOUT) if asked else ():
        if answer.error is not None:
            raise KafkaException(answer.error)
        state = _state(answer) if answer.offset >= 0 and answer.metadata else None
        places[answer.topic, answer.partition] = CommittedPlace(max(answer.offset, 0), state)
    return places


def _state(answer: TopicPartition) -> PartitionState | None:
    """The state that was committed; None where somebody else has committed something else."""
    try:
        return PartitionState.decode(answer.metadata)
    except (ValueError, TypeError):
        log.warning("what is committed for %s/%d is not ours", answer.topic, answer.partition)
        return None


def from_outputs(brokers: str, missing: Mapping[Key, Sequence[Incarnation]]) -> dict[Key, CommittedPlace]:
    """Where partitions stand by their last batches and rejects, for those of which nothing is committed (any more)."""
    reader = kafka.consumer(brokers, "stairwise-ingest-recovery", enable_partition_eof=True)
    try:
        places = {}
        for key, incarnations in missing.items():
            with blaming(topics.stream_of(key[0])):
                places[key] = _from_outputs(reader, key[1], incarnations)
        return places
    finally:
        reader.close()


def followed(brokers: str, tables: Mapping[Key, Stream]) -> dict[Key, dict[str, Instant]]:
    """How far the streams had come that a table's partitions follow, as their last batches say it."""
    reader = kafka.consumer(brokers, "stairwise-ingest-recovery", enable_partition_eof=True)
    try:
        found = {}
        for key, table in tables.items():
            last = _last(reader, topics.sequenced(table), key[1])
            if last is not None:
                with blaming(table.name):
                    found[key] = BatchHeaders.decode(kafka.headers_of(last)).follows
        return found
    finally:
        reader.close()


def _from_outputs(reader: Consumer, partition: int, incarnations: Sequence[Incarnation]) -> CommittedPlace:
    for incarnation in reversed(incarnations):
        last = _last(reader, topics.sequenced(incarnation.stream), partition)
        if last is None:
            continue
        headers = kafka.headers_of(last)
        offset = int(headers.get(NEXT, b"0"))
        for topic in (topics.late(incarnation.stream.name), topics.dead(incarnation.stream.name)):
            reject = _last(reader, topic, partition)
            if reject is not None:
                offset = max(offset, int(kafka.headers_of(reject)["offset"]) + 1)
        return CommittedPlace(offset, PartitionState.of_batch(incarnation, headers))
    return CommittedPlace(0, None)


def _last(reader: Consumer, topic: str, partition: int) -> Message | None:
    """The last message that was committed; control records and aborted ones stand between it and the end."""
    try:
        low, high = kafka.bounds(reader, TopicPartition(topic, partition), TIMEOUT)
    except KafkaException as error:
        if error.args[0].code() in kafka.ABSENT:
            return None
        raise
    back = LOOK_BACK
    while high > low:
        start = max(low, high - back)
        found = list(kafka.read_to_end(reader, [TopicPartition(topic, partition, start)]))
        if found or start == low:
            return found[-1] if found else None
        back *= 8
    return None


def next_incarnation(incarnations: Sequence[Incarnation], after: Incarnation) -> Incarnation | None:
    return next((one for one in incarnations if one.stream.incarnation > after.stream.incarnation), None)


def incarnation_of(incarnations: Sequence[Incarnation], state: PartitionState | None) -> Incarnation:
    """The incarnation that a state is of; the first where nothing was ever written."""
    if state is None:
        return incarnations[0]
    return next((one for one in incarnations if one.stream.incarnation == state.incarnation), incarnations[0])


def open_ends(places: Mapping[Key, CommittedPlace], incarnations: Mapping[str, Sequence[Incarnation]]) -> set[str]:
    """The dropped streams of which some partition has not yet said so."""
    names = set()
    for (topic, _), place in places.items():
        name = topics.stream_of_incoming(topic)
        last = incarnations[name][-1]
        state = place.state
        if state is None or state.incarnation < last.stream.incarnation or not state.has_ended(last):
            names.add(name)
    return names
