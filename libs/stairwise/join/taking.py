"""One query out of a published report of its signature's join: the joined rows that its own windows hold together.

answers        the whole answer of a SELECT of rows over a join, as if it had been evaluated alone
lookup         O(joined rows of the report)
space          nothing: a report stands for itself
order          any
from           seed 000 section 4 (a result carries the time stamps that decide which windows hold it)
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query, Select, time_windows
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.join.operator import JoinBlock
from stairwise.operators.preparation import computed
from stairwise.operators.roster import own_times
from stairwise.reports.blocks import Reports
from stairwise.reports.contract import Life
from stairwise.reports.expansion import report_schema
from stairwise.windows.expiry import lifetimes
from stairwise.windows.schedule import report_grids


class JoinTaking:
    """What one query shows of what its signature publishes."""

    def __init__(self, query: Query, life: Life) -> None:
        select = query.relation
        assert isinstance(select, Select)
        windows = time_windows(select)
        assert windows is not None
        self.life = life
        self.faults = Faults()
        self._query, self._select, self._windows = query, select, windows
        self._grids = [grid for window in windows for grid in report_grids(window)]

    def held(self, block: JoinBlock, times: Ints) -> JoinBlock:
        return replace(block, times=times)  # its rows, where it has any, show at none of them

    def is_due(self, block: JoinBlock) -> bool:
        return len(self._due(block)) > 0

    def reports(self, block: JoinBlock) -> Reports | None:
        """Its own report, out of one that stands for itself."""
        times = self._due(block)
        if not len(times):
            return None
        (found,) = block.found
        begins, ends = lifetimes(self._windows, found.times)
        shows = (begins <= times[0]) & (ends > times[0])
        for time in found.times:
            shows &= time > self.life.horizon
        columns, count = found.columns, len(found)
        if not shows.all():
            mask = pa.array(shows)
            columns = [None if column is None else column.filter(mask) for column in columns]
            count = int(np.count_nonzero(shows))
        made = [column for _, column in computed(self._select, columns, count, self.faults)]
        rows = pa.RecordBatch.from_arrays(made, schema=report_schema(self._query))
        return Reports(self._query.name, times, np.zeros(1, np.int64), np.array([0, count]), rows)

    def _due(self, block: JoinBlock) -> Ints:
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        due: Ints = times[reduce(np.logical_or, [(times - grid.offset) % grid.slide == 0 for grid in self._grids])]
        return due
