"""The changes of SELECT, UNION ALL and EXCEPT over time windows, by positive and negative tuples.

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

A row is put under the day on which it will leave when it comes (``calendar``): what falls out is the negative tuple,
and difference, whose results nobody can tell the end of, takes both kinds. Selection and union let them pass.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.cql.query import Query
from stairwise.expressions.faults import Faults
from stairwise.operators.emission import Emissions
from stairwise.operators.lifetimes import lifetimes
from stairwise.sharing.copies import Copies
from stairwise.sharing.due import Life
from stairwise.sharing.flow import Flow, FlowBlock
from stairwise.sharing.roster import own_times, windows_of
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import TimeWindow


class FlowExpansion:
    """What one query shows of its signature's rows."""

    def __init__(self, query: Query, life: Life) -> None:
        self.query, self.life = query, life
        self.faults = Faults()
        self._windows = [window for window in windows_of(query) if isinstance(window, TimeWindow)]
        self._grids = [grid for window in self._windows for grid in report_grids(window)]
        self._copies = Copies(query, [window.slide for window in self._windows])

    def expand(self, block: FlowBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        for side, flow in enumerate(block.flows):
            self._add(side, flow)
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        times = times[np.logical_or.reduce([(times - grid.offset) % grid.slide == 0 for grid in self._grids])]
        return self._copies.changes(times) if len(times) else None

    def _add(self, side: int, flow: Flow) -> None:
        seen = flow.times > self.life.horizon
        if not seen.any():
            return
        mask = pa.array(seen)
        values = flow.values if seen.all() else [column.filter(mask) for column in flow.values]
        self._copies.add(side, *lifetimes([self._windows[side]], [flow.times[seen]]), values)
