"""Joined rows with the times at which they show, by the number of their coming about.

number     0    1    2    3    4
begins     10   10   20   20   30
ends       40   30   30   60   50           at τ = 30 those show with begins ≤ 30 < ends: 0, 3 and 4

answers        which rows show at each of many report times
update         O(1) amortised a row
lookup         O(rows kept + rows that show)
space          at most twice the rows that have not expired, and a few more
order          rows are added in the order in which they came about
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints
from stairwise.schema import Instant
from stairwise.state.chains import GrowingInts
from stairwise.state.pages import concat, empty, take

_SMALL = 4096
"""A chunk with fewer rows takes in what comes next; up to so many rows are not looked through for expired ones."""


class JoinedRows:
    """The joined rows of one query that show now or later."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._came = 0
        """How many have come about: the number of the next one."""
        self._alive = 0
        """How many had not expired when they were last looked through."""
        self._hold([], np.zeros((3, 0), np.int64))

    def _hold(self, chunks: list[pa.RecordBatch], known: Ints) -> None:
        """Keep these rows alone; ``known`` are their numbers, begins and ends."""
        self._chunks = chunks
        self._starts = [0] if chunks else []
        self._numbers, self._begins, self._ends = GrowingInts(), GrowingInts(), GrowingInts()
        for column, values in zip((self._numbers, self._begins, self._ends), known, strict=True):
            column.extend(values)

    def add(self, begins: Ints, ends: Ints, rows: pa.RecordBatch) -> None:
        start = self._numbers.end
        self._numbers.extend(np.arange(self._came, self._came + len(begins)))
        self._begins.extend(begins)
        self._ends.extend(ends)
        self._came += len(begins)
        if self._chunks and self._chunks[-1].num_rows < _SMALL:
            self._chunks[-1] = concat([self._chunks[-1], rows])
        else:
            self._chunks.append(rows)
            self._starts.append(start)

    @property
    def kept(self) -> int:
        """How many rows are kept, expired ones among them."""
        return len(self._ends.kept)

    def take(self, numbers: Ints) -> pa.RecordBatch:
        """The rows with some numbers, all of them kept."""
        if not self._chunks:
            return empty(self._schema)
        return take(np.array(self._starts, np.int64), self._chunks, self._places(numbers))

    def _places(self, numbers: Ints) -> Ints:
        return np.searchsorted(self._numbers.kept, numbers)

    def begins_of(self, numbers: Ints) -> Ints:
        return self._begins.at(self._places(numbers))

    def ends_of(self, numbers: Ints) -> Ints:
        return self._ends.at(self._places(numbers))

    def counts(self, times: Ints) -> Ints:
        """How many rows show at each time; times ascend."""
        first, last = self._spans(times)
        edges = np.bincount(first, minlength=len(times) + 1) - np.bincount(last, minlength=len(times) + 1)
        counts: Ints = np.cumsum(edges)[: len(times)]
        return counts

    def showing(self, times: Ints) -> tuple[Ints, Ints]:
        """The pairs (number of the time, number of the row), by time, then row."""
        first, last = self._spans(times)
        count = np.maximum(last - first, 0)
        rows = np.repeat(self._numbers.kept, count)
        of = expand_ranges(first, count)
        if len(times) == 1:
            return of, rows
        order = np.argsort(of, kind="stable")
        return of[order], rows[order]

    def _spans(self, times: Ints) -> tuple[Ints, Ints]:
        begins, ends = self._begins.kept, self._ends.kept
        first = np.searchsorted(times, begins, side="left")
        return first, np.maximum(first, np.searchsorted(times, ends, side="left"))

    def evict(self, reached: Instant) -> None:
        """Forget the rows of which nothing shows after ``reached``, when there are as many of them as of others."""
        if self.kept <= 2 * self._alive + _SMALL:
            return
        alive = self._ends.kept > reached
        self._alive = int(np.count_nonzero(alive))
        if self.kept > 2 * self._alive + _SMALL:
            rows = concat(self._chunks).filter(pa.array(alive))
            known = np.stack([column.kept[alive] for column in (self._numbers, self._begins, self._ends)])
            self._hold([rows], known)
