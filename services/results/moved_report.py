"""Reports that say what moved: what stands after one is put together from the last keyframe and what follows it.

    reports     K10   20   30   40   K50   60   70
    stands           ├─────────▶ 40
                 what stood before 10, and the moves of 10, 20, 30 and 40

The lines of a report need less. Where moves have a diff they are the changes; where they say until when a row stays,
those that leave are found among what stands after the report before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from services.results.assembly import Released
from services.results.feed import Feed
from stairwise.algebra.query import Query
from stairwise.errors import GoneError
from stairwise.reports.contract import Position, Report
from stairwise.reports.standing_answer import KeptAnswer, standing_of, tells_ends, without_last
from stairwise.schema import DAWN
from stairwise.wire.reports import Mark, decode_report

LARGE = 64 << 10
"""A report of so many bytes is taken in by a thread, so that the loop goes on meanwhile."""


@dataclass(frozen=True)
class MovedReport(Released):
    """A report that holds what moved since the one before; only one shard makes such reports of a signature."""

    feed: Feed | None = None
    """Where those before it can be read."""

    @cached_property
    def said(self) -> Report:
        (message,) = self.messages
        return decode_report(message.headers, message.value)

    @property
    def keyframe(self) -> Position:
        found = self.messages[0].headers.keyframe
        assert found is not None
        return found

    @property
    def moves(self) -> pa.RecordBatch:
        """None behind the first time of a run."""
        is_first = self.messages[0].headers.position == self.position
        return self.said.rows if is_first else self.said.rows.slice(0, 0)

    async def is_founded(self) -> bool:
        """Is what it moves still known?"""
        assert self.feed is not None
        if self.said.before is not None:
            return True
        found = await self.feed.last_before((self.keyframe[0], self.keyframe[1] + 1))
        return found is not None and found.end >= self.keyframe

    def after(self, standing: KeptAnswer | None, query: Query) -> KeptAnswer | None:
        """What stands after it, by what stood before, if that is known or said here."""
        if standing is not None:
            standing.take(self.position[0], self.moves)
        elif self.said.before is not None:
            standing = stood_before(query, self)
            standing.take(self.position[0], self.said.rows)  # of a run, at its first time: nothing moves behind it
        return standing

    async def standing(self, query: Query, keyframe: Position | None = None) -> KeptAnswer:
        """What stands after it; where the report that it names was written before as no keyframe, by an earlier one."""
        assert self.feed is not None
        standing: KeptAnswer | None = None
        keyframe = self.keyframe if keyframe is None else keyframe
        async for released in self.feed.reports(keyframe, before=False, patience=0.0):
            if released is None or released.position > self.position:
                standing = None
                break
            each = moved(released, self.feed)
            if isinstance(each, MovedReport) and each.position <= keyframe and each.keyframe < keyframe:
                return await self.standing(query, each.keyframe)
            if not isinstance(each, MovedReport):
                standing = None  # one that was too large
            elif each.size < LARGE:
                standing = each.after(standing, query)
            else:
                standing = await asyncio.to_thread(each.after, standing, query)
            if released.end >= self.position:
                break
        if standing is None:
            raise lost(query, self)
        return standing


def lost(query: Query, report: MovedReport) -> GoneError:
    return GoneError(
        f"what the report of query {query.name!r} at time {report.position[0]} changes is no longer retained, or was "
        "too large to be published",
        hint="subscribe from a later time; STAIRWISE_REPORT_BYTES of operators allows larger reports",
    )


def moved(released: Released, feed: Feed) -> Released:
    """A report of one query by itself, as one that says what moved if it does."""
    if released.mark is not Mark.REPORT or released.messages[0].headers.keyframe is None:
        return released
    told = released.signature, released.position, released.messages, released.mark, released.until
    return MovedReport(*told, feed=feed)


def stood_before(query: Query, keyframe: MovedReport) -> KeptAnswer:
    before = keyframe.said.before
    assert before is not None
    standing = standing_of(query, ends_are_known=tells_ends(before))
    standing.take(DAWN, before)
    return standing


async def whole_report(released: Released, query: Query) -> Report:
    """The whole answer at a report."""
    if not isinstance(released, MovedReport):
        return released.report()
    rows = without_last((await released.standing(query)).rows())
    return Report(released.signature, released.position[0], rows, released.position[1])
