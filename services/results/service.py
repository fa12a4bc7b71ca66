"""The parts of the service put together, and how they start and end.

    bind ─▶ find the tail ─▶ read the plans ─▶ read the tail ─▶ SERVING ─▶ ... ─▶ SIGTERM ─▶ subscriptions end

The tail is found before the plans are read: all reports of a query that is registered later are then in the tail.
Whatever fails for good ends the process: a supervisor starts it again, and everything that counts is in Kafka.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial

from services.results.followed_plans import FollowedPlans
from services.results.history import History
from services.results.journal import Journal
from services.results.query_lives import QueryLives
from services.results.results_follower import ResultsFollower
from services.results.servicer import NAME, ResultsServicer
from services.results.tail import find_tail
from stairwise.errors import ConfigError
from stairwise.platform import kafka, process
from stairwise.platform.config import Settings
from stairwise.platform.server import Server
from stairwise.wire import topics


async def run(settings: Settings, stopping: threading.Event) -> None:
    """Serve until SIGTERM or SIGINT; raises what keeps it from serving."""
    told = process.stop_on_signals(stopping)
    working = asyncio.create_task(_Results(settings).work())
    await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


class _Results:
    def __init__(self, settings: Settings) -> None:
        self._brokers = settings.brokers
        self._server = Server(settings.listen, security=settings.security)
        self._failed = asyncio.Event()
        self._plans = FollowedPlans(settings.brokers, self._failed.set)
        self._journal = Journal()
        self._history = History(settings.brokers)
        self._follower: ResultsFollower | None = None
        self._servicer = ResultsServicer(
            self._journal,
            self._history,
            self._plans,
            QueryLives(settings.brokers),
            subscriptions=settings.results_subscriptions,
            stall=settings.results_stall_ms / 1000,
        )

    async def work(self) -> None:
        """Until it is cancelled, or can't go on."""
        await self._server.start(self._servicer.register, [NAME])
        starting = asyncio.create_task(self._start())
        try:
            failing = asyncio.create_task(self._failed.wait())
            await asyncio.wait({starting, failing}, return_when=asyncio.FIRST_COMPLETED)
            if not self._failed.is_set():
                starting.result()
            await failing
            raise ConfigError("the topics can no longer be read", hint="the log above says why")
        finally:
            starting.cancel()
            self._servicer.close()
            await self._server.stop()
            if self._follower is not None:
                await self._follower.stop()
            if self._plans.is_alive():
                await self._plans.stop()
            await asyncio.to_thread(self._history.close)

    async def _start(self) -> None:
        await asyncio.to_thread(_ensure_topics, self._brokers)
        tail = await asyncio.to_thread(find_tail, self._brokers)
        self._plans.start()
        await self._plans.caught_up.wait()
        self._journal.holds_all_of = partial(tail.holds_all_of, newest=self._plans.version)
        self._follower = ResultsFollower(self._brokers, tail, self._journal, self._failed.set)
        self._follower.start()
        await self._follower.caught_up.wait()
        self._servicer.open()
        await self._server.ready()


def _ensure_topics(brokers: str) -> None:
    admin = kafka.admin(brokers)
    topics.ensure(admin, {topics.PLANS: 1}, topics.FOREVER)
    topics.ensure(admin, {topics.RESULTS: topics.RESULTS_PARTITIONS}, topics.FOREVER)
    topics.ensure(admin, {topics.LIVES: 1}, topics.COMPACTED)
