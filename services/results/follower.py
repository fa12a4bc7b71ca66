"""The one thread that reads the results topic into the journal, from the tail on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

from confluent_kafka import TopicPartition

from services.results import metrics, topic
from services.results.assembly import Assembly, Released
from services.results.journal import Journal
from services.results.tail import Tail
from stairwise.platform import kafka, topics

log = logging.getLogger(__name__)


class Follower(threading.Thread):
    """Hands over to the loop in which the journal lives, and reads on when the loop has taken it.

    ``caught_up`` is set, in the loop, when everything has been read that was there at the start. A failure ends the
    thread and calls ``failed`` there: a journal that no longer grows must not look healthy.
    """

    def __init__(self, brokers: str, tail: Tail, journal: Journal, failed: Callable[[], None]) -> None:
        super().__init__(name="results-follower", daemon=True)
        self.caught_up = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._consumer = kafka.consumer(brokers, "stairwise-results", enable_partition_eof=True)
        self._tail = tail
        self._journal = journal
        self._failed = failed
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            self._follow()
        except Exception:
            log.exception("the results topic can no longer be followed")
            self._loop.call_soon_threadsafe(self._failed)
        finally:
            self._consumer.close()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self.join)

    def _follow(self) -> None:
        starts = enumerate(self._tail.starts)
        self._consumer.assign([TopicPartition(topics.RESULTS, p, start) for p, start in starts])
        assembly = Assembly()
        behind = set(range(topics.RESULTS_PARTITIONS))
        while not self._stopping.is_set():
            repeats = assembly.repeats
            released: list[Released] = []
            for message in topic.consume(self._consumer):
                if topic.is_end(message):
                    behind.discard(message.partition())
                    continue
                decoded = topic.decode(message)
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
