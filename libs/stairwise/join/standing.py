"""The joined rows of a signature that any query shows, report by report: what a published report of a join holds.

    at τ               left, last report 8        right, last report 9
    RANGE 4 SLIDE 2    (4, 8]                     RANGE 3 SLIDE 3    (6, 9]      one query
    RANGE 2 SLIDE 4    (6, 8]                     RANGE 9 SLIDE 9    (0, 9]      another that is due, too
    asked for          (4, 8]                     (0, 9]                         the widest of each input

    answers        for many report times at once, the joined rows whose rows lie in the widest windows that are due
    update         O(1) a joined row
    lookup         O(joined rows that can show), and per report time one vectorised pass over the queries
    space          the joined rows that show now or later
    order          joined rows as they come about
    from           seed 000 section 4 (the widest window's results hold those of the others)

Whoever reads takes its own rows by their times (``join_taking``). They are a part of what is held here: more than the
widest query shows there is only where one query has the wider window on one input, and another on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.join.joined_rows import JoinedRows
from stairwise.join.probe import JoinedInputs, Stay
from stairwise.operators.due import CELLS, Course
from stairwise.reports.contract import Life
from stairwise.reports.moments import Moments, pieces
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.windows.expiry import bounded
from stairwise.windows.spec import TimeWindow

WORK = 200_000
"""About how many joined rows all reports of a piece show together."""


class StandingJoins:
    """The joined rows that the widest windows of some queries can hold."""

    def __init__(
        self, schema: pa.Schema, stays: Sequence[Stay], asking: Iterable[tuple[Sequence[TimeWindow], Life]]
    ) -> None:
        """``schema``: a column of times for each input, then the columns asked for."""
        self._inputs = len(stays)
        self._stays = stays
        self._schema = schema
        self._rows = JoinedRows(schema)
        self._asking = _Asking(asking, len(stays))

    def add(self, found: JoinedInputs) -> None:
        if not len(found):
            return
        begins = np.max([t + stay.begins for t, stay in zip(found.times, self._stays, strict=True)], axis=0)
        ends = np.min([t + stay.ends for t, stay in zip(found.times, self._stays, strict=True)], axis=0)
        columns = [*map(pa.array, found.times), *(column for column in found.columns if column is not None)]
        self._rows.add(begins, ends, pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def reports(self, times: Ints, course: Course, *, sealed: bool) -> Iterator[tuple[Instant, pa.RecordBatch]]:
        """What any query that is due asks for, at each time."""
        for piece in pieces(Moments.of(times), self._rows.counts(times), WORK):
            yield from self._piece(times[piece], course, sealed=sealed)
        self._rows.evict(int(times[-1]))

    def _piece(self, times: Ints, course: Course, *, sealed: bool) -> Iterator[tuple[Instant, pa.RecordBatch]]:
        of, numbers = self._rows.showing(times)
        rows = self._rows.take(numbers)
        rears, fronts = self._asking.bounds(times, course, sealed=sealed)
        asked = np.ones(len(of), bool)
        for i in range(self._inputs):
            time = int64_view(rows.column(i))
            asked &= (time > rears[of, i]) & (time <= fronts[of, i])
        if not asked.all():
            of, rows = of[asked], rows.filter(pa.array(asked))
        edges = np.searchsorted(of, np.arange(len(times) + 1)).tolist()
        for i, time in enumerate(times.tolist()):
            yield time, rows.slice(edges[i], edges[i + 1] - edges[i])


class _Asking:
    """The windows of some queries, and when they are due, as arrays: a row for each query, a column for each input."""

    def __init__(self, asking: Iterable[tuple[Sequence[TimeWindow], Life]], inputs: int) -> None:
        distinct = sorted({(*map(_numbers, windows), tuple(life)) for windows, life in asking})
        windows = np.array([query[:-1] for query in distinct], np.int64).reshape(len(distinct), inputs, 4)
        self._slide, self._offset, self._lag, self._range = (windows[:, :, i] for i in range(4))
        lives = np.array([query[-1] for query in distinct], np.int64).reshape(len(distinct), 3)
        self._after, self._until, self._horizon = lives.T

    def bounds(self, times: Ints, course: Course, *, sealed: bool) -> tuple[Ints, Ints]:
        """For each time and input, the lowest rear and the highest front of the queries that are due."""
        begin, until = self._lives(course, sealed=sealed)
        rows = max(1, CELLS // max(1, self._slide.size))
        rears, fronts = [], []
        for start in range(0, len(times), rows):
            since = (times[start : start + rows, None, None] - self._offset) % self._slide
            front = times[start : start + rows, None, None] - since - self._lag
            rear = np.maximum(front - self._range, self._horizon[:, None])
            is_due = self._is_due(times[start : start + rows], since, begin, until)[:, :, None]
            rears.append(np.where(is_due, rear, DUSK).min(axis=1, initial=DUSK))
            fronts.append(np.where(is_due, front, DAWN).max(axis=1, initial=DAWN))
        return np.concatenate(rears), np.concatenate(fronts)

    def _is_due(self, times: Ints, since: Ints, begin: Ints, until: Ints) -> Bools:
        """For each time and query; ``since``: how long ago each of its windows reported."""
        at = times[:, None]
        is_due: Bools = (since == 0).any(axis=2) & (at > begin) & (at <= until)
        return is_due

    def _lives(self, course: Course, *, sealed: bool) -> tuple[Ints, Ints]:
        """After when and until when each query reports, as ``roster.own_times`` has it."""
        begin = np.where(self._after == DAWN, course.first_row - 1, self._after)
        if not sealed:
            return begin, self._until
        row = np.maximum(course.last_row, self._after)[:, None]
        last = (row + (self._offset - row) % self._slide).min(axis=1)
        return begin, np.minimum(self._until, last)


def _numbers(window: TimeWindow) -> tuple[int, int, int, int]:
    window = bounded(window)
    return window.slide, window.offset % window.slide, window.lag, window.range
