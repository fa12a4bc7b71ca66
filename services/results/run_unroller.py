"""A query's own reports in a run, which stands for every report of its signature from one time until another.

    run        10 ────────────────────────────────── until 1,000,000
    query      10    20    30    40   ...              1,000,000       shows whole answers, with rows: all of them
               10                                      1,000,000       else: the first and the last

A run says the same at all of its times. So a query that shows changes has them at its first report there (of each
level, where it has levels), and one whose answer shows no row has nothing to say in between. Only whole answers with
rows are gone through one by one, as fast as their reader takes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import numpy as np

from services.results.assembly import Position, Released
from services.results.feed import Feed
from stairwise.algebra.query import Emit, Query, inputs
from stairwise.reports.expansion import Expansion
from stairwise.schema import DAWN, Instant
from stairwise.windows.schedule import Grid, first_of_each, grid_blocks, report_grids, without_covered
from stairwise.wire.reports import Mark


class RunUnroller:
    """Takes one query's reports out of runs."""

    def __init__(self, query: Query) -> None:
        self._query = replace(query, emit=Emit.RSTREAM)
        self._shows_changes = query.emit is not Emit.RSTREAM
        self._grids: list[Grid] = [g for source in inputs(query.relation) for g in report_grids(source.window)]

    def reports(self, run: Released, at: Position, after: Instant = DAWN) -> Iterator[Released]:
        """The last report before a position, if it is in the run, then those at or after it that say something.

        The query has none at or before ``after``. A run that was too large to be published says so once.
        """
        if run.mark is Mark.OVERSIZED:
            yield replace(run, position=max(run.position, at), until=None)
            return
        begin, until = self._bounds(run, after)
        before = self.last(run, (at[0] if at[1] else at[0] - 1), after)
        if before is not None:
            yield before
            begin = max(begin, before.position[0])
        firsts = first_of_each(self._grids, begin, until)
        if not len(firsts):
            return
        if not self._shows_changes and self._shows_rows([run.at(time) for time in firsts.tolist()]):
            for block in grid_blocks(without_covered(self._grids), begin, until):
                yield from map(run.at, block.tolist())
            return
        last = max(t for grid in self._grids if (t := grid.at_or_before(until)) is not None)
        yield from map(run.at, np.union1d(firsts, last).tolist())

    def last(self, run: Released, upto: Instant, after: Instant = DAWN) -> Released | None:
        """The query's last report in a run at or before an instant."""
        begin, until = self._bounds(run, after)
        found = [t for g in self._grids if (t := g.at_or_before(min(upto, until))) is not None and t > begin]
        return run.at(max(found)) if found else None

    def _bounds(self, run: Released, after: Instant) -> tuple[Instant, Instant]:
        """The query's reports in a run lie above the one, up to the other."""
        assert run.until is not None
        time, ordinal = run.position
        return max(after, time if ordinal else time - 1), run.until

    def _shows_rows(self, reports: list[Released]) -> bool:
        return any(Expansion(self._query).expand(report.report()).rows.num_rows for report in reports)


class AloneFeed:
    """The reports of a query that shares none with others: its signature's, runs taken apart."""

    def __init__(self, feed: Feed, query: Query) -> None:
        self._feed = feed
        self._unroller = RunUnroller(query)

    async def reports(
        self, at: Position, *, before: bool, offset: int | None = None, patience: float = 3600.0
    ) -> AsyncIterator[Released | None]:
        """As those of a feed."""
        async for released in self._feed.reports(at, before=before, offset=offset, patience=patience):
            if released is None or released.until is None:
                yield released
                continue
            for report in self._unroller.reports(released, at):
                if before or report.position >= at:
                    yield report

    async def last_before(self, until: Position) -> Released | None:
        """The last report before a position; None where none is retained."""
        found = await self._feed.last_before(until)
        if found is None or found.until is None:
            return found
        own = self._unroller.last(found, until[0] if until[1] else until[0] - 1)
        return own if own is not None else await self.last_before(found.position)
