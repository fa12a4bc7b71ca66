"""From what the consumer brings to the lanes, with as little work for each message as there can be.

Memory is bounded by what is asked for at a time: as many messages as are likely to be some megabytes together,
judged by the size of those that came before, and of the last of them by themselves.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message

from services.ingest.failures import OF_A_TOPIC, StreamError
from services.ingest.lane import Lane
from services.ingest.recovery import Key
from stairwise.platform import kafka
from stairwise.wire import topics

log = logging.getLogger(__name__)

MOST = 10_000
"""How many messages are asked for at the most."""
FIRST = 16
"""And at first, when nothing is known of their size."""
AT_ONCE = 4 << 20
"""How many bytes are asked for, about."""


class _Numbers(dict[str, int]):
    """A number for each topic, with room for its partitions behind it."""

    def __missing__(self, topic: str) -> int:
        self[topic] = len(self) << 20
        return self[topic]


class Dispatch:
    def __init__(self, lanes: Mapping[Key, Lane]) -> None:
        self._lanes = lanes
        self._numbers = _Numbers()
        self.appetite = FIRST
        """How many messages to ask for."""
        self.reset()

    def reset(self) -> None:
        self.rows = 0
        """Messages that wait in the lanes, and their bytes."""
        self.bytes = 0

    def take(self, messages: list[Message]) -> bool:
        """Give each message to its lane; did any?"""
        if not messages:
            return False
        if any(map(Message.error, messages)):
            for message in messages:
                if message.error() is not None:
                    self._heed(message)
            messages = [message for message in messages if message.error() is None]
            if not messages:
                return False
        taken = False
        for start, end in self._runs(messages):
            lane = self._lanes.get((messages[start].topic(), messages[start].partition()))
            if lane is not None:
                lane.take(messages[start:end])
                taken = True
        self._measure(messages)
        return taken

    def _runs(self, messages: list[Message]) -> Iterator[tuple[int, int]]:
        """Where messages of one partition follow each other: they come from fetches of many."""
        topics = list(map(Message.topic, messages))
        owners = np.fromiter(map(Message.partition, messages), np.int64, len(messages))
        if topics.count(topics[0]) < len(topics):
            owners += np.fromiter(map(self._numbers.__getitem__, topics), np.int64, len(topics))
        edges = np.flatnonzero(owners[1:] != owners[:-1]) + 1
        bounds = [0, *edges.tolist(), len(messages)]
        return itertools.pairwise(bounds)

    def _measure(self, messages: list[Message]) -> None:
        size, last = sum(map(len, messages)), messages[-FIRST:]
        self.rows += len(messages)
        self.bytes += size
        likely = max(1, size / len(messages), sum(map(len, last)) / len(last))  # small ones hide large ones behind them
        self.appetite = max(1, min(MOST, int(AT_ONCE / likely), 4 * self.appetite))

    def _heed(self, message: Message) -> None:
        code = message.error().code()
        if code == KafkaError._PARTITION_EOF:
            lane = self._lanes.get((message.topic(), message.partition()))
            if lane is not None:
                lane.end_seen = message.offset()
        elif code in kafka.ABSENT:
            log.warning("%s", message.error().str())
        elif code in OF_A_TOPIC and message.topic() is not None:
            raise StreamError(topics.stream_of(message.topic()), KafkaException(message.error()))
        else:
            kafka.checked(message)
