"""How far parts are behind: what waits between their groups' committed offsets and the topics' ends."""

from __future__ import annotations

import re
from collections.abc import Mapping

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from stairwise.platform.kafka import committed
from stairwise.system.health import admin_client, quiet
from stairwise.wire.stream_standing import INGEST_GROUP, OPERATORS_GROUP
from stairwise.wire.topics import OPERATORS_PATTERN

GROUPS: Mapping[str, tuple[str, str]] = {
    "ingest": (INGEST_GROUP, r"in\..+"),
    "operators": (OPERATORS_GROUP, OPERATORS_PATTERN),
}
"""By part, its group and the pattern of the topics that it reads."""


def group_lags(brokers: str, timeout: float) -> dict[str, int]:
    """By part, the sum of end offset − committed offset over all partitions of the topics that it reads.

    Of a partition for which the group has committed nothing yet, everything that is there waits. Raises
    KafkaException if the broker doesn't answer in time.
    """
    admin = admin_client(brokers)
    topics = admin.list_topics(timeout=timeout).topics
    return {
        part: _lag(
            admin,
            brokers,
            group,
            [TopicPartition(n, p) for n, t in topics.items() if re.fullmatch(pattern, n) for p in t.partitions],
            timeout,
        )
        for part, (group, pattern) in GROUPS.items()
    }


def _lag(admin: AdminClient, brokers: str, group: str, partitions: list[TopicPartition], timeout: float) -> int:
    if not partitions:
        return 0
    ends = _offsets(admin, partitions, OffsetSpec.latest(), timeout)
    positions = {(p.topic, p.partition): p.offset for p in _committed(brokers, group, partitions, timeout)}
    unknown = [p for p in partitions if positions[p.topic, p.partition] < 0]
    positions |= _offsets(admin, unknown, OffsetSpec.earliest(), timeout) if unknown else {}
    return sum(max(0, end - positions[key]) for key, end in ends.items())


def _offsets(
    admin: AdminClient, partitions: list[TopicPartition], which: OffsetSpec, timeout: float
) -> dict[tuple[str, int], int]:
    answers = admin.list_offsets(
        dict.fromkeys(partitions, which), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout
    )
    return {(p.topic, p.partition): answer.result().offset for p, answer in answers.items()}


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
