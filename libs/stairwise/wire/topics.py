"""The topics on Kafka: what they are called and how they are made.

in.<stream>                 what producers publish
s.<stream>.<incarnation>    Arrow batches, partition for partition what in.<stream> held
t.<table>.<incarnation>     the same of a table: its updates, and how far the streams are that it is joined with
late.<stream>               rows that came too late, as they came
dlq.<stream>                rows that are not rows, as they came, with the reason
plans                       numbered versions of what runs
results                     reports, all of one signature in one partition
lives                       of each query that shares its reports: from when on, and how far back, it sees
failures                    which signatures operators has set aside, and why
costs                       what each signature costs operators, for EXPLAIN ANALYZE
carried                     from operators to themselves: a micro-batch has left something over for the next one
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.schema import Stream

PLANS = "plans"
RESULTS = "results"
RESULTS_PARTITIONS = 4
LIVES = "lives"
COSTS = "costs"
FAILURES = "failures"
CARRIED = "carried"
BROKER_DEFAULT = -1
"""As many replicas as the cluster is set to make."""
PATIENCE = 30
"""How long a question may take, in seconds."""
COMPACTED = {"cleanup.policy": "compact"}
PACKED = {"compression.type": "lz4"}
"""Whatever the producer chose: lz4 makes at most 255 bytes of one, where others make thousands."""
BY_BROKER = {"message.timestamp.type": "LogAppendTime"}
"""When a message came is for the broker to say: it is the time of rows that have none, and FUTURE counts from it."""
AS_WRITTEN = {"compression.type": "producer"}
"""Ingest packs batches itself; a broker that unpacked them to look inside would do it for nothing."""
WHOLE = "whole"
"""The header of a late or dead message that is all of what came, however many rows that were."""
FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


def incoming(stream: str) -> str:
    return f"in.{stream}"


def stream_of_incoming(topic: str) -> str:
    return topic.removeprefix("in.")


def sequenced(stream: Stream) -> str:
    """Where ingest writes the batches of a stream, or of a table."""
    return f"{'t' if stream.is_table else 's'}.{stream.name}.{stream.incarnation}"


OPERATORS_PATTERN = rf"[st]\..+\.[0-9]+|{CARRIED}"
"""Matches every ``sequenced`` topic, and what operators tell themselves, for a subscription by pattern."""


def parse_sequenced(topic: str) -> tuple[str, int]:
    """The stream or table and the incarnation of an ``s.*`` or ``t.*`` topic."""
    name, _, incarnation = topic[len("s.") :].rpartition(".")
    return name, int(incarnation)


def late(stream: str) -> str:
    return f"late.{stream}"


def dead(stream: str) -> str:
    return f"dlq.{stream}"


def stream_of(topic: str) -> str:
    """The stream or table that an ``in.*``, ``s.*``, ``t.*``, ``late.*`` or ``dlq.*`` topic is of."""
    return parse_sequenced(topic)[0] if topic.startswith(("s.", "t.")) else topic.partition(".")[2]


def results_partition(signature: str) -> int:
    """Where the reports of a signature go, from all of its shards."""
    return zlib.crc32(signature.encode()) % RESULTS_PARTITIONS


def topics_of(stream: Stream) -> dict[str, int]:
    """The topics that a stream or table needs, with their numbers of partitions. No update of a table is late."""
    names = [incoming(stream.name), sequenced(stream), dead(stream.name)]
    names += [] if stream.is_table else [late(stream.name)]
    return dict.fromkeys(names, stream.partitions)


def make(admin: AdminClient, stream: Stream) -> None:
    """Make the topics of a stream or table. Of a table Kafka keeps the last update of each key for good."""
    needed = topics_of(stream)
    kept = COMPACTED if stream.is_table else {}
    own = {incoming(stream.name): PACKED | BY_BROKER | kept, sequenced(stream): AS_WRITTEN | kept}
    _ensure(admin, needed, dict.fromkeys(needed, PACKED) | own)


def ensure(admin: AdminClient, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
    """Make the topics that are not there yet; one that has another number of partitions is refused."""
    _ensure(admin, topics, dict.fromkeys(topics, config or {}))


def _ensure(admin: AdminClient, topics: Mapping[str, int], configs: Mapping[str, Mapping[str, str]]) -> None:
    existing = admin.list_topics(timeout=30).topics
    for name, partitions in topics.items():
        found = len(existing[name].partitions) if name in existing else 0
        if found not in (0, partitions):  # 0 also of one that another service is making just now
            raise ConfigError(
                f"topic {name!r} has {found} partitions, not {partitions}",
                hint=f"delete the topic, or declare the stream with PARTITIONS {found}",
            )
    new = [
        NewTopic(n, p, replication_factor=BROKER_DEFAULT, config=dict(configs[n]))
        for n, p in topics.items()
        if n not in existing
    ]
    if not new:
        return
    for future in admin.create_topics(new).values():
        _ignoring(future, KafkaError.TOPIC_ALREADY_EXISTS)


def ends(admin: AdminClient, topic: str, partitions: int, *, readable: bool = False) -> list[int]:
    """Of each partition, the offset that its next message gets; or up to where what is committed can be read."""
    level = IsolationLevel.READ_COMMITTED if readable else IsolationLevel.READ_UNCOMMITTED
    asked = [TopicPartition(topic, p) for p in range(partitions)]
    deadline = time.monotonic() + PATIENCE
    while True:
        question = {p: OffsetSpec.latest() for p in asked}
        answers = admin.list_offsets(question, isolation_level=level, request_timeout=PATIENCE)
        try:
            return [answers[p].result().offset for p in asked]
        except KafkaException as error:
            if error.args[0].code() not in kafka.STALE or time.monotonic() > deadline:
                raise
        time.sleep(0.1)
        admin.list_topics(topic, timeout=PATIENCE)


def delete(admin: AdminClient, topics: Iterable[str]) -> None:
    """Delete the topics that are there."""
    names = list(topics)
    for future in admin.delete_topics(names).values() if names else ():
        _ignoring(future, KafkaError.UNKNOWN_TOPIC_OR_PART)


def _ignoring(future: object, code: int) -> None:
    try:
        future.result()  # type: ignore[attr-defined]
    except KafkaException as error:
        if error.args[0].code() != code:
            raise
