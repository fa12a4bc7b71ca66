"""One DISTINCT query out of its signature's appearances: its whole set, or only what changed.

                       rear k−1   rear k              front k−1   front k
    log  ──────────────────┼─────────┼─────────────────────┼─────────┼──────▶ time
    entered at k                                            ├─ here ──┤       if the value was not in the last set:
                                                                              it appeared before at or below rear k−1
    left at k               ├─ here ──┤                                       if it has not appeared again by front k

    answers        RSTREAM, ISTREAM, DSTREAM and CHANGES of one query
    update         changes: O(appearances between the two fronts and between the two rears), whatever the set's size
    lookup         the whole set: O(its suffix of the log)
    space          the time of the last report
    order          blocks in order, each once
    from           seed 000 section 4; seed 002 section 4 for what the three streams show

Both appearances are looked at once in their life for each query, so nothing is compared with the answer before. Only
a window that slides by more than its range has answers that do not overlap: those are compared as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Emit, Query, Select, levels_of
from stairwise.distinct.operator import Appearances
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.due import Frame, frames_of
from stairwise.operators.roster import due_at, own_times, windows_of
from stairwise.reports.answers import ranked
from stairwise.reports.blocks import Reports
from stairwise.reports.contract import Life
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import Expansion, output_schema
from stairwise.schema import Instant
from stairwise.windows.schedule import report_grids


@dataclass(frozen=True)
class _Lines:
    """Lines of one level: their times, diffs and the numbers of their values."""

    time: Ints
    diff: Ints
    key: Ints


class DistinctExpansion:
    """What one query shows of its signature's appearances."""

    def __init__(self, query: Query, life: Life) -> None:
        assert isinstance(query.relation, Select)
        (window,) = windows_of(query)
        self.life = life
        self.query = query
        self.faults = Faults()
        self._frames = frames_of(window)
        self._grids = report_grids(window)
        self._has_levels = levels_of(query) is not None
        self._schema = output_schema(query)
        self._last: list[Instant | None] = [None] * len(self._frames)
        """By level, the time of its last report."""
        overlaps = all(frame.range >= frame.slide for frame in self._frames)
        self._whole = None if overlaps or query.emit is Emit.RSTREAM else Expansion(query)
        """Compares whole answers, where they do not overlap."""

    def expand(self, block: Appearances) -> Emissions | None:
        """Its lines; None where it is not due."""
        if self._whole is not None:
            whole = self.reports(block)
            return None if whole is None else self._whole.expand_block(whole)
        due = self._due(block)
        reports = _together(due)
        if not len(reports):
            return None
        differs = self.query.emit is not Emit.RSTREAM
        found = [
            self._changes(block, level, own) if differs else self._answers(block, frame, own)
            for level, (frame, own) in enumerate(zip(self._frames, due, strict=True))
        ]
        return self._in_order(block, found, len(reports))

    def expand_held(self, block: Appearances, times: Ints) -> Emissions | None:
        """Its lines at some of its report times in a run that a block begins."""
        return self.expand(self.held(block, times))

    def held(self, block: Appearances, times: Ints) -> Appearances:
        return block.held(times)

    def is_due(self, block: Appearances) -> bool:
        """Does the query report at any time of a block?"""
        return any(len(own) for own in self._due(block))

    def reports(self, block: Appearances) -> Reports | None:
        """Its own reports, as if it had been evaluated alone."""
        due = self._due(block)
        times = _together(due)
        if not len(times):
            return None
        found = [self._answers(block, frame, own) for frame, own in zip(self._frames, due, strict=True)]
        lines = self._in_order(block, found, len(times))
        offsets = np.append(np.searchsorted(lines.times, times, side="left"), len(lines.times))
        return Reports(self.query.name, times, np.zeros(len(times), np.int64), offsets, lines.rows)

    def _due(self, block: Appearances) -> list[Ints]:
        """When each of its levels reports."""
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        return [due_at(frame, times) for frame in self._frames]

    def _bounds(self, frame: Frame, times: Ints) -> tuple[Ints, Ints]:
        """Rears and fronts; below the horizon nothing is seen."""
        fronts = times - frame.lag
        return np.maximum(fronts - frame.range, self.life.horizon), fronts

    def _answers(self, block: Appearances, frame: Frame, times: Ints) -> _Lines:
        """The whole set at each time."""
        of, at = block.showing(*self._bounds(frame, times))
        return _Lines(times[of], np.ones(len(at), np.int64), block.key[at])

    def _changes(self, block: Appearances, level: int, times: Ints) -> _Lines:
        """What entered and left at each time, as far as the query shows it."""
        frame, last = self._frames[level], self._last[level]
        if not len(times):
            return _Lines(times, times, times)
        self._last[level] = int(times[-1])
        parts: list[_Lines] = []
        if last is None:
            if self.query.emit is not Emit.DSTREAM:
                parts.append(self._answers(block, frame, times[:1]))
            compared = times
        else:
            compared = np.concatenate(([last], times))
        rears, fronts = self._bounds(frame, compared)
        if self.query.emit is not Emit.DSTREAM:
            parts.append(_entered(block, compared, rears, fronts, self.life.horizon))
        if self.query.emit is not Emit.ISTREAM:
            parts.append(_left(block, compared, rears, fronts))
        return _Lines(*(np.concatenate(column) for column in zip(*(vars(p).values() for p in parts), strict=True)))

    def _in_order(self, block: Appearances, found: list[_Lines], reports: int) -> Emissions:
        time = np.concatenate([lines.time for lines in found])
        diff = np.concatenate([lines.diff for lines in found])
        key = np.concatenate([lines.key for lines in found])
        level = np.repeat(np.arange(len(found)), [len(lines.time) for lines in found])
        index = pa.array(key)
        columns = [values.take(index) for values in block.values]
        order = np.lexsort([ranked(columns, len(key)), diff, level, time])
        at = pa.array(order)
        columns = [column.take(at) for column in columns]
        if self._has_levels:
            columns = [pa.array(level[order]), *columns]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return Emissions(time[order], np.zeros(len(order), np.int64), diff[order].astype(np.int8), rows, reports)


def _together(due: list[Ints]) -> Ints:
    """The times at which any level reports."""
    return due[0] if len(due) == 1 else np.unique(np.concatenate(due))


def _entered(block: Appearances, times: Ints, rears: Ints, fronts: Ints, horizon: Instant) -> _Lines:
    """Values that a report has and the one before had not: each stands at its first appearance between the two."""
    start, stop = np.searchsorted(block.time, [max(int(fronts[0]), horizon), int(fronts[-1])], side="right")
    at = np.arange(start, stop)
    report = np.searchsorted(fronts, block.time[at], side="left")
    enters = block.previous[at] <= rears[report - 1]
    at, report = at[enters], report[enters]
    return _Lines(times[report], np.ones(len(at), np.int64), block.key[at])


def _left(block: Appearances, times: Ints, rears: Ints, fronts: Ints) -> _Lines:
    """Values that a report lacks and the one before had: their last appearance fell behind its rear."""
    start, stop = np.searchsorted(block.time, [int(rears[0]), int(rears[-1])], side="right")
    at = np.arange(start, stop)
    report = np.searchsorted(rears, block.time[at], side="left")
    leaves = block.following[at] > fronts[report]
    at, report = at[leaves], report[leaves]
    return _Lines(times[report], np.full(len(at), -1, np.int64), block.key[at])
