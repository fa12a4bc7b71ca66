"""The changes of SELECT, UNION ALL and EXCEPT over windows that report by time, by positive and negative tuples.

    SELECT k FROM a [..] EXCEPT SELECT k FROM b [..]

    τ      a          b          copies of k on the left, on the right        k1 − k2, not below 0      shown
    10     +k +k                 2, 0                                         2                         +k +k
    20                +k         2, 1                                         1                         −k
    30     −k −k                 0, 1                                         0                         −k
    40                −k         0, 0                                         0

    answers        ISTREAM, DSTREAM and CHANGES of one query
    update         O(log r) a row; changes O(rows that entered or left any of its windows), whatever these hold
    lookup         none of its own
    space          two numbers for each row in a window, and the copies of each value on each side
    order          blocks in order, each once
    from           seed 002 section 4.3 (difference: multiplicities go up and down with both windows, Proposition 8);
                   seed 001 sections 3.2.2 and 3.5.2 (STR: negative tuples; calendar queue)

A row is put under the day on which it will leave when it comes, or, in a window that counts rows, when the row comes
that expels it (``changes.passage``): what falls out is the negative tuple, and difference, whose results nobody can
tell the end of, takes both kinds. Selection and union let them pass; groups add the one kind and take out the other
(``changing_groups``). Of a join, rows that move are joined with the others first (``join.moving_join``).
"""

from __future__ import annotations

import numpy as np

from stairwise.algebra.query import Input, Query, Select, inputs
from stairwise.changes.changing_groups import ChangingGroups
from stairwise.changes.copies import Copies
from stairwise.changes.passage import HIDDEN, CountedPassage, TimePassage, VersionPassage, Way, WindowPassage
from stairwise.changes.row_passage import RowPassage
from stairwise.expressions.faults import Faults
from stairwise.flow.operator import Flow, FlowBlock
from stairwise.join.moving_join import MovingJoin, Numbering
from stairwise.operators.roster import own_times
from stairwise.reports.contract import Life
from stairwise.reports.emission import Emissions
from stairwise.reports.moments import Moments
from stairwise.schema import DAWN, Instant
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import PartitionedWindow, RelationWindow, RowsWindow, TimeWindow


class FlowExpansion:
    """What one query shows of its signature's rows."""

    def __init__(self, query: Query, life: Life) -> None:
        self.query, self.life = query, life
        self.faults = Faults()
        sources = list(inputs(query.relation))
        self._grids = [grid for source in sources for grid in report_grids(source.window)]
        self._passages: list[WindowPassage] = [passage_of(source) for source in sources]
        self._reads_table = [source.stream.is_table for source in sources]
        relation = query.relation
        join = None
        if isinstance(relation, Select) and len(sources) > 1:
            join = MovingJoin(relation, self._passages, self.faults)
        ways: list[Way] = [*self._passages] if join is None else [join]
        is_grouped = isinstance(relation, Select) and relation.is_grouped
        self._shown = ChangingGroups(query, ways[0], self.faults) if is_grouped else Copies(query, ways)
        self._numberings: list[Numbering] = [self._shown.numbers] * len(sources)
        """Who gives numbers to the rows of each input."""
        if join is not None:
            join.number_by(self._shown.numbers)
            self._numberings = [one.numbers for one in join.inputs]

    def expand(self, block: FlowBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        for i, flow in enumerate(block.flows):
            self._take(self._passages[i], self._numberings[i], flow.above(self._horizon(i)))
        moments = self._own(block)
        return self._shown.changes(moments) if len(moments) else None

    def _own(self, block: FlowBlock) -> Moments:
        """The moments of a block at which it is due: when a window of its own is."""
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        mine = np.isin(block.times, times)
        on_grid = [(block.times - grid.offset) % grid.slide == 0 for grid in self._grids]
        mine &= np.logical_or.reduce([block.at_rows & (block.times > self.life.horizon), *on_grid])
        return Moments.of(block.times[mine], block.ordinals[mine])

    def _horizon(self, i: int) -> Instant:
        """Of a table all updates are seen, whenever they came."""
        return DAWN if self._reads_table[i] else self.life.horizon

    def _take(self, passage: WindowPassage, numbering: Numbering, flow: Flow) -> None:
        numbers = np.full(len(flow.places.time), HIDDEN, np.int64)
        shown = flow.shown()
        numbers[slice(None) if flow.kept is None else flow.kept] = numbering(shown.values, shown.places)
        passage.take(flow.first, flow.places.time, numbers, flow.keys)


def passage_of(source: Input) -> WindowPassage:
    """The way of rows through a window, or into a table."""
    types = {column.name: column.type.arrow for column in source.stream.columns}
    match source.window:
        case TimeWindow():
            return TimePassage(source.window)
        case RowsWindow(row_slide=int()):
            return RowPassage(source.window)
        case RowsWindow():
            return CountedPassage(source.window, [])
        case PartitionedWindow():
            return CountedPassage(source.window, [types[name] for name in source.window.keys])
        case RelationWindow(keys=keys, retroactive=True):
            return CountedPassage(source.window.latest, [types[name] for name in keys])
        case RelationWindow(keys=keys):
            return VersionPassage(source.window, [types[name] for name in keys])
        case _:
            raise TypeError(f"no rows flow through {source.window}")
