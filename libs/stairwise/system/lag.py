"""How far a consumer group is behind: what waits between its committed offsets and the topics' ends."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from stairwise.platform.kafka import committed
from stairwise.system.health import admin_client, quiet

INGEST_GROUP = "stairwise-ingest"
INPUT_PREFIX = "in."


def group_lag(brokers: str, group: str, prefix: str, timeout: float) -> int:
    """The sum of end offset − committed offset over all partitions of the topics that begin with ``prefix``.

    Of a partition for which the group has committed nothing yet, everything that is there waits. Raises
    KafkaException if the broker doesn't answer in time.
    """
    admin = admin_client(brokers)
    topics = admin.list_topics(timeout=timeout).topics
    partitions = [
        TopicPartition(name, number)
        for name, topic in topics.items()
        if name.startswith(prefix)
        for number in topic.partitions
    ]
    if not partitions:
        return 0
    ends = admin.list_offsets({p: OffsetSpec.latest() for p in partitions}, request_timeout=timeout)
    beginnings = admin.list_offsets({p: OffsetSpec.earliest() for p in partitions}, request_timeout=timeout)
    lag = 0
    for partition in _committed(brokers, group, partitions, timeout):
        beginning = beginnings[partition].result().offset
        lag += max(0, ends[partition].result().offset - max(beginning, partition.offset))
    return lag


def _committed(brokers: str, group: str, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
    """The group's offsets; a negative one where it has committed nothing.

    A consumer is asked that never subscribes, and so never joins the group. The admin client's own call for
    this crashes the process when the group's coordinator is not ready yet (librdkafka issue 5040).
    """
    consumer = Consumer(quiet({"bootstrap.servers": brokers, "group.id": group}))
    try:
        return committed(consumer, partitions, timeout)
    finally:
        consumer.close()
