"""What one subscriber gets: a header, then for each report its changes and a progress mark, then the end.

Every message is a function of the topics and of the token before it: whichever replica sends it, and however
often the subscription was resumed, the same changes come. Only where a report is cut into updates may differ.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from services.results import encoding
from services.results.alone_feed import AloneFeed
from services.results.assembly import END, Released
from services.results.cursor import Cursor
from services.results.moved_report import MovedReport
from services.results.query_feed import QueryFeed
from services.results.rendition import Rendition, Sending, compares_by_level
from stairwise.algebra.query import Emit, Query, levels_of
from stairwise.errors import FailedQueryError, GoneError, LimitError
from stairwise.reports.contract import Position
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.failures import Failure
from stairwise.wire.reports import Mark

_REASONS = {Mark.SEALED: pb.End.REASON_SEALED, Mark.LEFT: pb.End.REASON_DROPPED}

HEARTBEAT = 15.0
"""After so many seconds without a message a heartbeat is sent, if the subscriber asks for nothing else."""


def oversized(query: Query, released: Released) -> LimitError:
    time = released.position[0]
    return LimitError(
        f"the report of query {query.name!r} at time {time} is larger than operators may publish",
        hint=f"subscribe from a later time, {time + 1} or after; fewer keys or coarser slides make reports smaller, "
        "STAIRWISE_REPORT_BYTES of operators allows larger ones",
    )


def failed(query: Query, released: Released, token: bytes) -> FailedQueryError:
    failure = Failure.decode(released.messages[0].value)
    return FailedQueryError(query.name, failure.reason, token)


class UpdateStream:
    """Goes on from ``cursor``, report by report, for as long as the feed does."""

    def __init__(
        self, rendition: Rendition, cursor: Cursor, feed: AloneFeed | QueryFeed, heartbeat: float = HEARTBEAT
    ) -> None:
        self._rendition = rendition
        self._query = rendition.registered.query
        self._start = cursor
        self._feed = feed
        self._heartbeat = heartbeat

    async def messages(self) -> AsyncIterator[Sending]:
        start, cursor = self._start, self._start
        yield self._rendition.response(start, pb.SubscribeResponse(header=encoding.header(self._query)))
        base: Released | None = None
        begin, before = self._reach_back(start), self._needs_base(start)
        async for released in self._feed.reports(begin, before=before, offset=start.offset, patience=self._heartbeat):
            if released is None:
                beat = pb.Heartbeat(clock_ms=time.time_ns() // 1_000_000)
                yield self._rendition.response(cursor, pb.SubscribeResponse(heartbeat=beat))
                continue
            if released.mark is Mark.OVERSIZED:
                if released.position >= start.at:
                    raise oversized(self._query, released)
                continue
            if released.mark is Mark.FAILED:
                raise failed(self._query, released, self._rendition.token(cursor))
            if released.mark is not Mark.REPORT:
                end = pb.End(reason=_REASONS[released.mark])
                cursor = Cursor(END, complete=True, offset=released.offset)
                yield self._rendition.response(cursor, pb.SubscribeResponse(end=end))
                return
            if self._rendition.shows_lifetimes and not isinstance(released, MovedReport):
                continue  # of before rows told their ends
            if released.position < start.at:
                self._rendition.resume(released)
            else:
                if cursor is start:
                    self._check(base, released)
                within = Cursor() if cursor is not start or start.complete else start
                async for sending in self._rendition.updates(released, base, within):
                    yield sending
                cursor = Cursor(released.position, complete=True, offset=released.offset)
            base = released

    def _reach_back(self, start: Cursor) -> Position:
        """Where to begin reading: a window with levels compares each level with its own last report."""
        window = levels_of(self._query)
        if window is None or not compares_by_level(self._query):
            return start.at
        return start.at[0] - max(level.slide for level in window.levels), 0

    def _needs_base(self, start: Cursor) -> bool:
        """A snapshot compares with nothing, nor does RSTREAM; but a base proves that nothing is missing."""
        return not start.snapshot and (start.complete or self._query.emit is not Emit.RSTREAM)

    def _check(self, base: Released | None, first: Released) -> None:
        """Does the first report follow the last one that was sent?"""
        start = self._start
        there = base if start.complete else first
        if start.is_exact and (there is None or there.position != start.position):
            earliest = base or first
            raise GoneError(
                f"the report of query {self._query.name!r} at time {start.position[0]} is no longer retained",
                hint=f"the earliest that is there has time {earliest.position[0]}: subscribe from earliest",
            )
