"""From the report of a signature to what one query shows of it: HAVING, projection, EMIT, order.

    answers        the lines of a query: time, diff, output columns, in their final order
    update         per block of reports O(r log r) for r answer rows
    space          the last answer (of each level), where EMIT shows differences
    order          reports in order of (time, ordinal), each once
    from           seed 002 section 4 and seed 001 section 2 (RSTREAM, ISTREAM, DSTREAM)

    τ          10        20        30
    answer     a b       b c       b
    RSTREAM    +a +b     +b +c     +b
    ISTREAM    +a +b     +c
    DSTREAM              −a        −c
    CHANGES    +a +b     −a +c     −c

The answers of a block are compared with themselves, moved on by one report: what a report lacks of the one
before has left, what it has beyond it has entered. Of equal rows the first ones meet, so the last ones are the
change. Without a window a report holds what its time has added, and RSTREAM shows just that. A window with levels
has an answer for each level, compared with that level's own last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Emit, Query, Select, levels_of
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Field, Output
from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.reports.answers import Placed, answer, yields_items
from stairwise.reports.blocks import Reports, block_of
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Report
from stairwise.reports.emission import Emission, Emissions
from stairwise.reports.moments import Moments, by_level
from stairwise.reports.multisets import difference
from stairwise.schema import Instant, Type
from stairwise.state.pages import concat, empty

LEVEL = "level"


@dataclass(frozen=True)
class Lines:
    """What is shown in many cells: in which, with which diff, in order."""

    cell: Ints
    diff: np.ndarray
    rows: pa.RecordBatch
    entered: Bools | None = None
    """Of changes: which rows of the answers that are there now are shown."""


@dataclass(frozen=True)
class Moved:
    """What has entered a query's reports at one of them, and what has left, by rows of these reports."""

    entered: pa.RecordBatch
    left: pa.RecordBatch
    until: Ints | None = None
    """The report time from which each row that has entered is gone, where that is known."""


class Expansion:
    """What one query shows of its signature's reports, which come in order."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.faults = Faults()
        self._window = levels_of(query)
        self._shown: dict[int, Placed] = {}
        """By level, the last answer: what the next one is compared with. Its cells are all 0."""

    def expand(self, report: Report) -> Emission:
        """The lines at one report."""
        block = self.expand_block(block_of(report))
        return Emission(report.time, report.ordinal, block.diff, block.rows)

    def resume(self, previous: Report) -> None:
        """Take a report as shown already: the next one is compared with it.

        Of a window with levels, hand over the last report of each level, in order.
        """
        self.expand_block(block_of(previous))

    def standing(self, report: Report) -> Emission:
        """The whole answer after a report, all +1: of a window with levels, the last answer of each.

        For queries that show differences: they alone remember answers.
        """
        self.resume(report)
        parts = [self._shown[level].cells.rows for level in sorted(self._shown)]
        rows = concat(parts) if parts else empty(output_schema(self.query))
        if parts and self._window is not None:
            level = np.repeat(sorted(self._shown), [part.num_rows for part in parts])
            schema = output_schema(self.query)
            rows = pa.RecordBatch.from_arrays([pa.array(level, pa.int64()), *rows.columns], schema=schema)
        return Emission(report.time, report.ordinal, np.ones(rows.num_rows, np.int8), rows)

    def expand_moves(self, time: Instant, ordinal: int, moved: Moved) -> Emission:
        """The lines at a report, from what moved: what did not is in both answers.

        Where ends are known, of equal rows those stay that end last.
        """
        now, before = self._placed(moved.entered, moved.until), self._placed(moved.left, None)
        lines = changes(self.query.emit, now, before)
        until = None
        if moved.until is not None:
            until = np.full(len(lines.diff), time, np.int64)
            until[lines.diff > 0] = int64_view(now.place[-1])[lines.entered]
        return Emission(time, ordinal, lines.diff, lines.rows, until)

    def lifetimes(self, time: Instant, ordinal: int, moved: Moved) -> Emission:
        """All rows that have entered at a report, with their ends; nothing is said of those that leave."""
        placed = self._placed(moved.entered, moved.until)
        ones = np.ones(len(placed.cells), np.int8)
        return Emission(time, ordinal, ones, placed.cells.rows, int64_view(placed.place[-1]))

    def _placed(self, rows: pa.RecordBatch, until: Ints | None) -> Placed:
        """The answer's rows of one report, in order; ends come last among what they are placed by."""
        placed = answer(self.query.relation, Cells(np.zeros(rows.num_rows, np.int64), rows), self.faults)
        if until is not None:
            placed = Placed(placed.cells, [*placed.place, pa.array(until)])
        return placed.in_order()

    def expand_block(self, reports: Reports) -> Emissions:
        """The lines at many reports, in order."""
        moments, answers = self._answers(reports)
        if self.query.emit is Emit.RSTREAM:
            lines = Lines(answers.cells.of, np.ones(len(answers.cells), np.int8), answers.cells.rows)
        else:
            lines = self._differences(moments, answers)
        return self._emissions(moments, lines, len(reports))

    def _answers(self, reports: Reports) -> tuple[Moments, Placed]:
        """The moments of a block (one per level that is due) and their answers in order."""
        of, rows = reports.of, reports.rows
        moments = Moments(reports.times, reports.ordinals, np.zeros(len(reports), np.int64))
        if self._window is not None:
            moments = by_level(moments, self._window)
            width = len(self._window.levels)
            level = int64_view(rows.column(0))
            of = np.searchsorted(moments.reports() * width + moments.levels, of * width + level)
            rows = pa.RecordBatch.from_arrays(rows.columns[1:], names=rows.schema.names[1:])
        return moments, answer(self.query.relation, Cells(of, rows), self.faults).in_order()

    def _differences(self, moments: Moments, answers: Placed) -> Lines:
        now, before = answers, self._moved_on(moments, answers)
        self._remember(moments, answers)
        return changes(self.query.emit, now, before)

    def _moved_on(self, moments: Moments, answers: Placed) -> Placed:
        """Every answer at the next moment of its level; what was shown before the block at the first one."""
        following = np.full(len(moments), -1, np.int64)
        parts: list[Placed] = []
        for level in np.unique(moments.levels).tolist():
            own = np.flatnonzero(moments.levels == level)
            following[own[:-1]] = own[1:]
            if level in self._shown:
                shown = self._shown[level]
                cells = Cells(np.full(len(shown.cells), own[0], np.int64), shown.cells.rows)
                parts.append(Placed(cells, shown.place))
        goes_on = np.flatnonzero(following[answers.cells.of] >= 0)
        moved = answers.take(goes_on)
        parts.append(Placed(Cells(following[moved.cells.of], moved.cells.rows), moved.place))
        return _together(parts).in_order()

    def _remember(self, moments: Moments, answers: Placed) -> None:
        for level in np.unique(moments.levels).tolist():
            last = np.flatnonzero(moments.levels == level)[-1]
            shown = answers.take(np.flatnonzero(answers.cells.of == last))
            cells = Cells(np.zeros(len(shown.cells), np.int64), shown.cells.rows)
            self._shown[level] = Placed(cells, shown.place)

    def _emissions(self, moments: Moments, lines: Lines, reports: int) -> Emissions:
        rows = lines.rows
        if self._window is not None:
            level = pa.array(moments.levels[lines.cell])
            schema = pa.schema([pa.field(LEVEL, pa.int64()), *rows.schema])
            rows = pa.RecordBatch.from_arrays([level, *rows.columns], schema=schema)
        return Emissions(moments.times[lines.cell], moments.ordinals[lines.cell], lines.diff, rows, reports)


def changes(emit: Emit, now: Placed, before: Placed) -> Lines:
    """What answers have beyond those before them, and what they lack, as far as it is shown; both are in order."""
    entered, left = difference(now.cells, before.cells)
    if emit is Emit.ISTREAM:
        left = np.zeros_like(left)
    if emit is Emit.DSTREAM:
        entered = np.zeros_like(entered)
    gone, come = before.cells.keep(left), now.cells.keep(entered)
    cell = np.concatenate([gone.of, come.of])
    diff = np.concatenate([np.full(len(gone), -1, np.int8), np.ones(len(come), np.int8)])
    order = np.argsort(cell, kind="stable")
    rows = concat([gone.rows, come.rows]).take(pa.array(order))
    return Lines(cell[order], diff[order], rows, entered)


def output_schema(query: Query) -> pa.Schema:
    """The columns of a query's lines."""
    level = [pa.field(LEVEL, pa.int64())] if levels_of(query) is not None else []
    return pa.schema([*level, *(pa.field(o.name, o.type.arrow) for o in query.relation.outputs)])


def report_schema(query: Query) -> pa.Schema:
    """The columns of a query's reports: group rows where it groups, output rows where it does not."""
    level = [pa.field(LEVEL, pa.int64())] if levels_of(query) is not None else []
    relation = query.relation
    if not (isinstance(relation, Select) and relation.is_grouped):
        return output_schema(query)
    return pa.schema([*level, *group_fields(relation)])


def group_fields(select: Select) -> list[pa.Field]:
    """The columns of a group row."""
    keys = [pa.field(f"key{i}", key.type.arrow) for i, key in enumerate(select.keys)]
    if yields_items(select):
        return [*keys, pa.field("item", select.aggregates[0].type.arrow), pa.field("count", pa.int64())]
    return keys + [pa.field(f"agg{i}", a.type.arrow) for i, a in enumerate(select.aggregates)]


def report_query(query: Query, emit: Emit) -> Query:
    """The query whose output rows are the rows of a query's reports: of one that groups, its group rows."""
    select = query.relation
    if not isinstance(select, Select) or not select.is_grouped:
        return replace(query, emit=emit)
    answers = [aggregate.type for aggregate in select.aggregates]
    types = [*(key.type for key in select.keys), *([answers[0], Type.BIGINT] if yields_items(select) else answers)]
    named = zip((field.name for field in group_fields(select)), types, strict=True)
    outputs = tuple(Output(name, Field(i, name, of)) for i, (name, of) in enumerate(named))
    return replace(query, relation=replace(select, outputs=outputs, having=None, distinct=False), emit=emit)


def _together(parts: list[Placed]) -> Placed:
    if len(parts) == 1:
        return parts[0]
    of = np.concatenate([part.cells.of for part in parts])
    place = [pa.concat_arrays(columns) for columns in zip(*(part.place for part in parts), strict=True)]
    return Placed(Cells(of, concat([part.cells.rows for part in parts])), place)
