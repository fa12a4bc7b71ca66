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

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.query import Emit, Query, Select, time_windows
from stairwise.changes.changing_groups import ChangingGroups, change_by_group
from stairwise.changes.copies import Copies
from stairwise.changes.passage import Passage
from stairwise.expressions.views import Ints
from stairwise.join.operator import JoinBlock
from stairwise.join.pair_slices import is_sliced
from stairwise.join.whole_answers import ShownRows, WholeAnswers, shown_rows, shown_slices
from stairwise.operators.roster import own_times
from stairwise.reports.answers import output_batch, ranked
from stairwise.reports.blocks import Reports, block_by
from stairwise.reports.cells import Cells, canonical_column
from stairwise.reports.contract import Life
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import Expansion, report_schema
from stairwise.reports.moments import Moments, pieces
from stairwise.reports.multisets import difference
from stairwise.schema import DAWN, Instant
from stairwise.state.calendar_queue import CalendarQueue
from stairwise.state.pages import concat
from stairwise.windows.schedule import report_grids

WORK = 200_000
"""About how many rows one block of whole answers is made from."""


def tells_changes(query: Query) -> bool:
    """Are the changes of a query over a join told from the rows that move, or by comparing whole answers?"""
    select = query.relation
    assert isinstance(select, Select)
    if query.emit is Emit.RSTREAM or (select.is_grouped and not change_by_group(select)):
        return False
    keeps_most = all(2 * window.slide <= window.range for window in time_windows(select) or ())
    return keeps_most or not (select.is_grouped or select.distinct)


class JoinExpansion:
    """What one query shows of its signature's joined rows."""

    def __init__(self, query: Query, life: Life) -> None:
        select = query.relation
        assert isinstance(select, Select)
        windows = time_windows(select)
        assert windows is not None
        self.query, self._select, self._windows = query, select, windows
        self.life = life
        self._grids = [grid for window in windows for grid in report_grids(window)]
        self._is_sliced = is_sliced(select) and life.horizon == DAWN
        """Does it take partials by slices? A horizon may lie inside a slice."""
        self._whole_answers = WholeAnswers(select, are_sliced=self._is_sliced)
        self._rows = self._whole_answers.rows
        self._expansion = Expansion(query)
        self.faults = self._expansion.faults
        shows_whole = not tells_changes(query)
        day = min(window.slide for window in windows)
        self._passage = Passage(day)
        """The way of the rows that are counted."""
        self._counts: Copies | ChangingGroups | None = None
        """Of DISTINCT the values are counted, and groups are kept, unless most rows change from report to report."""
        if not shows_whole and select.is_grouped:
            self._counts = ChangingGroups(query, self._passage, self.faults, are_partials=self._is_sliced)
        elif not shows_whole and select.distinct:
            self._counts = Copies(query, [self._passage])
        self._coming = None if shows_whole else CalendarQueue(day)
        self._going = CalendarQueue(day)
        self._came = 0
        """How many joined rows have come."""
        self._last: Instant | None = None

    def expand(self, block: JoinBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        for made in self._made(block):
            self._add(made)
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        mine = [(times - grid.offset) % grid.slide == 0 for grid in self._grids]
        times = times[np.logical_or.reduce(mine)]
        if not len(times):
            return None
        if self._counts is not None:
            return self._counts.changes(Moments.of(times))
        lines = self._whole(times) if self._coming is None else self._changes(times, self._coming)
        self._last = int(times[-1])
        self._rows.evict(self._last)
        return lines

    def expand_held(self, block: JoinBlock, times: Ints) -> Emissions | None:
        """Its lines at some of its report times in a run that a block begins."""
        return self.expand(block.held(times))

    def _made(self, block: JoinBlock) -> Iterator[ShownRows]:
        """What it takes of a block's joined rows."""
        if self._is_sliced:
            slices = block.sliced(self._select)
            made = None if slices is None else shown_slices(self._windows, slices)
            if made is not None:
                yield made
            return
        for found in block.found:
            rows = shown_rows(self._select, self._windows, found, self.life.horizon, self.faults)
            if rows is not None:
                yield rows

    def _add(self, made: ShownRows) -> None:
        numbers = np.arange(self._came, self._came + len(made))
        self._came += len(made)
        if self._counts is not None:
            values = [canonical_column(column) for column in made.columns]
            places = Rows(made.latest, np.zeros(len(made), np.int32), numbers)
            self._passage.add(made.begins, made.ends, self._counts.numbers(values, places))
            return
        self._whole_answers.add(made)
        if self._coming is not None:
            self._coming.push(made.begins, numbers)
            self._going.push(made.ends, numbers)

    # ── whole answers ────────────────────────────────────────────────────────────────────────────────────────

    def _whole(self, times: Ints) -> Emissions:
        parts = [
            self._expansion.expand_block(self._answers(times[piece]))
            for piece in pieces(Moments.of(times), self._rows.counts(times), WORK)
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
        cells = self._whole_answers.answers(times)
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
