"""Rows by number, to be taken in any order and forgotten in any order.

append ──▶ 0 1 2 │ 3 4 │ 5 ...           chunks as they came, small ones put together
keep 1 4 5 ──▶ 0 1 2                     what is kept is numbered anew, now and then, by who refers to it

answers        the rows with some numbers
update         O(1) amortised a row
lookup         O(rows asked for)
space          the rows since they were last looked through
order          none
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints
from stairwise.state.pages import concat, empty, take

_SMALL = 4096
"""A chunk with fewer rows takes in what comes next."""


class RowLog:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema.append(pa.field("", pa.null()))
        """Behind the columns one that only counts: without any a record batch has no rows."""
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def append(self, columns: Sequence[pa.Array], count: int) -> Ints:
        """The numbers of new rows: so many, also where they have no columns."""
        numbers = np.arange(self._end, self._end + count)
        if not count:
            return numbers
        rows = pa.RecordBatch.from_arrays([*columns, pa.nulls(count)], schema=self._schema)
        if self._chunks and self._chunks[-1].num_rows < _SMALL:
            self._chunks[-1] = concat([self._chunks[-1], rows])
        else:
            self._chunks.append(rows)
            self._starts.append(self._end)
        self._end += rows.num_rows
        return numbers

    def take(self, numbers: Ints) -> pa.RecordBatch:
        return self._taken(numbers).select(self._schema.names[:-1])

    def _taken(self, numbers: Ints) -> pa.RecordBatch:
        if not self._chunks:
            return empty(self._schema)
        return take(np.array(self._starts, np.int64), self._chunks, numbers)

    def keep(self, numbers: Ints) -> Ints:
        """Forget all rows but some, whose numbers ascend; gives the new number of each old one (−1: forgotten)."""
        renumbered = np.full(self._end, -1, np.int64)
        renumbered[numbers] = np.arange(len(numbers))
        rows = self._taken(numbers)
        self._chunks, self._starts, self._end = [], [], 0
        self.append(rows.columns[:-1], rows.num_rows)
        return renumbered
