"""Where a partition's content ends, exactly: the offset of its last committed batch.

The end offset alone does not tell. Transactions leave control records, and aborted ones leave batches that are
never delivered, so that a reader who waits for the end offset may wait for ever:

    offset    5        6        7          8         9
              batch    commit   batch      abort     end
              └ target          └ never delivered
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from services.lookups.holdings import Key, rows_upto
from stairwise.platform import kafka
from stairwise.wire.batches import BatchHeaders

TIMEOUT = 5.0


@dataclass(frozen=True)
class Target:
    """The last committed batch of a partition."""

    offset: int = -1
    """-1: it holds none."""
    sequence: int = 0
    """The number of the next row after it."""


NOTHING = Target()


def find_targets(brokers: str, keys: Iterable[Key]) -> dict[Key, Target]:
    """The last committed batch of each partition, as of now. Reads backwards from the end, twice as far each time.

    A partition that the broker does not know of, or not yet, is left out: the others must not wait for it.
    """
    spans = _spans(kafka.admin(brokers), [TopicPartition(*key) for key in keys])
    found = {key: NOTHING for key, (low, high) in spans.items() if high <= low}
    if len(found) == len(spans):
        return found
    reader = kafka.consumer(brokers, "stairwise-lookups-targets", enable_partition_eof=True)
    try:
        distance = 2
        while open_keys := [key for key in spans if key not in found]:
            starts = {key: max(spans[key][0], spans[key][1] - distance) for key in open_keys}
            places = [TopicPartition(*key, start) for key, start in starts.items()]
            for message in kafka.read_to_end(reader, places, TIMEOUT):
                headers = BatchHeaders.decode(kafka.headers_of(message))
                found[message.topic(), message.partition()] = Target(message.offset(), rows_upto(headers))
            for key, start in starts.items():
                if start == spans[key][0]:
                    found.setdefault(key, NOTHING)
            distance *= 2
        return found
    finally:
        reader.close()


def _spans(admin: AdminClient, places: Sequence[TopicPartition]) -> dict[Key, tuple[int, int]]:
    """The first offset of each partition and the one behind all that is committed, in two questions for all."""
    asked = (OffsetSpec.earliest(), OffsetSpec.latest())
    first, end = (
        admin.list_offsets(
            dict.fromkeys(places, spec), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT
        )
        for spec in asked
    )
    spans: dict[Key, tuple[int, int]] = {}
    for place in places:
        try:
            low, high = first[place].result().offset, end[place].result().offset
        except KafkaException as error:
            if error.args[0].code() not in kafka.ABSENT | kafka.STALE:
                raise
        else:
            spans[place.topic, place.partition] = low, high
    return spans
