"""A SELECT below a set operation on the operator that queries share: made for this SELECT alone.

    the query reports at      10     12     14  15  16     18     20       at the report times of any of its windows
    the SELECT's own reports  10            ·   15         ·      20       its operator is asked for these alone
    it shows the state of     10     10     10  15  15     15     20

A SELECT shows its state as of its own last report. Groups and DISTINCT hold that report (``LastReports``). Joined rows
know from when to when they show, so that what they say at any time follows from them (``JoinedRowsShown``).

Rows at or below the query's horizon are not inserted, and the operator's reports begin with time itself: when the query
begins and ends is not the operator's concern. It skips report times that nobody asks for, and is never sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query, Select, levels_of, time_windows
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints, int64_view
from stairwise.join.operator import JoinBlock, SharedJoin
from stairwise.join.whole_answers import WholeAnswers, shown_rows
from stairwise.reports.blocks import Reports
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined, Operator
from stairwise.reports.moments import Moments
from stairwise.reports.runs import Quieting
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.pages import concat, empty, from_page, to_page
from stairwise.state.store import Store
from stairwise.windows.schedule import at_or_before, report_grids

_TIME = b"time"


class PartOperator(Operator, Quieting, Protocol):
    """A shared operator, here for one SELECT."""


class Sized(PartOperator, Protocol):
    @property
    def most_rows(self) -> int:
        """About how many rows a report has at the most."""


class Reporting(Protocol):
    """What takes a query's own reports out of an operator's blocks."""

    def reports(self, block: Any) -> Reports | None: ...


class Shown(Protocol):
    """What a SELECT says, from the blocks of its operator. Blocks are made as they are drawn."""

    faults: Faults

    def work(self, moments: Moments, blocks: Iterable[Any]) -> Ints:
        """About how many rows it takes to answer at each moment; blocks that are not drawn come again."""

    def answers(self, moments: Moments, blocks: Iterable[Any]) -> Cells: ...

    def evict(self, watermark: Instant, blocks: Iterable[Any]) -> None: ...

    def flush(self) -> None: ...


class SharedPart:
    """A SELECT on a shared operator of its own."""

    def __init__(self, select: Select, operator: PartOperator, shown: Shown) -> None:
        self.select = select
        self.operator, self._shown = operator, shown
        self.algorithm = operator.algorithm
        (self._query,) = operator.queries
        self._time_columns = {source.stream.name: source.stream.time_column for source in select.inputs}
        self._grids = [grid for source in select.inputs for grid in report_grids(source.window)]
        self._counted = operator.faults(self._query)
        """The faults that the query knows of."""
        for stream in self._query.streams:
            nothing = empty(stream.arrow_schema)
            operator.insert(Batch(stream.name, 0, nothing, np.zeros(0, np.int64), DAWN + 1, DAWN + 1))

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        if batch.stream not in self._time_columns or batch.highest <= horizon:
            return
        if batch.lowest <= horizon:
            visible = int64_view(batch.rows.column(self._time_columns[batch.stream])) > horizon
            rows, sequence = batch.rows.filter(pa.array(visible)), batch.sequence[visible]
            batch = replace(batch, rows=rows, sequence=sequence, lowest=horizon + 1)
        self.operator.insert(batch)
        self._count(faults)

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        """Nothing to do: the operator advances when it is asked."""

    def row_moments(self) -> tuple[Ints, Ints]:
        """Time windows report by the clock only."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def work(self, moments: Moments) -> Ints:
        return self._shown.work(moments, self._blocks(moments.times))

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        cells = self._shown.answers(moments, self._blocks(moments.times))
        self._count(faults)
        return cells

    def _blocks(self, times: Ints) -> Iterator[Any]:
        """What the operator says from its last report at or before the first time on, unless it was drawn already."""
        self.operator.skip(max(int(at_or_before(grid, times[:1])[0]) for grid in self._grids) - 1)
        yield from self.operator.advance(int(times[-1]))

    def _count(self, faults: Faults) -> None:
        """Tell the query of what the operator has counted since it was last told."""
        now = Faults()
        now.add(self.operator.faults(self._query))
        now.add(self._shown.faults)
        faults.add(Faults(now.overflow - self._counted.overflow, now.division - self._counted.division))
        self._counted = now

    def evict(self, watermark: Instant) -> None:
        if DAWN < watermark < DUSK:
            self._shown.evict(watermark, self._blocks(np.array([watermark])))

    def flush(self) -> None:
        self.operator.flush()
        self._shown.flush()


class LastReports:
    """Reports of groups or of DISTINCT, the last of which stands until the next."""

    def __init__(self, query: Query, operator: Sized, reporting: Reporting, store: Store, key: bytes) -> None:
        window = levels_of(query)
        self._levels = 1 if window is None else len(window.levels)
        self._operator, self._reporting = operator, reporting
        self.faults = Faults()
        """Rows are counted by the operator."""
        self._store, self._key = store, key
        page = store.get(key)
        self._last = None if page is None else _from_page(page)
        self._is_written = True

    def work(self, moments: Moments, blocks: Iterable[Any]) -> Ints:
        return np.full(len(moments), self._operator.most_rows, np.int64)

    def answers(self, moments: Moments, blocks: Iterable[Any]) -> Cells:
        found = self._drawn(blocks)
        if self._last is not None and (not found or found[0].times[0] > moments.times[0]):
            found.insert(0, self._last)
        self._hold(found)
        times = np.concatenate([reports.times for reports in found])
        rows = concat([reports.rows for reports in found])
        offsets = _end_to_end([reports.offsets for reports in found])
        if self._levels > 1:
            level, rows = int64_view(rows.column(0)), rows.select(rows.schema.names[1:])
            of = np.repeat(np.arange(len(times)), np.diff(offsets)) * self._levels + level
            offsets = np.searchsorted(of, np.arange(len(times) * self._levels + 1))
        state = np.searchsorted(times, moments.times, side="right") - 1
        state = state * self._levels + moments.levels
        start, count = offsets[state], offsets[state + 1] - offsets[state]
        if np.array_equal(start[1:], start[:-1] + count[:-1]):
            rows = rows.slice(int(start[0]), int(count.sum()))
        else:
            rows = rows.take(pa.array(expand_ranges(start, count)))
        return Cells(np.repeat(np.arange(len(moments)), count), rows)

    def _drawn(self, blocks: Iterable[Any]) -> list[Reports]:
        return [reports for block in blocks if (reports := self._reporting.reports(block)) is not None]

    def _hold(self, found: list[Reports]) -> None:
        if found and found[-1] is not self._last:
            self._last, self._is_written = found[-1].last, False

    def evict(self, watermark: Instant, blocks: Iterable[Any]) -> None:
        self._hold(self._drawn(blocks))

    def flush(self) -> None:
        if self._last is not None and not self._is_written:
            says = {_TIME: b"%d" % self._last.times[0]}
            self._store.put(self._key, to_page(self._last.rows.replace_schema_metadata(says)))
            self._is_written = True


def _from_page(page: bytes) -> Reports:
    rows = from_page(page)
    time, plain = int(rows.schema.metadata[_TIME]), rows.replace_schema_metadata(None)
    return Reports("", np.array([time]), np.zeros(1, np.int64), np.array([0, rows.num_rows]), plain)


def _end_to_end(offsets: list[Ints]) -> Ints:
    """The offsets of blocks whose rows stand one behind the other."""
    counts = np.concatenate([np.diff(own) for own in offsets])
    return np.concatenate(([0], np.cumsum(counts)))


class JoinedRowsShown:
    """Joined rows while they show."""

    def __init__(self, query: Query, operator: SharedJoin) -> None:
        select = query.relation
        assert isinstance(select, Select)
        self._select, self._windows = select, time_windows(select) or ()
        self._whole = WholeAnswers(select)
        self.faults = Faults()
        self._take([operator.history(query.name)], Faults())

    def work(self, moments: Moments, blocks: Iterable[JoinBlock]) -> Ints:
        self._take(blocks, self.faults)
        return self._whole.rows.counts(moments.times)

    def answers(self, moments: Moments, blocks: Iterable[JoinBlock]) -> Cells:
        self._take(blocks, self.faults)
        return self._whole.answers(moments.times)

    def _take(self, blocks: Iterable[JoinBlock], faults: Faults) -> None:
        for block in blocks:
            for found in block.found:
                shown = shown_rows(self._select, self._windows, found, DAWN, faults)
                if shown is not None:
                    self._whole.add(shown)

    def evict(self, watermark: Instant, blocks: Iterable[JoinBlock]) -> None:
        self._take(blocks, self.faults)
        self._whole.rows.evict(watermark)

    def flush(self) -> None:
        """Joined rows are found again from the rows of the inputs."""
