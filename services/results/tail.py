"""Where the follower begins: near the end of the topic, so that a start does not read all that is retained.

    partition   low ······················ start ──────────── high
                    read when someone asks      read at once: up to TAIL_BYTES and TAIL_MESSAGES

How many messages the bytes allow is told by the size of the last few. What lies before is found on demand (``search``).
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import TopicPartition

from stairwise.platform import kafka
from stairwise.wire import topics

TAIL_BYTES = 16 << 20
TAIL_MESSAGES = 20_000
"""How much of each partition is read at the start."""
SAMPLE = 16
TIMEOUT = 30.0


@dataclass(frozen=True)
class Tail:
    """By partition: where the follower begins, and whether that is the first message that is retained."""

    starts: tuple[int, ...]
    whole: tuple[bool, ...]

    def holds_all_of(self, signature: str, newest: int) -> bool:
        """Is everything that Kafka retains of a signature in the tail?

        So it is where nothing precedes the tail, and where the query was registered after ``newest``, the plan version
        that was read when the tail had been found.
        """
        version = signature.rpartition("@")[2]
        return self.whole[topics.results_partition(signature)] or (version.isdecimal() and int(version) > newest)


def find_tail(brokers: str, most_bytes: int = TAIL_BYTES, most_messages: int = TAIL_MESSAGES) -> Tail:
    consumer = kafka.consumer(brokers, "stairwise-results-tail", enable_partition_eof=True)
    try:
        partitions = range(topics.RESULTS_PARTITIONS)
        places = [TopicPartition(topics.RESULTS, p) for p in partitions]
        bounds = [kafka.bounds(consumer, place, TIMEOUT, made_just_now=True) for place in places]
        sampled = [TopicPartition(topics.RESULTS, p, max(low, high - SAMPLE)) for p, (low, high) in enumerate(bounds)]
        sizes: list[list[int]] = [[] for _ in partitions]
        for message in kafka.read_to_end(consumer, sampled):
            sizes[message.partition()].append(len(message.value() or b""))
    finally:
        consumer.close()
    starts = [
        max(low, high - _messages(seen, most_bytes, most_messages))
        for (low, high), seen in zip(bounds, sizes, strict=True)
    ]
    return Tail(tuple(starts), tuple(start == low for start, (low, _) in zip(starts, bounds, strict=True)))


def _messages(sizes: list[int], most_bytes: int, most_messages: int) -> int:
    """How many messages of such sizes the tail may hold."""
    mean = sum(sizes) / len(sizes) if sizes else 0
    return min(most_messages, int(most_bytes / mean)) if mean else most_messages
