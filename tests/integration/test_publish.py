"""What the client publishes is what Kafka holds, in the partition that PARTITION BY says."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from services.ingest.rejects import format_of
from stairwise.cli.file_rows import FileRows
from stairwise.cli.publish import _sender
from stairwise.client import Publisher, PublishError
from stairwise.local.sources import FileSource
from stairwise.platform import kafka
from stairwise.schema import Column, Stream, Type
from stairwise.streams.messages import MessageDecoder
from stairwise.streams.partition import partition_of
from stairwise.wire import topics
from tests.integration import file_generator

pytestmark = pytest.mark.jvm


@pytest.fixture
def stream(broker) -> Stream:
    columns = (Column("k", Type.STRING), Column("v", Type.BIGINT))
    stream = Stream(f"p{uuid.uuid4().hex[:8]}", columns, partition_by="k", partitions=3)
    topics.ensure(kafka.admin(broker.bootstrap), {topics.incoming(stream.name): stream.partitions})
    return stream


def held(brokers: str, stream: Stream) -> dict[int, list[bytes]]:
    """The values of each partition."""
    consumer = kafka.consumer(brokers, uuid.uuid4().hex, enable_partition_eof=True)
    values: dict[int, list[bytes]] = {p: [] for p in range(stream.partitions)}
    partitions = [TopicPartition(topics.incoming(stream.name), p, 0) for p in values]
    try:
        for message in kafka.read_to_end(consumer, partitions):
            values[message.partition()].append(message.value())
    finally:
        consumer.close()
    return values


@pytest.mark.parametrize("format_", file_generator.FORMATS)
def test_ingest_reads_of_a_published_file_what_run_reads_of_it(broker, format_: str, tmp_path: Path) -> None:
    """Generated files, through the topic and ingest's decoder: the same rows in order, the same reasons of bad ones."""
    name = f"p{uuid.uuid4().hex[:8]}"
    topics.ensure(kafka.admin(broker.bootstrap), {topics.incoming(name): 1})
    consumer = kafka.consumer(broker.bootstrap, uuid.uuid4().hex, enable_partition_eof=True)
    consumer.list_topics(topics.incoming(name), timeout=30)
    good, start = 0, 0
    for seed in range(40):
        chance = random.Random(f"{format_} {seed}")
        stream = file_generator.stream(chance, name)
        path = tmp_path / f"{seed}.{format_}"
        path.write_bytes(file_generator.file(chance, stream, format_))
        names = [column.name for column in stream.columns]
        chunks = list(FileSource(stream, str(path)).chunks())
        rows = [row for chunk in chunks for row in chunk.rows.select(names).to_pylist()]
        bad = [(b.code, b.field, b.message) for chunk in chunks for b in chunk.rejected]
        publisher = Publisher(broker.bootstrap, stream)
        source = FileRows(stream, str(path), format_)
        send = _sender(publisher, source, chance.choice([None, "ndjson", "arrow"] if format_ == "jsonl" else [None]), 7)
        for portion in source.portions():
            send(portion)
        publisher.flush()
        place = TopicPartition(topics.incoming(name), 0, start)
        messages = list(kafka.read_to_end(consumer, [place]))
        start = messages[-1].offset() + 1
        decoded = list(
            MessageDecoder(stream).decode(
                [message.value() for message in messages],
                np.zeros(len(messages), np.int64),
                lambda i, messages=messages: format_of(messages[i]),
            )
        )
        found = [row for block in decoded for row in block.rows.select(names).to_pylist()]
        reasons = [(b.reason.code, b.reason.field, b.reason.message) for block in decoded for b in block.bad]
        assert repr(found) == repr(rows), f"seed {seed}"  # NaN is itself, and -0.0 is not 0.0
        if format_ != "jsonl":
            reasons = [(code, field, text.partition(": ")[2]) for code, field, text in reasons]
        assert sorted(map(str, reasons)) == sorted(map(str, bad)), f"seed {seed}"
        good += len(rows)
    consumer.close()
    assert good > 100


def test_rows_and_lines_of_a_key_share_a_partition_in_order(broker, stream: Stream) -> None:
    publisher = Publisher(broker.bootstrap, stream)
    publisher.send({"k": "a", "v": 1})
    publisher.send_lines([b'{"v": 2, "k": "a"}', b'{"k": "b",  "v":3 }', b"not json"])
    publisher.flush()
    expected: dict[int, list[bytes]] = {p: [] for p in range(stream.partitions)}
    expected[partition_of("a", 3)] += [b'{"k":"a","v":1}', b'{"v": 2, "k": "a"}']
    expected[partition_of("b", 3)] += [b'{"k": "b",  "v":3 }']
    expected[partition_of(None, 3)] += [b"not json"]
    assert held(broker.bootstrap, stream) == expected


def test_lines_of_a_partition_share_a_message_of_at_most_so_many_rows(broker, stream: Stream) -> None:
    publisher = Publisher(broker.bootstrap, stream)
    publisher.send_blocks([b'{"k":"a","v":%d}' % n for n in range(5)], 2)
    publisher.flush()
    expected = [b'{"k":"a","v":0}\n{"k":"a","v":1}', b'{"k":"a","v":2}\n{"k":"a","v":3}', b'{"k":"a","v":4}']
    assert held(broker.bootstrap, stream)[partition_of("a", 3)] == expected


def test_a_table_goes_by_its_key_in_messages_that_ingest_reads(broker, stream: Stream) -> None:
    publisher = Publisher(broker.bootstrap, stream)
    keys = pa.array(["a", "b", None, "a"] * 3).dictionary_encode()
    publisher.send_table(pa.table({"v": range(12), "k": keys}), rows=5)
    publisher.send_columns([b'{"k":"b","v":12}', b"bad"], rows=5)
    publisher.flush()
    decoder = MessageDecoder(stream)
    found: dict[int, list[tuple[str | None, int]]] = {}
    for partition, values in held(broker.bootstrap, stream).items():
        for block in decoder.decode(values, np.zeros(len(values), np.int64), lambda _: None):
            found.setdefault(partition, []).extend((r["k"], r["v"]) for r in block.rows.to_pylist())
            assert all(bad.reason.code.name == "MALFORMED" for bad in block.bad)
    rows = [*zip(["a", "b", None, "a"] * 3, range(12), strict=True), ("b", 12)]
    assert found == {p: [row for row in rows if partition_of(row[0], 3) == p] for p in found}
    assert sum(map(len, found.values())) == 13


def test_a_row_that_kafka_does_not_take_is_reported_and_the_others_are_there(broker, stream: Stream) -> None:
    publisher = Publisher(broker.bootstrap, stream)
    publisher.send({"k": "a" * (kafka.MAX_MESSAGE + 1)})
    publisher.send({"k": "a"})
    with pytest.raises(PublishError, match="1 rows did not reach stream"):
        publisher.flush()
    publisher.flush()
    assert [value for values in held(broker.bootstrap, stream).values() for value in values] == [b'{"k":"a"}']


def test_updates_of_a_table_go_one_to_a_message_under_their_keys(broker) -> None:
    columns = (Column("k", Type.STRING, False), Column("n", Type.BIGINT, False), Column("v", Type.DOUBLE))
    table = Stream(f"p{uuid.uuid4().hex[:8]}", columns, partition_by="k", partitions=1, keys=("n", "k"))
    topics.make(kafka.admin(broker.bootstrap), table)
    publisher = Publisher(broker.bootstrap, table)
    publisher.publish([{"k": "a", "n": 1, "v": 0.5}])
    publisher.send_blocks([b'{"v":1, "n" : 1, "k":"a"}', b"bad"], 1000)
    publisher.send_columns([b'{"k":"b","n":2,"v":2}'], 1000)
    publisher.publish(pa.table({"k": ["a", "c"], "n": [1, 3], "v": [3.0, 4.0]}))
    consumer = kafka.consumer(broker.bootstrap, uuid.uuid4().hex, enable_partition_eof=True)
    place = TopicPartition(topics.incoming(table.name), 0, 0)
    messages = [(m.key(), m.value()) for m in kafka.read_to_end(consumer, [place])]
    consumer.close()
    one = b'[1,"a"]'
    assert [key for key, _ in messages] == [one, one, b"null", b'[2,"b"]', one, b'[3,"c"]']
    blocks = MessageDecoder(table).decode([value for _, value in messages], np.zeros(6, np.int64), lambda _: None)
    assert [row["v"] for block in blocks for row in block.rows.to_pylist()] == [0.5, 1.0, 2.0, 3.0, 4.0]
