"""Joined rows with the times at which they show, by the number of their coming about.

number     0    1    2    3    4
begins     10   10   20   20   30
ends       40   30   30   60   50           at τ = 30 those show with begins ≤ 30 < ends: 0, 3 and 4

answers        which rows show at each of many report times
update         O(1) a row
lookup         O(rows kept + rows that show)
space          the rows that have not expired, in chunks as they came; expired ones go chunk by chunk
order          rows are added in the order in which they came about
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints
from stairwise.operators.chains import GrowingInts
from stairwise.operators.join import expand_ranges
from stairwise.operators.pages import concat, empty, take
from stairwise.schema import Instant

_SMALL = 4096


class JoinedRows:
    """The joined rows of one query that show now or later."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._begins, self._ends = GrowingInts(), GrowingInts()

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self._begins.end

    def add(self, begins: Ints, ends: Ints, rows: pa.RecordBatch) -> None:
        start = self.end
        self._begins.extend(begins)
        self._ends.extend(ends)
        if self._chunks and self._chunks[-1].num_rows < _SMALL:
            self._chunks[-1] = concat([self._chunks[-1], rows])
        else:
            self._chunks.append(rows)
            self._starts.append(start)

    def take(self, numbers: Ints) -> pa.RecordBatch:
        """The rows with some numbers, all of them kept."""
        if not self._chunks:
            return empty(self._schema)
        return take(np.array(self._starts, np.int64), self._chunks, numbers)

    def begins_of(self, numbers: Ints) -> Ints:
        return self._begins.at(numbers)

    def ends_of(self, numbers: Ints) -> Ints:
        return self._ends.at(numbers)

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
        rows = np.repeat(np.arange(self._begins.first, self.end), count)
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
        """Forget chunks of which nothing shows after ``reached``."""
        while self._chunks:
            count = self._chunks[0].num_rows
            if np.any(self._ends.kept[:count] > reached):
                return
            self._begins.drop(self._starts[0] + count)
            self._ends.drop(self._starts[0] + count)
            self._chunks.pop(0)
            self._starts.pop(0)
