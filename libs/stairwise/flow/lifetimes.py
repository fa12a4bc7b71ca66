"""Rows of SELECT and UNION ALL over time windows with their lifetimes: nothing has to say that they leave.

SELECT k FROM a [RANGE 20 SLIDE 10]

row           k at 5        at 12        at 25
enters        10            20           30            the first report that shows it
until         30            40           50            the first that no longer does

answers        which rows enter at each report, and until when each of them stays
update         O(1) a row
lookup         O(rows that enter)
space          the rows that have come and enter later (LAG, or another window's slide)
order          blocks in order, each once
from           seed 002 Propositions 2 and 9; seed 001 section 3.5.1 (WKS and WK: expiration timestamps in place
               of negative tuples)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query, Relation, Select, Union, inputs
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.flow.operator import Flow, FlowBlock
from stairwise.operators.roster import own_times
from stairwise.reports.contract import Life
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import output_schema
from stairwise.state.pages import concat, empty
from stairwise.windows.expiry import lifetimes
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import TimeWindow


def rows_end_with_time(relation: Relation) -> bool:
    """Is the end of each row of a relation known when the row comes?"""
    match relation:
        case Select():
            is_plain = len(relation.inputs) == 1 and not relation.is_grouped and not relation.distinct
            return is_plain and isinstance(relation.inputs[0].window, TimeWindow)
        case Union():
            return rows_end_with_time(relation.left) and rows_end_with_time(relation.right)
        case _:
            return False


class LifetimeExpansion:
    """The rows of one query as they enter, with their ends."""

    def __init__(self, query: Query, life: Life) -> None:
        self.query, self.life = query, life
        self.faults = Faults()
        windows = [source.window for source in inputs(query.relation)]
        self._windows = [window for window in windows if isinstance(window, TimeWindow)]
        self._grids = [grid for window in windows for grid in report_grids(window)]
        self._schema = output_schema(query)
        self._rows = empty(self._schema)
        self._begins, self._ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """Of the rows that have not entered."""

    def expand(self, block: FlowBlock) -> Emissions | None:
        """The rows that enter; None where the query is not due."""
        for window, flow in zip(self._windows, block.flows, strict=True):
            self._take(window, flow.above(self.life.horizon).shown())
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        times = times[np.logical_or.reduce([(times - grid.offset) % grid.slide == 0 for grid in self._grids])]
        return self._entered(times) if len(times) else None

    def _take(self, window: TimeWindow, flow: Flow) -> None:
        begins, ends = lifetimes([window], [flow.places.time])
        shows = begins < ends
        self._rows = concat([self._rows, _only(pa.RecordBatch.from_arrays(flow.values, schema=self._schema), shows)])
        self._begins, self._ends = np.append(self._begins, begins[shows]), np.append(self._ends, ends[shows])

    def _entered(self, times: Ints) -> Emissions:
        """The rows up to the last of some report times; one that has ended before its first report does not enter."""
        due = self._begins <= times[-1]
        report = np.searchsorted(times, self._begins[due])
        ends, rows = self._ends[due], _only(self._rows, due)
        self._begins, self._ends, self._rows = self._begins[~due], self._ends[~due], _only(self._rows, ~due)
        order = np.argsort(report, kind="stable")
        order = order[(ends > times[report])[order]]
        entered = times[report[order]]
        rows = rows if np.array_equal(order, np.arange(rows.num_rows)) else rows.take(pa.array(order))
        zeros, ones = np.zeros(len(order), np.int64), np.ones(len(order), np.int8)
        return Emissions(entered, zeros, ones, rows, len(times), ends[order])


def _only(rows: pa.RecordBatch, some: np.ndarray) -> pa.RecordBatch:
    return rows if some.all() else rows.filter(pa.array(some))
