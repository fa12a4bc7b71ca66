"""Reports that the journal does not hold, read from Kafka a page at a time.

    topic     ·· a10 b10 a20 b20 a30 c10 a40 ··         page of a from its offset: 10 20 30, go on at a40
                 └──────── page ────────┘

A page keeps nothing open: where the next one begins is part of its answer. So any number of subscriptions share a few
consumers, and one that stops asking costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

import confluent_kafka
from confluent_kafka import TopicPartition

from services.results import results_topic
from services.results.assembly import Assembly, Released
from services.results.journal import FIRST
from stairwise.platform import kafka
from stairwise.reports.contract import Position
from stairwise.wire import topics
from stairwise.wire.reports import Mark

READERS = 4
"""How many pages are read at a time."""
PAGE_BYTES = 1 << 20
PAGE_REPORTS = 256
PAGE_MESSAGES = 50_000
"""A page ends when it holds so much, or has passed over so many messages of others."""
TIMEOUT = 30.0


@dataclass(frozen=True)
class Page:
    """Reports of one signature, in order."""

    reports: tuple[Released, ...]
    next: int
    """The offset at which the next page begins: what was read of an incomplete report is read again."""
    ended: bool
    """Was the end of the partition reached, or the offset up to which to read?"""
    pending: bool
    """Was something read of a report that is not complete?"""


class PageReader(Protocol):
    """What a feed needs of the past: pages of a signature's reports, and between which offsets they are."""

    async def page(self, signature: str, offset: int, until: int | None = None, at: Position = FIRST) -> Page:
        """From an offset on, up to another or to the end; reports before ``at`` are passed over.

        An offset that is gone leads to the earliest that is left.
        """

    async def bounds(self, signature: str, since: int | None = None) -> tuple[int, int]:
        """The first offset that is retained and the end. ``since``: no report was written before this time."""


class History:
    """A few consumers, each used for one page at a time."""

    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._threads = ThreadPoolExecutor(READERS, "results-history")
        self._idle: SimpleQueue[confluent_kafka.Consumer] = SimpleQueue()

    async def page(self, signature: str, offset: int, until: int | None = None, at: Position = FIRST) -> Page:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._page, signature, offset, until, at)

    async def bounds(self, signature: str, since: int | None = None) -> tuple[int, int]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._bounds, signature, since)

    def close(self) -> None:
        self._threads.shutdown()
        while not self._idle.empty():
            self._idle.get().close()

    def _page(self, signature: str, offset: int, until: int | None, at: Position) -> Page:
        page = _Filling(signature, offset, at)
        ended = until is not None and offset >= until
        with self._consumer() as consumer:
            consumer.assign([TopicPartition(topics.RESULTS, topics.results_partition(signature), offset)])
            while not ended and not page.is_full:
                for message in results_topic.consume(consumer):
                    if results_topic.is_end(message) or (until is not None and message.offset() >= until):
                        ended = True
                        break
                    page.take(message)
        return page.done(ended)

    def _bounds(self, signature: str, since: int | None) -> tuple[int, int]:
        partition = TopicPartition(topics.RESULTS, topics.results_partition(signature))
        with self._consumer() as consumer:
            low, high = kafka.bounds(consumer, partition, TIMEOUT)
            if since is not None:
                partition.offset = since
                (found,) = consumer.offsets_for_times([partition], timeout=TIMEOUT)
                low = max(low, found.offset if found.offset >= 0 else high)
        return low, high

    @contextmanager
    def _consumer(self) -> Iterator[confluent_kafka.Consumer]:
        try:
            consumer = self._idle.get_nowait()
        except Empty:
            consumer = kafka.consumer(
                self._brokers,
                "stairwise-results-history",
                enable_partition_eof=True,
                queued_min_messages=2_000,
                queued_max_messages_kbytes=8_192,
            )
        try:
            yield consumer
        finally:
            consumer.unassign()
            self._idle.put(consumer)


class _Filling:
    """A page that is being read."""

    def __init__(self, signature: str, offset: int, at: Position) -> None:
        self._signature = signature
        self._wanted = signature.encode()
        self._start = offset
        self._at = at
        self._assembly = Assembly()
        self._reports: list[Released] = []
        self._next, self._scanned, self._size = offset, 0, 0

    def take(self, message: confluent_kafka.Message) -> None:
        self._scanned, self._next = self._scanned + 1, message.offset() + 1
        decoded = results_topic.decode(message) if results_topic.is_of(message, self._wanted) else None
        if decoded is None or (decoded.headers.mark is Mark.REPORT and decoded.headers.end < self._at):
            return
        self._size += len(decoded.value)
        self._reports += self._assembly.take(decoded)

    @property
    def is_full(self) -> bool:
        """A page that would have to be read again from its own beginning is not."""
        is_long = self._scanned >= PAGE_MESSAGES or self._size >= PAGE_BYTES or len(self._reports) >= PAGE_REPORTS
        return is_long and self._assembly.first_pending(self._signature) != self._start

    def done(self, ended: bool) -> Page:
        pending = self._assembly.first_pending(self._signature)
        return Page(tuple(self._reports), self._next if pending is None else pending, ended, pending is not None)
