"""Where partitions stand, as they were committed: by the group's offsets, else by what the topics end with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from services.ingest.failures import blaming
from services.ingest.state import NEXT, State
from stairwise.platform import kafka, topics
from stairwise.platform.batches import BatchHeaders
from stairwise.platform.lives import Life
from stairwise.schema import Instant, Stream

log = logging.getLogger(__name__)

TIMEOUT = 30.0
LOOK_BACK = 64
"""How many offsets from its end a topic is first searched for its last message."""

Key = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True)
class Place:
    """The next offset to read, and the state there; None where nothing was ever committed."""

    offset: int
    state: State | None


def committed(consumer: Consumer, keys: Iterable[Key]) -> dict[Key, Place]:
    """What the group has committed. A transaction that is under way is waited for, as long as it may take."""
    asked = [TopicPartition(*key) for key in keys]
    places = {}
    for answer in kafka.committed(consumer, asked, TIMEOUT) if asked else ():
        if answer.error is not None:
            raise KafkaException(answer.error)
        state = _state(answer) if answer.offset >= 0 and answer.metadata else None
        places[answer.topic, answer.partition] = Place(max(answer.offset, 0), state)
    return places


def _state(answer: TopicPartition) -> State | None:
    """The state that was committed; None where somebody else has committed something else."""
    try:
        return State.decode(answer.metadata)
    except (ValueError, TypeError):
        log.warning("what is committed for %s/%d is not ours", answer.topic, answer.partition)
        return None


def from_outputs(brokers: str, missing: Mapping[Key, Sequence[Life]]) -> dict[Key, Place]:
    """Where partitions stand by their last batches and rejects, for those of which nothing is committed (any more)."""
    reader = kafka.consumer(brokers, "stairwise-ingest-recovery", enable_partition_eof=True)
    try:
        places = {}
        for key, lives in missing.items():
            with blaming(topics.stream_of(key[0])):
                places[key] = _from_outputs(reader, key[1], lives)
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


def _from_outputs(reader: Consumer, partition: int, lives: Sequence[Life]) -> Place:
    for life in reversed(lives):
        last = _last(reader, topics.sequenced(life.stream), partition)
        if last is None:
            continue
        headers = kafka.headers_of(last)
        offset = int(headers.get(NEXT, b"0"))
        for topic in (topics.late(life.stream.name), topics.dead(life.stream.name)):
            reject = _last(reader, topic, partition)
            if reject is not None:
                offset = max(offset, int(kafka.headers_of(reject)["offset"]) + 1)
        return Place(offset, State.of_batch(life, headers))
    return Place(0, None)


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


def next_life(lives: Sequence[Life], after: Life) -> Life | None:
    return next((life for life in lives if life.stream.incarnation > after.stream.incarnation), None)


def life_of(lives: Sequence[Life], state: State | None) -> Life:
    """The incarnation that a state is of; the first where nothing was ever written."""
    if state is None:
        return lives[0]
    return next((life for life in lives if life.stream.incarnation == state.incarnation), lives[0])


def open_ends(places: Mapping[Key, Place], lives: Mapping[str, Sequence[Life]]) -> set[str]:
    """The dropped streams of which some partition has not yet said so."""
    names = set()
    for (topic, _), place in places.items():
        name = topics.stream_of_incoming(topic)
        last = lives[name][-1]
        state = place.state
        if state is None or state.incarnation < last.stream.incarnation or not state.has_ended(last):
            names.add(name)
    return names
