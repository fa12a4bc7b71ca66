"""How far back a query sees that joined late, as EXPLAIN finds it in the streams' topics."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pytest

from services.windows.horizons import Horizons
from stairwise.cql.script import Catalogue
from stairwise.platform import kafka
from stairwise.schema import DAWN
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.plans import Registered
from stairwise.wire.reports import LifeRecord

pytestmark = pytest.mark.jvm

Batches = Sequence[tuple[int, int]]
"""Of one partition, the version and the watermark after each batch."""


def registered(
    broker: str, partitions: Sequence[Batches], version: int, window: str = "ROWS 5 SLIDE 10 SECONDS"
) -> Registered:
    """A query over a new stream whose topic holds these batches; one that runs alone, unless the window says else."""
    name = f"h{uuid4().hex[:8]}"
    catalogue = Catalogue()
    catalogue.execute(
        f"CREATE STREAM {name} (ts TIMESTAMP, x BIGINT) TIMESTAMP BY ts LATENESS 2 SECONDS"
        f" PARTITIONS {len(partitions)};"
        f"CREATE QUERY q AS SELECT COUNT(*) FROM {name} [{window}];"
    )
    topic = topics.sequenced(catalogue.streams[name])
    topics.ensure(kafka.admin(broker), {topic: len(partitions)})
    producer = kafka.producer(broker, transactional_id=topic)
    producer.init_transactions(30)
    for partition, batches in enumerate(partitions):
        previous = DAWN
        for number, (written_under, watermark) in enumerate(batches):
            headers = BatchHeaders(written_under, number, 0, watermark, previous).encode()
            producer.begin_transaction()  # each leaves a mark behind that takes an offset and never comes
            producer.produce(topic, b"", headers=headers, partition=partition)
            producer.commit_transaction(30)
            previous = watermark
    return Registered(catalogue.queries["q"], version)


def test_it_lies_above_the_highest_watermark_before_the_version(broker) -> None:
    left = [(1, 1_000), (1, 2_000), (2, 3_000), (5, 4_000), (6, 5_000)]
    right = [(1, 6_000), (1, 7_000), (4, 8_000)]
    query = registered(broker.bootstrap, [left, right], version=4)
    assert Horizons(broker.bootstrap).of(query) == 7_000 + 2_000 + 1


def test_a_query_from_before_the_first_row_sees_everything(broker) -> None:
    query = registered(broker.bootstrap, [[(3, 1_000), (3, 2_000)], [(4, 5_000)]], version=2)
    assert Horizons(broker.bootstrap).of(query) == DAWN


def test_it_is_not_known_before_every_partition_has_carried_the_version(broker) -> None:
    query = registered(broker.bootstrap, [[(1, 1_000), (2, 2_000)], [(1, 1_500)], []], version=2)
    assert Horizons(broker.bootstrap).of(query) is None


def test_that_of_a_query_which_shares_is_what_operators_say(broker) -> None:
    topics.ensure(kafka.admin(broker.bootstrap), {topics.LIVES: 1}, topics.COMPACTED)
    query = registered(broker.bootstrap, [[(1, 1_000)]], version=7, window="TUMBLE 10 SECONDS")
    horizons = Horizons(broker.bootstrap)
    assert horizons.of(query) is None
    producer = kafka.producer(broker.bootstrap)
    producer.produce(topics.LIVES, LifeRecord(5_000, 4_000).encode(), query.identity, partition=0)
    producer.flush()
    assert horizons.of(query) == 4_000


def test_a_table_counts_by_what_it_was_told_of_the_stream(broker) -> None:
    name = f"h{uuid4().hex[:8]}"
    catalogue = Catalogue()
    catalogue.execute(
        f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts LATENESS 2 SECONDS PARTITIONS 1;"
        f"CREATE TABLE {name}t (k BIGINT) KEY (k) PARTITIONS 1;"
        f"CREATE QUERY q AS SELECT s.k FROM {name} [TUMBLE 1 SECOND] s JOIN {name}t t ON s.k = t.k"
    )
    stream, table = (topics.sequenced(s) for s in catalogue.streams.values())
    topics.ensure(kafka.admin(broker.bootstrap), {stream: 1, table: 1})
    producer = kafka.producer(broker.bootstrap)
    for version, watermark, told in ((1, 1_000, 500), (3, 4_000, 3_500), (3, 9_000, 9_000)):
        producer.produce(stream, b"", headers=BatchHeaders(version, 0, 0, watermark, watermark - 1_000).encode())
        headers = BatchHeaders(version, 0, 0, DAWN, DAWN, follows={stream: told})
        producer.produce(table, b"", headers=headers.encode())
        producer.flush()
    query = Registered(catalogue.queries["q"], 3)
    assert Horizons(broker.bootstrap).of(query) == 3_000 + 2_000 + 1, "no row of before is above it"
