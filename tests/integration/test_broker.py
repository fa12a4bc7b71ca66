"""The broker that `stairwise up` starts: it keeps its word about sizes, topics and restarts."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports

pytestmark = pytest.mark.jvm


def new_topic(bootstrap: str, partitions: int = 1) -> str:
    name = f"in.t{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions)])[name].result(30)
    return name


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 8388608})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def consume_all(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def test_a_batch_of_almost_8_mib_goes_through(broker) -> None:
    topic = new_topic(broker.bootstrap)
    batch = os.urandom(8_300_000)
    produce(broker.bootstrap, topic, batch)
    assert consume_all(broker.bootstrap, topic, 1) == [batch]


def test_a_topic_that_nobody_created_is_an_error_and_not_a_new_topic(broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = admin.list_topics("in.nobody_made_this", timeout=30).topics["in.nobody_made_this"]
    assert asked.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_transactions_commit_and_abort(broker) -> None:
    topic = new_topic(broker.bootstrap)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(30)
    assert consume_all(broker.bootstrap, topic, 1) == [b"committed"]


def test_what_was_written_is_there_after_a_restart_on_other_ports(tmp_path: Path) -> None:
    installation = find_installation(os.environ)

    def broker_on_free_ports() -> Broker:
        return Broker(installation, tmp_path / "broker", *free_ports(2))

    first = broker_on_free_ports()
    first.prepare()
    running = launch(first.part(), tmp_path)
    try:
        await_healthy(running)
        topic = new_topic(first.address)
        produce(first.address, topic, b"kept")
    finally:
        running.kill_session()  # not a clean stop: what was acknowledged must survive that as well
        running.collect()

    second = broker_on_free_ports()
    second.prepare()
    running = launch(second.part(), tmp_path)
    try:
        await_healthy(running)
        assert consume_all(second.address, topic, 1) == [b"kept"]
    finally:
        assert stop(running) == 143  # a JVM that ended by SIGTERM in good order


def test_formatting_happens_once_and_leaves_no_half_made_storage(tmp_path: Path) -> None:
    broker = Broker(find_installation(os.environ), tmp_path / "broker", *free_ports(2))
    (tmp_path / "broker" / "data.unfinished").mkdir(parents=True)
    (tmp_path / "broker" / "data.unfinished" / "meta.properties").write_text("version=1\n")
    assert not broker.is_formatted
    broker.prepare()
    identity = (tmp_path / "broker" / "data" / "meta.properties").read_text()
    broker.prepare()
    assert (tmp_path / "broker" / "data" / "meta.properties").read_text() == identity
    assert sorted(p.name for p in (tmp_path / "broker").iterdir()) == ["data", "server.properties"]
