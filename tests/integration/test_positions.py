"""Where streams stand, as ingest and operators say it on Kafka."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, TopicPartition

from services.ingest.partition_state import PartitionState
from services.operators.committed_position import CommittedPosition
from services.windows.positions import Positions
from stairwise.cql.script import Catalogue
from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.schema import DAWN, Stream
from stairwise.streams.sequence import Position
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.stream_standing import INGEST_GROUP, PartitionStanding, Standing
from stairwise.wire.waiting import waiting
from tests.integration.conftest import RealBroker

pytestmark = pytest.mark.jvm

BOUND = 60.0


def declared(broker: RealBroker, partitions: int) -> tuple[Catalogue, Stream]:
    """A new stream with its topics, and a query q over it."""
    name = f"p{uuid4().hex[:8]}"
    catalogue = Catalogue()
    catalogue.execute(
        f"CREATE STREAM {name} (ts TIMESTAMP, x BIGINT) TIMESTAMP BY ts PARTITIONS {partitions};"
        f"CREATE QUERY q AS SELECT COUNT(*) AS n FROM {name} [TUMBLE 10 SECONDS];"
    )
    topics.make(kafka.admin(broker.bootstrap), catalogue.streams[name])
    return catalogue, catalogue.streams[name]


def commit(broker: RealBroker, stream: Stream, partition: int, offset: int, state: PartitionState) -> None:
    """As ingest does; where an instance of another test has just gone, its group takes a moment to let others in."""
    consumer = kafka.consumer(broker.bootstrap, INGEST_GROUP)
    said = TopicPartition(topics.incoming(stream.name), partition, offset, state.encode())
    deadline = time.monotonic() + BOUND
    while True:
        try:
            consumer.commit(offsets=[said], asynchronous=False)
            break
        except KafkaException:
            assert time.monotonic() < deadline
    consumer.close()


def write(broker: RealBroker, stream: Stream, *batches: BatchHeaders) -> None:
    """Batches of partition 0, each in a transaction."""
    topic = topics.sequenced(stream)
    producer = kafka.producer(broker.bootstrap, transactional_id=topic)
    producer.init_transactions(30)
    for batch in batches:
        producer.begin_transaction()
        producer.produce(topic, b"", headers=batch.encode(), partition=0)
        producer.commit_transaction(30)


def publish(broker: RealBroker, stream: Stream, partition: int, messages: int) -> None:
    producer = kafka.producer(broker.bootstrap)
    for _ in range(messages):
        producer.produce(topics.incoming(stream.name), b"{}", partition=partition)
    producer.flush()


def test_it_is_what_ingest_and_operators_have_committed(broker: RealBroker) -> None:
    catalogue, stream = declared(broker, 2)
    topic = topics.sequenced(stream)
    publish(broker, stream, 0, 5)
    write(broker, stream, BatchHeaders(1, 0, 2, 9_999, DAWN), BatchHeaders(1, 2, 1, 29_999, 9_999))
    commit(broker, stream, 0, 3, PartitionState(1, Position(3, 30_000), version=1, active=7))
    commit(broker, stream, 1, 0, PartitionState(1, version=1))
    positions = Positions(broker.bootstrap, {})
    before = standing(positions, stream).streams[topic]
    first, second = before.partitions
    assert (first.watermark, first.taken, first.rows, first.unread, first.active) == (29_999, DAWN, 3, 2, 7)
    assert first.untaken == 4  # each batch and the mark of its transaction
    assert first.untaken_since is not None
    assert second == PartitionStanding(version=1)
    said = CommittedPosition(broker.bootstrap)
    said.say({topic: {"0": 2, "1": 0}})

    def taken() -> PartitionStanding:
        said.say({topic: {"0": 2, "1": 0}})
        return standing(positions, stream).streams[topic].partitions[0]

    deadline = time.monotonic() + BOUND
    while taken().untaken != 2:
        assert time.monotonic() < deadline
    assert taken().taken == 9_999
    told = waiting(catalogue.queries["q"], 1, standing(positions, stream))
    assert told.sentence.startswith(f"q waits for {stream.name} partition 1: no row yet")
    said.close()
    positions.close()


def standing(positions: Positions, *streams: Stream) -> Standing:
    """Where streams stand, whose topics were made a moment ago: Kafka may take more than one question to tell."""
    deadline = time.monotonic() + BOUND
    while True:
        try:
            return positions.of(streams)
        except ConfigError:
            assert time.monotonic() < deadline


def test_a_stream_without_topics_fails_only_those_who_ask_for_it(broker: RealBroker) -> None:
    _, stream = declared(broker, 1)
    _, gone = declared(broker, 1)
    positions = Positions(broker.bootstrap, {"ingest": "127.0.0.1:1"})
    assert set(standing(positions, stream, gone).streams) == {topics.sequenced(stream), topics.sequenced(gone)}
    topics.delete(kafka.admin(broker.bootstrap), topics.topics_of(gone))
    deadline = time.monotonic() + BOUND
    while True:
        assert standing(positions, stream).absent == {"ingest"}
        try:
            positions.of([gone])
        except ConfigError:
            break
        assert time.monotonic() < deadline
    positions.close()
