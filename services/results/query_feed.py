"""One query's reports out of those of its signature, which many queries share.

    signature   10   20   turn   25   30   turn   35
    query                  └ joins    30    └ has left: its end

To those who read it, it is a feed like that of a query which runs alone: what is not the query's is passed over, and
the turn at which it left stands as its end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from services.results.assembly import END, IN_ORDER, Released, just_after
from services.results.feed import Feed
from services.results.followed_plans import FollowedPlans
from services.results.query_lives import QueryLives
from services.results.run_unroller import RunUnroller
from stairwise.aggregation.stair import Stair
from stairwise.plan.published import PublishedBlock, Taking, frames, taking_of
from stairwise.reports.contract import Position, Report
from stairwise.schema import DAWN, Instant
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark


@dataclass(frozen=True)
class QueryReport(Released):
    """A report of which one query takes its part."""

    whole: Released | None = None
    """As all queries of the signature have it, who open it once between them."""
    taking: Taking | None = None

    @property
    def horizon(self) -> Instant:
        assert self.taking is not None
        return self.taking.life.horizon

    @cached_property
    def size(self) -> int:
        """About how many bytes the query's part takes in memory, at the most."""
        assert self.whole is not None
        parts = (block.largest if isinstance(block, Stair) else 1.0 for block in self.whole.blocks)
        return int(self.whole.size * max(parts))

    def report(self) -> Report:
        assert self.whole is not None
        assert self.taking is not None
        here = np.array([self.position[0]])
        shards = zip(self.whole.messages, self.whole.blocks, strict=True)
        # A shard may have a run where another has a report.
        blocks = [block if m.headers.until is None else self.taking.held(block, here) for m, block in shards]
        found = [self.taking.reports(block) for block in blocks]
        pieces = [own.rows for own in found if own is not None]
        return Report(self.signature, self.position[0], pa.concat_batches(pieces))


class QueryFeed:
    """Reads what one query of a shared signature has."""

    def __init__(self, feed: Feed, registered: Registered, plans: FollowedPlans, lives: QueryLives) -> None:
        self._feed = feed
        self._registered = registered
        self._plans = plans
        self._lives = lives
        self._frames = frames(registered.query)
        self._unroller = RunUnroller(registered.query)
        self._taking: Taking | None = None

    async def reports(
        self, at: Position, *, before: bool, offset: int | None = None, patience: float = 3600.0
    ) -> AsyncIterator[Released | None]:
        """As those of a feed. The report before ``at`` comes when the next one does, or when none came for long."""
        reach = max(frame.slide for frame in self._frames)
        begin = (max(at[0], DAWN + reach) - reach, 0) if before else at
        held: Released | None = None
        async for released in self._feed.reports(begin, before=False, offset=offset, patience=patience):
            own = None if released is None else await self._own(released)
            if own is None and released is not None:
                continue
            for report in self._unrolled(own, at):
                if report is not None and report.position < at:
                    held = report
                    continue
                if held is not None:
                    yield held
                    held = None
                yield report
            if own is not None and own.position == END:
                return

    def _unrolled(self, own: Released | None, at: Position) -> Iterable[Released | None]:
        """A report, or those of a run."""
        if own is None or own.until is None:
            return (own,)
        return self._unroller.reports(own, at, self._after)

    @property
    def _after(self) -> Instant:
        """The query reports above it."""
        return self._taking.life.after if self._taking is not None else DAWN

    async def last_before(self, until: Position) -> Released | None:
        """The query's last report before a position; None where none is retained."""
        last = await self._feed.last_before(until)
        if last is None:
            return None
        time = min(last.end[0], until[0] if until[1] else until[0] - 1)
        own = await self._at(max(time - (time - frame.offset) % frame.slide for frame in self._frames))
        return own if own is not None and own.mark in (Mark.REPORT, Mark.OVERSIZED) else None

    async def _at(self, due: Instant) -> Released | None:
        """What the query has at one of its report times; its last report, if its stream had ended by then."""
        found = await self._feed.last_before(just_after((due, 0)))
        if found is None or not found.position <= (due, 0) <= found.end:
            return None
        own = await self._own(found)
        if own is not None and own.until is not None:
            return own.at(due) if due > self._after else None
        if own is None and found.mark is Mark.REPORT and self._taking is not None:
            sealed_at = _explicit(found).sealed_at
            if sealed_at is not None:
                row = max(sealed_at, self._taking.life.after)
                end = min(row + (frame.offset - row) % frame.slide for frame in self._frames)
                return await self._at(end) if end < due else None
        return own

    async def _own(self, released: Released) -> Released | None:
        """What the query has of it; None where it has nothing."""
        if released.mark not in IN_ORDER or released.version < self._registered.version:
            return released if released.mark in (Mark.SEALED, Mark.FAILED) else None
        left = (await self._plans.upto(released.version)).left_at(self._registered)
        if left is not None and left <= released.version:
            return replace(released, position=END, mark=Mark.LEFT)
        if released.mark is Mark.TURN:
            return None
        if self._taking is None:
            assert self._registered.shared is not None
            life = await self._lives.find(self._registered)
            self._taking = taking_of(self._registered.shared, self._registered.query, life)
        if released.mark is Mark.OVERSIZED and released.until is None:
            return released if self._is_due_at(released.position[0], self._taking.life.after) else None
        if released.mark is Mark.OVERSIZED:
            return released
        if released.until is None and not self._taking.is_due(_explicit(released)):
            return None
        told = released.signature, released.position, released.messages, released.mark, released.until
        return QueryReport(*told, whole=released, taking=self._taking)

    def _is_due_at(self, time: Instant, after: Instant) -> bool:
        """Is it a report time of the query? Told without the report, which was not published."""
        return time > after and any((time - frame.offset) % frame.slide == 0 for frame in self._frames)


def _explicit(released: Released) -> PublishedBlock:
    """What a shard has said of this very time: another may have a run there, which says when it began."""
    shards = zip(released.messages, released.blocks, strict=True)
    return next((block for message, block in shards if message.headers.until is None), released.blocks[0])
