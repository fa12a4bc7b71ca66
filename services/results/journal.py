"""The recent reports of every signature, in bounded memory, shared by all subscriptions.

    signature a     begin 30 │ 30  40  50        everything from ``begin`` on is here, or will come
    signature b     begin −∞ │ 10  20  30        nothing is older than what is here
    signature c     begin ?  │                   nobody has looked yet what Kafka holds of it

Everything happens in one asyncio loop: the follower hands reports over to it, and any number of subscriptions read
by position, each at its own speed. Who finds nothing new waits for the signature's bell. What a reader holds is safe
from eviction and bounded by the length of a page.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.results.assembly import Released, just_after
from stairwise.reports.contract import Position
from stairwise.schema import DAWN
from stairwise.wire.reports import Mark

PAGE = 16
PAGE_BYTES = 1 << 20
"""The most reports that are handed out at a time, and about how many bytes of them."""
FIRST: Position = (DAWN, 0)
"""Before every report."""


class Bell:
    """Wakes all who wait for the next report of a signature."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[bool]] = set()

    async def wait(self, timeout: float) -> bool:
        """Was it rung within so many seconds?"""
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout, _answer, rung, False)
        self._waiting.add(rung)
        try:
            return await rung
        finally:
            timer.cancel()
            self._waiting.discard(rung)

    def ring(self) -> None:
        for rung in self._waiting:
            _answer(rung, True)


def _answer(rung: asyncio.Future[bool], heard: bool) -> None:
    if not rung.done():
        rung.set_result(heard)


@dataclass
class _Log:
    bell: Bell = field(default_factory=Bell)
    entries: list[tuple[int, Released]] = field(default_factory=list)
    """Each with its number in the order of arrival."""
    size: int = 0
    begin: Position | None = None
    """From here on all reports are here, or will come; None: not known yet."""
    first_offset: int | None = None
    """Where on the topic the oldest report was that came here."""
    latest: tuple[Position, int] | None = None
    """The position and the offset of the latest report, evicted or not."""


class Journal:
    """Appends and reads by position. ``per_signature`` and ``in_all`` bound the bytes that it holds."""

    def __init__(self, per_signature: int = 16 << 20, in_all: int = 256 << 20) -> None:
        self._per_signature = per_signature
        self._in_all = in_all
        self.holds_all_of: Callable[[str], bool] = lambda _: True
        """Does all that Kafka retains of a signature come here? Said by who knows where the follower began."""
        self._logs: dict[str, _Log] = {}
        self._arrivals: OrderedDict[int, str] = OrderedDict()
        self._arrived = 0
        self._size = 0

    def extend(self, reports: Iterable[Released]) -> None:
        """The next reports of their signatures; those who wait for them are woken."""
        grown = set()
        for released in reports:
            self.append(released)
            grown.add(released.signature)
        for signature in grown:
            self._log(signature).bell.ring()

    def append(self, released: Released) -> None:
        log = self._log(released.signature)
        if log.begin is None:
            log.begin = released.position
        log.entries.append((self._arrived, released))
        self._arrivals[self._arrived] = released.signature
        self._arrived += 1
        log.size += released.size
        self._size += released.size
        if log.first_offset is None:
            log.first_offset = released.offset
        if released.mark is Mark.REPORT:
            log.latest = released.end, released.offset
        while log.size > self._per_signature and len(log.entries) > 1:
            self._evict(log)
        while self._size > self._in_all:
            self._evict(self._logs[next(iter(self._arrivals.values()))])

    def vouch(self, signature: str, begin: Position = FIRST) -> None:
        """Kafka holds nothing from ``begin`` on that did not come here or will come: said by who has looked."""
        log = self._log(signature)
        if log.begin is None:
            log.begin = begin

    def read(self, signature: str, at: Position, *, before: bool = False) -> list[Released] | None:
        """The reports at or after a position, up to a page; with ``before``, from the last one before it on.

        None: some of them are not here, or it is not known whether they are.
        """
        log = self._log(signature)
        index = self._index(log, at)
        if before and index < len(log.entries) and log.entries[index][1].position < at:
            pass  # a run that has begun before
        elif before and index:
            index -= 1
        elif log.begin is None or log.begin > (FIRST if before else at):
            return None
        return _page(log.entries[index : index + PAGE])

    async def wait(self, signature: str, timeout: float) -> bool:
        """Has a report come within so many seconds?"""
        return await self._log(signature).bell.wait(timeout)

    def covers(self, signature: str, at: Position) -> bool:
        """Can everything at or after this position be read here?"""
        begin = self._log(signature).begin
        return begin is not None and begin <= at

    def begin(self, signature: str) -> Position | None:
        """From where on all reports are here; None: not known."""
        return self._log(signature).begin

    def latest(self, signature: str) -> tuple[Position, int] | None:
        """The position and the offset of the latest report; it may have been evicted."""
        return self._log(signature).latest

    def first_offset(self, signature: str) -> int | None:
        """Where on the topic the oldest report was that came here; reading before it finds all older ones."""
        return self._log(signature).first_offset

    def ring_all(self) -> None:
        for log in self._logs.values():
            log.bell.ring()

    def _log(self, signature: str) -> _Log:
        found = self._logs.get(signature)
        if found is None:
            found = self._logs[signature] = _Log(begin=FIRST if self.holds_all_of(signature) else None)
        return found

    def _index(self, log: _Log, at: Position) -> int:
        """Of the first report at or after a position, or of the run that it is in."""
        return bisect_left(log.entries, at, key=lambda entry: entry[1].end)

    def _evict(self, log: _Log) -> None:
        number, released = log.entries.pop(0)
        del self._arrivals[number]
        log.size -= released.size
        self._size -= released.size
        log.begin = just_after(released.end)


def _page(entries: list[tuple[int, Released]]) -> list[Released]:
    """As many reports as a page may have bytes, at least one: they stay in memory until a slow reader has sent them."""
    size = 0
    page: list[Released] = []
    for _, released in entries:
        size += released.size
        if page and size > PAGE_BYTES:
            break
        page.append(released)
    return page
