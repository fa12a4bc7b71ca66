"""Which queries there are: the plans, followed by a thread, and fresh when a client asks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from services.results.following_thread import FollowingThread
from stairwise.cql.grants import query_target
from stairwise.errors import ConfigError, ConflictError, NotFoundError
from stairwise.platform import kafka
from stairwise.platform.security.tokens import Principal
from stairwise.wire import topics
from stairwise.wire.plans import PlanLog, PlanReader, Registered

POLL = 0.01
PATIENCE = 10.0
"""How long a client's question waits for the plans, in seconds."""
SKEW = 3_600_000
"""By how many milliseconds clocks may differ."""


class FollowedPlans(FollowingThread):
    """Follows the plans; all questions come from one loop, and those that come together are answered together."""

    def __init__(self, brokers: str, failed: Callable[[], None]) -> None:
        super().__init__(topics.PLANS, failed)
        self._reader = PlanReader(brokers)
        self._ends = kafka.Ends(brokers)
        self._lock = threading.Lock()
        self._asked: list[asyncio.Future[None]] = []

    @property
    def version(self) -> int:
        """The newest version that has been read."""
        return self._reader.log.newest.version

    async def fresh(self) -> PlanLog:
        """The plans with all that was written before this call: a query may just have been created."""
        answer: asyncio.Future[None] = self._loop.create_future()
        with self._lock:
            self._asked.append(answer)
        try:
            async with asyncio.timeout(PATIENCE):
                await answer
        except TimeoutError:
            hint = "is the broker up? `stairwise status` tells"
            raise ConfigError("the plans can't be read now", hint=hint) from None
        return self._reader.log

    async def find(self, name: str, principal: Principal) -> Registered:
        """The query of this name as it is now, if the principal may read it."""
        newest = (await self.fresh()).newest
        if name not in newest.queries:
            raise NotFoundError("query", name, newest.rights(principal).seen(query_target, newest.queries))
        self.check(newest.queries[name], principal)
        return newest.queries[name]

    async def find_version(
        self, name: str, version: int, principal: Principal, *, restarted: bool = False
    ) -> Registered:
        """The query that this plan version registered, if the principal may read it; with ``restarted``, as it runs
        since RESTART QUERY.

        One that was dropped is still there for its last reports, unless another one has taken its name.
        """
        plans = await self.fresh()
        registered = plans.at(version).queries.get(name) if version in plans else None
        now = plans.newest.queries.get(name)
        if registered is None or registered.version != version:
            raise NotFoundError("query", name, plans.newest.rights(principal).seen(query_target, plans.newest.queries))
        self.check(registered, principal)
        if restarted and now is not None and now.query is registered.query:  # a CREATE makes another
            return now
        if now is not None and now != registered:
            raise ConflictError(
                f"query {name!r} was dropped and created again: the resume token is one of the earlier query",
                hint="subscribe anew, without the token",
            )
        return registered

    def check(self, registered: Registered, principal: Principal) -> None:
        """Refuse a query that the principal may not read, now or, if it was dropped, as long as it was there."""
        plans, name = self._reader.log, registered.query.name
        left = plans.left_at(registered)
        catalogue = plans.newest if left is None else plans.at(left - 1)
        streams = [stream.name for stream in registered.query.streams]
        catalogue.rights(principal).check_query(name, streams, catalogue.queries)

    async def upto(self, version: int) -> PlanLog:
        """The plans with this version in them, which a report was made for."""
        return self._reader.log if version in self._reader.log else await self.fresh()

    def since(self, registered: Registered) -> int | None:
        """A time of the clock before which no report of a signature was written; None where none is known."""
        first = self._reader.log.turn_after(registered.signature, 0)
        written = self._reader.log.written(first.version) if first is not None else 0
        return max(0, written - SKEW) if written else None

    def _close(self) -> None:
        self._reader.close()

    def _follow(self) -> None:
        self._reader.read_to_end()
        self._loop.call_soon_threadsafe(self.caught_up.set)
        while not self._stopping.is_set():
            with self._lock:
                asked, self._asked = self._asked, []
            if asked:
                self._reader.catch_up(self._ends, PATIENCE)
                self._loop.call_soon_threadsafe(_answer, asked)
            else:
                self._reader.poll(POLL)


def _answer(asked: list[asyncio.Future[None]]) -> None:
    for answer in asked:
        if not answer.done():
            answer.set_result(None)
