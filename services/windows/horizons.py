"""Where the view of a query that joined late ends: for one that shares, as the topic of lives says, else read off the
streams' own topics.

A query that runs alone and was registered at version v takes effect above M, the highest watermark that a partition
had before its first batch with v or a newer version; it sees the rows above all that came before, as that batch says. A
partition never goes back to an older version, so it is found by bisection over its offsets (of a table, its own follows
tell):

    offsets     0                                   ▼                    end
    version     1  1  1  1  2  2  2  2  2  2  2  2  5  5  6  6  6  6      v = 4
                                                 └ its headers say the watermark before it

A found horizon never changes, so it is kept. While a partition has carried no such batch yet, or where the
broker has deleted what stood before it, there is none to tell.
"""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.schema import DAWN, Instant, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.plans import Registered
from stairwise.wire.reports import LifeRecord

_TIMEOUT = 10.0
"""How long to wait for the broker, in seconds."""


class _Beginning(NamedTuple):
    """Where a query takes effect: it reports above the one, and alone sees rows above the other."""

    after: Instant
    horizon: Instant


class Horizons:
    """Horizons of registered queries."""

    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._found: dict[str, Instant] = {}
        self._beginnings: dict[str, _Beginning] = {}

    def of(self, registered: Registered) -> Instant | None:
        """DAWN where the query sees every row; None where it is not in effect yet or nobody can know any more."""
        if registered.identity not in self._found:
            if registered.shared is None:
                beginning = self._beginning(registered)
                horizon = None if beginning is None else beginning.horizon
            else:
                horizon = self._told(registered)
            if horizon is None:
                return None
            self._found[registered.identity] = horizon
        return self._found[registered.identity]

    def joined(self, registered: Registered) -> Instant | None:
        """The watermark above which the query reports, M above; None as of ``of``."""
        beginning = self._beginning(registered)
        return None if beginning is None else beginning.after

    def _beginning(self, registered: Registered) -> _Beginning | None:
        if registered.identity not in self._beginnings:
            beginning = self._look_up(registered)
            if beginning is None:
                return None
            self._beginnings[registered.identity] = beginning
        return self._beginnings[registered.identity]

    def _told(self, registered: Registered) -> Instant | None:
        consumer = kafka.consumer(self._brokers, "stairwise-windows-horizons", enable_partition_eof=True)
        try:
            told = {m.key(): m.value() for m in kafka.read_to_end(consumer, [TopicPartition(topics.LIVES, 0, 0)])}
        finally:
            consumer.close()
        life = told.get(registered.identity.encode())
        return None if life is None else LifeRecord.decode(life).horizon

    def _look_up(self, registered: Registered) -> _Beginning | None:
        streams = [s for s in registered.query.streams if not s.is_table]
        read = [(s, p) for s in registered.query.streams for p in range(s.partitions)]
        consumer = kafka.consumer(
            self._brokers, "stairwise-windows-horizons", enable_partition_eof=True, queued_min_messages=1
        )
        try:
            first = [_first_batch(consumer, _place(s, p), registered.version) for s, p in read]
        finally:
            consumer.close()
        known = [(stream, headers) for (stream, _), headers in zip(read, first, strict=True) if headers is not None]
        if len(known) < len(read):
            return None
        latest = max(headers.followed(streams) if stream.is_table else headers.previous for stream, headers in known)
        seen = [headers.seen_before(stream) for stream, headers in known if not stream.is_table]
        return _Beginning(latest, latest if latest == DAWN else max(latest + 1, *seen))


def _place(stream: Stream, partition: int) -> TopicPartition:
    return TopicPartition(topics.sequenced(stream), partition)


def _first_batch(consumer: Consumer, place: TopicPartition, version: int) -> BatchHeaders | None:
    """What the first batch of a partition with a version, or a newer one, says."""
    oldest, end = kafka.bounds(consumer, place, _TIMEOUT)
    low, high = oldest, end
    first: BatchHeaders | None = None
    while low < high:
        middle = (low + high) // 2
        message = _message_from(consumer, place, middle)
        if message is None:  # nothing but marks of transactions up to the end
            high = middle
            continue
        headers = BatchHeaders.decode(kafka.headers_of(message))
        if headers.version >= version:
            first, high = headers, middle
        else:
            low = message.offset() + 1
    is_cut_off = oldest > 0 and low == oldest
    return None if is_cut_off else first


def _message_from(consumer: Consumer, place: TopicPartition, offset: int) -> Message | None:
    """The first message at or after an offset; None where the partition ends before one comes."""
    consumer.assign([TopicPartition(place.topic, place.partition, offset)])
    message = consumer.poll(_TIMEOUT)
    if message is None:
        raise ConfigError(f"{place.topic} is not read within {_TIMEOUT:.0f} s", hint="is the broker up?")
    if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
        return None
    return kafka.checked(message)
