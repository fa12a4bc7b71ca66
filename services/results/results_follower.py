"""The one thread that reads the results topic into the journal, from the tail on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from confluent_kafka import TopicPartition

from services.results import metrics, results_topic
from services.results.assembly import Assembly, Released
from services.results.following_thread import FollowingThread
from services.results.journal import Journal
from services.results.tail import Tail
from stairwise.platform import kafka
from stairwise.wire import topics


class ResultsFollower(FollowingThread):
    """Hands over to the loop in which the journal lives, and reads on when the loop has taken it."""

    def __init__(self, brokers: str, tail: Tail, journal: Journal, failed: Callable[[], None]) -> None:
        super().__init__(topics.RESULTS, failed)
        self._consumer = kafka.consumer(brokers, "stairwise-results", enable_partition_eof=True)
        self._tail = tail
        self._journal = journal

    def _close(self) -> None:
        self._consumer.close()

    def _follow(self) -> None:
        starts = enumerate(self._tail.starts)
        self._consumer.assign([TopicPartition(topics.RESULTS, p, start) for p, start in starts])
        assembly = Assembly()
        behind = set(range(topics.RESULTS_PARTITIONS))
        while not self._stopping.is_set():
            repeats = assembly.repeats
            released: list[Released] = []
            for message in results_topic.consume(self._consumer):
                if results_topic.is_end(message):
                    behind.discard(message.partition())
                    continue
                decoded = results_topic.decode(message)
                if decoded is not None:
                    released += assembly.take(decoded)
            metrics.released.add(len(released))
            metrics.repeats.add(assembly.repeats - repeats)
            if released:
                asyncio.run_coroutine_threadsafe(self._append(released), self._loop).result()
            if not behind and not self.caught_up.is_set():
                self._loop.call_soon_threadsafe(self.caught_up.set)

    async def _append(self, released: Sequence[Released]) -> None:
        self._journal.extend(released)
