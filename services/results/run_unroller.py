"""A query's own reports in a run, which stands for every report of its signature from one time until another.

    run        10 ────────────────────────────────── until 1,000,000
    query      10    20    30    40   ...              1,000,000       shows whole answers, with rows: all of them
               10                                      1,000,000       else: the first and the last

A run says the same at all of its times. So a query that shows changes has them at its first report there (of each
level, where it has levels), and one whose answer shows no row has nothing to say in between. Only whole answers with
rows are gone through one by one, as fast as their reader takes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from services.results.assembly import Released
from stairwise.algebra.query import Emit, Query, inputs
from stairwise.reports.contract import Position
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
