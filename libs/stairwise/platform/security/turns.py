"""How much one caller may have under way on a server, so that the others get their turn.

    calls      ● ● ● ● ● ● ● ●  ○ ○ ○ ○ ○ ...  ✕      so many run, so many wait in order, the next one is refused
    streams    ● ● ● ... ●  ✕                          so many are open

All of it happens in the server's loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from stairwise.errors import LimitError
from stairwise.platform.security.tokens import Principal

MOST_UNSCOPED = 64
"""Open streams that ask for no scope, health's Watch and reflection, of one host."""


class BusyError(LimitError):
    """Too much of one caller's is under way."""


@dataclass
class _Turns:
    running: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class CallerTurns:
    """The calls of each principal that has limits."""

    def __init__(self, most: int, most_waiting: int) -> None:
        self._most = most
        self._most_waiting = most_waiting
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def of(self, principal: Principal) -> AsyncIterator[None]:
        """Wait for a turn, and have it until the end."""
        if not principal.is_limited or principal.is_service:
            yield
            return
        turns = self._turns.setdefault(principal.name, _Turns())
        await self._take(principal.name, turns)
        try:
            yield
        finally:
            self._pass_on(principal.name, turns)

    async def _take(self, name: str, turns: _Turns) -> None:
        if turns.running < self._most:
            turns.running += 1
            return
        if len(turns.waiting) >= self._most_waiting:
            raise BusyError(
                f"{name} has {self._most} calls under way on this server, and {self._most_waiting} that wait",
                hint="send fewer at a time; STAIRWISE_MAX_CALLS and STAIRWISE_MAX_WAITING say how many",
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turns.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(name, turns)  # it had just been given the turn
            else:
                turns.waiting.remove(turn)
            raise

    def _pass_on(self, name: str, turns: _Turns) -> None:
        """The turn goes to the one that has waited longest."""
        while turns.waiting:
            turn = turns.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        turns.running -= 1
        if not turns.running:
            self._turns.pop(name, None)


class OpenStreams:
    """Streaming calls by whoever has them open."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def place(self, name: str, most: int | None) -> Iterator[None]:
        """One of the streams that it may have open; None: any number."""
        if most is not None and self._open[name] >= most:
            raise BusyError(
                f"{name} has {most} streaming calls open on this server already",
                hint="end one, ask another replica, or raise max_streams of the token",
            )
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]


def host_of(peer: str) -> str:
    """A peer without its port: all connections of a host count together."""
    return peer.rpartition(":")[0] or peer
