"""One subscription's reports, out of the journal where it holds them and out of Kafka where it does not.

    Kafka      10  20  30  40  50  60              everything that is retained
    journal                40  50  60 …            what is recent, and all that comes
    feed           20  30 │40  50  60 …            history, then the journal, told by positions

It can begin with the report *before* the one where the subscription is to go on: ISTREAM, DSTREAM and CHANGES
compare with it, and its presence proves that nothing is missing in between.

Where on the topic a position is, a token says. Who comes without one searches backwards from what the journal holds,
by steps that grow, until a report before the position is found:

    topic     low ──────┤◀── 4 × step ──┤◀─ step ─┤ journal
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from services.results.assembly import Released, just_after
from services.results.history import PageReader
from services.results.journal import FIRST, Journal
from stairwise.reports.contract import Position

STEP = 64
"""How many messages the first step of a search goes back: they may be pieces of reports that are large."""
PAUSE = 0.5
"""For how long to wait where a report is half written, in seconds."""


class Feed:
    """Reads one signature. ``since`` is a time (of the clock) before which none of its reports was written."""

    def __init__(self, journal: Journal, history: PageReader, signature: str, since: int | None = None) -> None:
        self._journal = journal
        self._history = history
        self._signature = signature
        self._since = since

    async def reports(
        self, at: Position, *, before: bool, offset: int | None = None, patience: float = 3600.0
    ) -> AsyncIterator[Released | None]:
        """Every retained report at or after ``at``, in order, without end; with ``before``, from the one before it on.

        ``offset`` is where on the topic the first of them is believed to be. None stands for ``patience`` seconds in
        which none came, or for a call to look up.
        """
        at = max(at, FIRST)
        while True:
            begin = self._journal.begin(self._signature)
            found = self._journal.read(self._signature, at, before=before)
            if found is None:
                moved = False
                async for older in self._older(at, before, offset):
                    yield older
                    at, before, offset, moved = just_after(older.end), False, older.offset, True
                if not moved and begin is not None:
                    at, before = max(at, begin), False  # what was evicted before Kafka was asked for it is gone
                elif not moved and not self._journal.covers(self._signature, at):
                    await self._journal.wait(self._signature, PAUSE)
                    yield None
            elif found:
                for released in found:
                    yield released
                    at, before, offset = just_after(released.end), False, released.offset
            else:
                await self._journal.wait(self._signature, patience)
                if not self._journal.read(self._signature, at, before=before):
                    yield None

    async def last_before(self, until: Position) -> Released | None:
        """The last report before a position; None where none is retained."""
        found = self._journal.read(self._signature, until, before=True)
        if found is None:
            last = None
            async for older in self._older(until, True, self._known_offset(until)):
                last = older if older.position < until else last
                if older.position >= until:
                    break
            found = [last] if last is not None else self._journal.read(self._signature, until, before=True) or []
        return found[0] if found and found[0].position < until else None

    def _known_offset(self, until: Position) -> int | None:
        latest = self._journal.latest(self._signature)
        return latest[1] if latest is not None and latest[0] < until else None

    async def _older(self, at: Position, before: bool, offset: int | None) -> AsyncIterator[Released]:
        """From Kafka, until the journal has what follows or Kafka has no more."""
        start = await self._search(at) if offset is None else offset
        held: Released | None = None
        beginning, wanted = True, FIRST
        while True:
            page = await self._history.page(self._signature, start, at=wanted)
            if beginning and offset is not None and _is_beyond(page.reports, at, before):
                async for released in self._older(at, before, None):
                    yield released
                return
            beginning = beginning and not page.reports
            for released in page.reports:
                wanted = just_after(released.end)
                if released.end < at:
                    held = released
                    continue
                for each in (held if before and released.position >= at else None, released):
                    if each is not None:
                        yield each
                        at, before = just_after(each.end), False
                if self._journal.covers(self._signature, at):
                    return
            if page.ended:
                if before and held is not None:
                    yield held
                if not page.pending:
                    self._journal.vouch(self._signature, wanted)
                return
            start = page.next

    async def _search(self, at: Position) -> int:
        """An offset from which reading finds the last report before a position, and all that follow."""
        low, high = await self._history.bounds(self._signature, self._since)
        if at == FIRST:
            return low
        known = self._journal.first_offset(self._signature)
        end, step = min(high, known if known is not None else high), STEP
        while end > low:
            start = max(low, end - step)
            if await self._finds_before(start, end, at):
                return start
            end, step = start, 4 * step
        return low

    async def _finds_before(self, start: int, end: int, at: Position) -> bool:
        """Does reading from an offset begin with a complete report before the position?"""
        while True:
            page = await self._history.page(self._signature, start, end)
            if page.reports:
                return page.reports[0].position < at
            if page.ended:
                return False
            start = page.next


def _is_beyond(reports: tuple[Released, ...], at: Position, before: bool) -> bool:
    """Did reading begin too late on the topic to find what is asked for?"""
    return not reports or reports[0].position > at or (before and reports[0].position == at)
