"""From when on each query that shares its reports has them, and how far it sees back: the topic of lives."""

from __future__ import annotations

import asyncio
import threading
import time

from confluent_kafka import TopicPartition

from services.results import results_topic
from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.reports.contract import Life
from stairwise.wire import topics
from stairwise.wire.plans import Registered
from stairwise.wire.reports import LifeRecord

PATIENCE = 30.0
"""A life is written together with the first reports of its query, in no order: for so long it may lack, in seconds."""


class QueryLives:
    """Reads on when it is asked for a life that is not known yet."""

    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._lock = threading.Lock()
        self._next = 0
        self._known: dict[str, Life] = {}

    async def find(self, registered: Registered) -> Life:
        """The life of a query that has reports."""
        known = self._known.get(registered.identity)
        return known if known is not None else await asyncio.to_thread(self._find, registered)

    def _find(self, registered: Registered) -> Life:
        deadline = time.monotonic() + PATIENCE
        with self._lock:
            if registered.identity in self._known:
                return self._known[registered.identity]
            consumer = kafka.consumer(self._brokers, "stairwise-lives", enable_partition_eof=True)
            try:
                consumer.assign([TopicPartition(topics.LIVES, 0, self._next)])
                while registered.identity not in self._known:
                    if time.monotonic() > deadline:
                        raise ConfigError(
                            f"it is not known from when on query {registered.query.name!r} reports",
                            hint=f"the topic {topics.LIVES!r} has lost messages: create the query anew",
                        )
                    for message in results_topic.consume(consumer):
                        if not results_topic.is_end(message):
                            self._take(message.key(), message.value())
                            self._next = message.offset() + 1
            finally:
                consumer.close()
            return self._known[registered.identity]

    def _take(self, key: bytes, value: bytes) -> None:
        record = LifeRecord.decode(value)
        self._known[key.decode()] = Life(record.after, horizon=record.horizon)
