"""Passing over the marks of partitions that were idle for long: of marks that follow each other only the last counts.

    offset     7      8     9    10   ...   90,310   90,311    90,312
               rows   mark  mark  mark  ...  mark     rows      mark
                                  └─ read so far      └─ the next to read

Row numbers never go back along a partition, so the next rows are found by halves: some twenty questions for all
partitions together, however long nothing came; and none where the target is one of the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from services.lookups.holdings import Key, Partition, rows_upto
from stairwise.platform import kafka
from stairwise.wire.batches import BatchHeaders

WORTH = 5_000
"""So many offsets are worth the questions: that is how much is read meanwhile."""
SURE = 256
"""After so many marks in a row more of them are expected."""
TIMEOUT = 5.0
FETCH_BYTES = 16 << 10


@dataclass(frozen=True)
class Stretch:
    """What follows in a partition up to its target."""

    start: int
    target: int
    sequence: int
    """The number of the next row."""
    target_sequence: int
    """The number of the next row after the target."""


def stretches(partitions: Iterable[tuple[Key, Partition]]) -> dict[Key, Stretch]:
    """The partitions of which so much is still to be read that it is worth finding out whether it is marks."""
    return {
        key: Stretch(p.next_offset, p.target, p.next_sequence or 0, p.target_sequence)
        for key, p in partitions
        if p.target is not None
        and p.target - p.next_offset > WORTH
        and (p.marks >= SURE or (p.next_sequence or 0) == p.target_sequence)
    }


def next_rows(brokers: str, asked: Mapping[Key, Stretch]) -> dict[Key, int]:
    """The offset of each partition up to which nothing but marks follows; at most that of its target."""
    found = {key: s.target for key, s in asked.items() if s.sequence == s.target_sequence}
    bounds = {key: (s.start, s.target) for key, s in asked.items() if key not in found}
    if not bounds:
        return found
    settings = {"enable_partition_eof": True, "fetch_message_max_bytes": FETCH_BYTES}
    reader = kafka.consumer(brokers, "stairwise-lookups-marks", **settings)
    try:
        while open_keys := [key for key, (low, high) in bounds.items() if low < high]:
            middles = {key: sum(bounds[key]) // 2 for key in open_keys}
            for key, message in _firsts(reader, middles).items():
                low, high = bounds[key]
                is_mark = message is not None and rows_upto(_headers(message)) == asked[key].sequence
                bounds[key] = (
                    (int(message.offset()) + 1, high) if message is not None and is_mark else (low, middles[key])
                )
    finally:
        reader.close()
    return found | {key: low for key, (low, _) in bounds.items()}


def _headers(message: Message) -> BatchHeaders:
    return BatchHeaders.decode(kafka.headers_of(message))


def _firsts(reader: Consumer, offsets: Mapping[Key, int]) -> dict[Key, Message | None]:
    """The first committed batch of each partition at or behind an offset; None where there is none."""
    reader.assign([TopicPartition(*key, offset) for key, offset in offsets.items()])
    found: dict[Key, Message | None] = {}
    while len(found) < len(offsets):
        message = reader.poll(TIMEOUT)
        if message is None:
            return found | {key: None for key in offsets if key not in found}
        is_end = message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
        found.setdefault((message.topic(), message.partition()), None if is_end else kafka.checked(message))
    return found
