"""Follows the plans in a thread of its own: their client blocks, and the loop must not."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaException

from stairwise.platform import kafka
from stairwise.wire import topics
from stairwise.wire.plans import PlanCatalogue, PlanReader

log = logging.getLogger(__name__)

POLL = 0.2
RETRY = 1.0
"""Seconds between two attempts to reach Kafka."""


class PlanFollower:
    """The newest catalogue, kept up to date. Made and used in the loop."""

    def __init__(self, brokers: str) -> None:
        self.catalogue = PlanCatalogue()
        self.changed = asyncio.Event()
        """Set when ``catalogue`` is another one; whoever acts on it clears it."""
        self._brokers = brokers
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Future[None] = self._loop.create_future()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._stopping = threading.Event()
        # A daemon: it may be deep in a call that waits for a broker which is not there when the process must end.
        self._thread = threading.Thread(target=self._run, name="plans", daemon=True)

    async def start(self) -> PlanCatalogue:
        """Wait until everything that is there now was read, for as long as Kafka takes to answer."""
        self._thread.start()
        await asyncio.wait({self._read, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if self._failed.done():
            self._failed.result()
        return self.catalogue

    async def failure(self) -> None:
        """Raises when the plans cannot be followed any further."""
        await self._failed

    async def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 2 * POLL)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._follow()
                except KafkaException as error:
                    log.warning("the plans cannot be read from %s: %s", self._brokers, error.args[0])
                    self._stopping.wait(RETRY)
        except Exception as error:  # of whatever kind: the loop must hear of it
            self._tell(partial(self._fail, error))

    def _follow(self) -> None:
        topics.ensure(kafka.admin(self._brokers), {topics.PLANS: 1}, topics.FOREVER)
        reader = PlanReader(self._brokers)
        try:
            self._tell(partial(self._take, reader.read_to_end()))
            while not self._stopping.is_set():
                if reader.poll(POLL):
                    self._tell(partial(self._take, reader.log.newest))
        finally:
            reader.close()

    def _tell(self, action: Callable[[], object]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(action)

    def _take(self, catalogue: PlanCatalogue) -> None:
        self.catalogue = catalogue
        self.changed.set()
        if not self._read.done():
            self._read.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._failed.set_exception(error)
