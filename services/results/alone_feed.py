"""The reports of a query that shares none with others: its signature's, runs taken apart.

Where reports say what moved, those are passed over at the beginning whose keyframe is no longer retained.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from services.results.assembly import Released
from services.results.feed import Feed
from services.results.moved_report import MovedReport, moved
from services.results.run_unroller import RunUnroller
from stairwise.algebra.query import Query
from stairwise.reports.contract import Position


class AloneFeed:
    def __init__(self, feed: Feed, query: Query) -> None:
        self._feed = feed
        self._unroller = RunUnroller(query)

    async def reports(
        self, at: Position, *, before: bool, offset: int | None = None, patience: float = 3600.0
    ) -> AsyncIterator[Released | None]:
        """As those of a feed."""
        is_founded = False
        async for found in self._feed.reports(at, before=before, offset=offset, patience=patience):
            released = None if found is None else moved(found, self._feed)
            if isinstance(released, MovedReport) and not is_founded:
                is_founded = await released.is_founded()
                if not is_founded:
                    continue
            if released is None or released.until is None:
                yield released
                continue
            for report in self._unroller.reports(released, at):
                if before or report.position >= at:
                    yield report

    async def last_before(self, until: Position) -> Released | None:
        """The last report before a position; None where none is retained."""
        found = await self._feed.last_before(until)
        if found is None:
            return None
        released = moved(found, self._feed)
        if released.until is None:
            return released
        own = self._unroller.last(released, until[0] if until[1] else until[0] - 1)
        return own if own is not None else await self.last_before(released.position)
