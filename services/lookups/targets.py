"""Where a partition's content ends, exactly: the offset of its last committed batch.

The end offset alone does not tell. Transactions leave control records, and aborted ones leave batches that are
never delivered, so that a reader who waits for the end offset may wait for ever:

    offset    5        6        7          8         9
              batch    commit   batch      abort     end
              └ target          └ never delivered
"""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import TopicPartition

from services.lookups.holdings import Key
from stairwise.platform import kafka

NOTHING = -1
"""The target of a partition that holds no batch."""
TIMEOUT = 5.0


def find_targets(brokers: str, keys: Iterable[Key]) -> dict[Key, int]:
    """The last committed batch of each partition, as of now. Reads backwards from the end, twice as far each time."""
    reader = kafka.consumer(brokers, "stairwise-lookups-targets", enable_partition_eof=True)
    try:
        spans = {key: reader.get_watermark_offsets(TopicPartition(*key), timeout=TIMEOUT) for key in keys}
        found = {key: NOTHING for key, (low, high) in spans.items() if high <= low}
        distance = 2
        while open_keys := [key for key in spans if key not in found]:
            starts = {key: max(spans[key][0], spans[key][1] - distance) for key in open_keys}
            places = [TopicPartition(*key, start) for key, start in starts.items()]
            for message in kafka.read_to_end(reader, places, TIMEOUT):
                found[message.topic(), message.partition()] = message.offset()
            for key, start in starts.items():
                if start == spans[key][0]:
                    found.setdefault(key, NOTHING)
            distance *= 2
        return found
    finally:
        reader.close()
