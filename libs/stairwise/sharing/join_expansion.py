"""One query out of its signature's joined rows: those that its own windows hold together, or only what changed.

    found    (a at 3, b at 8)     RANGE 4 SLIDE 2, RANGE 9 SLIDE 3        shows at τ in [9, 8): never
                                  RANGE 9 SLIDE 3 both                    shows at τ in [9, 12)
                                                                          +1 at 9, −1 at 12

    answers        projection, DISTINCT and groups over a join, under every EMIT
    update         O(1) a joined row; changes: O(rows that begin or cease to show)
    lookup         whole answers: O(joined rows that show)
    space          the joined rows that show now or later, whose columns all queries of the signature have in common
    order          blocks in order, each once
    from           seed 000 section 4; seed 001 section 3.5.2 (calendar queue for results that leave out of order)

Rows that begin to show and rows that cease to are each found under the day on which they do. Equal rows among them
cancel out: ISTREAM, DSTREAM and CHANGES compare by value. Of DISTINCT the copies of each value are counted instead
(``copies``), and groups are kept up to date by the rows that enter and leave them (``changing_groups``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.cql.query import Emit, Query, Select
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.answers import output_batch, ranked
from stairwise.operators.buffer import TIME
from stairwise.operators.calendar import CalendarQueue
from stairwise.operators.cells import Cells, canonical_column, distinct
from stairwise.operators.emission import Emissions
from stairwise.operators.expansion import Expansion, report_schema
from stairwise.operators.grouping import Grouping
from stairwise.operators.joined_rows import JoinedRows
from stairwise.operators.lifetimes import lifetimes
from stairwise.operators.moments import Moments, pieces
from stairwise.operators.multisets import difference
from stairwise.operators.pages import concat
from stairwise.operators.passage import Passage
from stairwise.operators.preparation import computed, row_expressions
from stairwise.operators.probe import JoinedInputs
from stairwise.operators.reports import Reports, block_by
from stairwise.operators.timejoin import time_windows
from stairwise.schema import Instant
from stairwise.sharing.changing_groups import ChangingGroups, change_by_group
from stairwise.sharing.copies import Copies
from stairwise.sharing.due import Life
from stairwise.sharing.join import JoinBlock
from stairwise.sharing.roster import own_times
from stairwise.windows.schedule import report_grids

WORK = 200_000
"""About how many rows one block of whole answers is made from."""


class JoinExpansion:
    """What one query shows of its signature's joined rows."""

    def __init__(self, query: Query, life: Life, history: Sequence[JoinedInputs] = ()) -> None:
        """``history`` is what came about before the query joined."""
        select = query.relation
        assert isinstance(select, Select)
        windows = time_windows(select)
        assert windows is not None
        self.query, self._select, self._windows = query, select, windows
        self.life = life
        self._grids = [grid for window in windows for grid in report_grids(window)]
        fields = [pa.field(name, expr.type.arrow) for name, expr in row_expressions(select)]
        self._schema = pa.schema([*fields, pa.field(TIME, pa.int64())])
        self._rows = JoinedRows(self._schema)
        self._grouping = Grouping(select) if select.is_grouped else None
        self._expansion = Expansion(query)
        self.faults = self._expansion.faults
        keeps_most = all(2 * window.slide <= window.range for window in windows)
        counts = change_by_group(select) if select.is_grouped else select.distinct
        shows_whole = query.emit is Emit.RSTREAM or (select.is_grouped and not counts) or (counts and not keeps_most)
        day = min(window.slide for window in windows)
        self._passage = Passage(day)
        """The way of the rows that are counted."""
        self._counts: Copies | ChangingGroups | None = None
        """Of DISTINCT the values are counted, and groups are kept, unless most rows change from report to report."""
        if counts and not shows_whole:
            grouped = select.is_grouped
            self._counts = (
                ChangingGroups(query, self._passage, self.faults) if grouped else Copies(query, [self._passage])
            )
        self._coming = None if shows_whole else CalendarQueue(day)
        self._going = CalendarQueue(day)
        self._came = 0
        """How many joined rows have come."""
        self._last: Instant | None = None
        for found in history:
            self._add(found)

    def expand(self, block: JoinBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        for found in block.found:
            self._add(found)
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        mine = [(times - grid.offset) % grid.slide == 0 for grid in self._grids]
        times = times[np.logical_or.reduce(mine)]
        if not len(times):
            return None
        if self._counts is not None:
            return self._counts.changes(times)
        lines = self._whole(times) if self._coming is None else self._changes(times, self._coming)
        self._last = int(times[-1])
        self._rows.evict(self._last)
        return lines

    def expand_held(self, block: JoinBlock, times: Ints) -> Emissions | None:
        """Its lines at some of its report times in a run that a block begins."""
        return self.expand(block.held(times))

    def _add(self, found: JoinedInputs) -> None:
        begins, ends = lifetimes(self._windows, found.times)
        shows = begins < ends
        for time in found.times:
            shows &= time > self.life.horizon
        if not shows.any():
            return
        columns, times = found.columns, found.times
        if not shows.all():
            mask = pa.array(shows)
            columns = [None if column is None else column.filter(mask) for column in columns]
            begins, ends, times = begins[shows], ends[shows], [time[shows] for time in times]
        made = computed(self._select, columns, len(begins), self.faults)
        latest, start = np.max(times, axis=0), self._came
        numbers = np.arange(start, start + len(begins))
        self._came += len(begins)
        if self._counts is not None:
            values = [canonical_column(column) for _, column in made]
            places = Rows(latest, np.zeros(len(begins), np.int32), numbers)
            self._passage.add(begins, ends, self._counts.numbers(values, places))
            return
        columns = [*(c for _, c in made), pa.array(latest)]
        self._rows.add(begins, ends, pa.RecordBatch.from_arrays(columns, schema=self._schema))
        if self._coming is not None:
            self._coming.push(begins, numbers)
            self._going.push(ends, numbers)

    # ── whole answers ────────────────────────────────────────────────────────────────────────────────────────

    def _whole(self, times: Ints) -> Emissions:
        zeros = np.zeros(len(times), np.int64)
        moments = Moments(times, zeros, zeros)
        parts = [
            self._expansion.expand_block(self._answers(times[piece]))
            for piece in pieces(moments, self._rows.counts(times), WORK)
        ]
        if len(parts) == 1:
            return parts[0]
        return Emissions(
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.ordinals for part in parts]),
            np.concatenate([part.diff for part in parts]),
            concat([part.rows for part in parts]),
            sum(part.reports for part in parts),
        )

    def _answers(self, times: Ints) -> Reports:
        of, numbers = self._rows.showing(times)
        rows = self._rows.take(numbers)
        if self._grouping is not None:
            places = Rows(int64_view(rows.column(TIME)), np.zeros(len(of), np.int32), numbers)
            cells = self._grouping.groups(times, of, rows, places)
        else:
            cells = Cells(of, rows.select(self._schema.names[:-1]))
            cells = distinct(cells) if self._select.distinct else cells
        if np.any(np.diff(cells.of) < 0):
            cells = cells.take(np.argsort(cells.of, kind="stable"))
        made = pa.RecordBatch.from_arrays(cells.rows.columns, schema=report_schema(self.query))
        return block_by(self.query.name, times, np.zeros(len(times), np.int64), cells.of, made)

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────────────

    def _changes(self, times: Ints, coming: CalendarQueue) -> Emissions:
        """What begins and what ceases to show at each time, equal rows taken off against one another."""
        begins, come = coming.pop(int(times[-1]))
        ends = self._rows.ends_of(come)
        report = np.searchsorted(times, begins, side="left")
        seen = np.searchsorted(times, ends, side="left") > report
        entered = self._cells(report[seen], come[seen])
        ends, gone = self._going.pop(int(times[-1]))
        begins = self._rows.begins_of(gone)
        report = np.searchsorted(times, ends, side="left")
        first = np.searchsorted(times, begins, side="left")
        was_seen = first < report
        if self._last is not None:
            was_seen |= (begins <= self._last) & (ends > self._last)
        left = self._cells(report[was_seen], gone[was_seen])
        enters, leaves = difference(entered, left)
        if self.query.emit is Emit.ISTREAM:
            leaves[:] = False
        if self.query.emit is Emit.DSTREAM:
            enters[:] = False
        return self._in_order(times, left.keep(leaves), entered.keep(enters))

    def _cells(self, report: Ints, numbers: Ints) -> Cells:
        """Output rows in the one spelling of their values."""
        rows = self._rows.take(numbers)
        return Cells(report, output_batch(self._select.outputs, rows.columns[:-1]))

    def _in_order(self, times: Ints, left: Cells, entered: Cells) -> Emissions:
        of = np.concatenate([left.of, entered.of])
        diff = np.concatenate([np.full(len(left), -1, np.int8), np.ones(len(entered), np.int8)])
        rows = concat([left.rows, entered.rows])
        order = np.lexsort([ranked(rows.columns, len(of)), diff, of])
        lines = rows.take(pa.array(order))
        return Emissions(times[of[order]], np.zeros(len(of), np.int64), diff[order], lines, len(times))
