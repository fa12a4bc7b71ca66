"""The whole answers of a SELECT over a join, at any report times: its joined rows are computed once, and show while its
windows hold them.

    answers        projection, DISTINCT and groups over the join of two or more time windows
    aggregates     any
    update         O(1) a joined row
    lookup         O(joined rows that show) per report, vectorised over blocks of reports
    space          the joined rows that show now or later
    order          joined rows as they come about
    from           seed 002 section 4.2, seed 001 section 3.2 (weak non-monotonic: expiry is known beforehand)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.algebra.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.join.joined_rows import JoinedRows
from stairwise.join.pair_slices import PairSlices
from stairwise.join.probe import JoinedInputs, latest_of
from stairwise.operators.preparation import computed, row_expressions
from stairwise.reports.cells import Cells, distinct
from stairwise.schema import DAWN, Instant
from stairwise.state.row_buffer import TIME
from stairwise.windows.expiry import lifetimes
from stairwise.windows.spec import TimeWindow


@dataclass(frozen=True)
class ShownRows:
    """Joined rows as a SELECT computes them, when they show, and the time of the latest row of each."""

    begins: Ints
    ends: Ints
    latest: Ints
    columns: list[pa.Array]

    def __len__(self) -> int:
        return len(self.begins)


def shown_rows(
    select: Select, windows: Sequence[TimeWindow], found: JoinedInputs, horizon: Instant, faults: Faults
) -> ShownRows | None:
    """Those of some joined rows that the windows ever hold together, above a horizon; None where there are none."""
    begins, ends = lifetimes(windows, found.times)
    shows = begins < ends
    if horizon > DAWN:
        for time in found.times:
            shows &= time > horizon
    if not shows.any():
        return None
    columns, times = found.columns, found.times
    if not shows.all():
        mask = pa.array(shows)
        columns = [None if column is None else column.filter(mask) for column in columns]
        begins, ends, times = begins[shows], ends[shows], [time[shows] for time in times]
    made = [column for _, column in computed(select, columns, len(begins), faults)]
    return ShownRows(begins, ends, np.max(times, axis=0), made)


def shown_slices(windows: Sequence[TimeWindow], slices: PairSlices) -> ShownRows | None:
    """The same of partials by slices."""
    begins, ends = lifetimes(windows, slices.times)
    shows = begins < ends
    if not shows.any():
        return None
    mask = pa.array(shows)
    latest = latest_of([time[shows] for time in slices.times])
    return ShownRows(begins[shows], ends[shows], latest, [column.filter(mask) for column in slices.columns])


class WholeAnswers:
    """What a SELECT over two or more time windows says of its joined rows, or of their partials by group and slices."""

    def __init__(self, select: Select, *, are_sliced: bool = False) -> None:
        self._select, self._are_sliced = select, are_sliced
        self._grouping = Grouping(select) if select.is_grouped else None
        fields = [pa.field(name, expr.type.arrow) for name, expr in row_expressions(select)]
        if are_sliced:
            assert self._grouping is not None
            fields = [*fields[: len(select.keys)], *self._grouping.partials.schema]
        self._schema = pa.schema([*fields, pa.field(TIME, pa.int64())])
        self.rows = JoinedRows(self._schema)

    def add(self, shown: ShownRows) -> None:
        columns = [*shown.columns, pa.array(shown.latest)]
        self.rows.add(shown.begins, shown.ends, pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def answers(self, times: Ints) -> Cells:
        """The groups, or output rows, at each time, in order of time; times ascend."""
        of, numbers = self.rows.showing(times)
        rows = self.rows.take(numbers)
        if self._grouping is not None and self._are_sliced:
            cell, keys, codes = self._grouping.coded(len(times), of, rows)
            partials = self._grouping.partials.combine(rows.columns[len(keys) : -1], codes, len(cell))
            return self._grouping.lowered(cell, keys, partials, times)
        if self._grouping is not None:
            places = Rows(int64_view(rows.column(TIME)), np.zeros(len(of), np.int32), numbers)
            return self._grouping.groups(times, of, rows, places)
        cells = Cells(of, rows.select(self._schema.names[:-1]))
        return distinct(cells) if self._select.distinct else cells
