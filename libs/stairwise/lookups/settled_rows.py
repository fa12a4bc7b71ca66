"""Rows in the pieces of batches that they came in; a column is put together when somebody reads it.

    pieces      │ left over │ ....... the next batch ....... │
    ints(2)     ├───────────┴────────────────────────────────┤     one array; the other columns are not touched

Structures read two or three columns of a stream's rows, and most rows wait for a moment in the reorder buffer. To
copy whole batches there, and to look at a column of them once more in every step, took a third of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints, int64_view
from stairwise.state.pages import concat


class BatchRows(NamedTuple):
    """The rows [start, stop) of a batch."""

    batch: pa.RecordBatch
    start: int
    stop: int

    @staticmethod
    def of(batch: pa.RecordBatch) -> BatchRows:
        return BatchRows(batch, 0, batch.num_rows)

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def rows(self) -> pa.RecordBatch:
        return self.batch if self.length == self.batch.num_rows else self.batch.slice(self.start, self.length)

    def column(self, index: int) -> pa.Array:
        return self.batch.column(index).slice(self.start, self.length)

    def ints(self, index: int) -> Ints:
        """An int64 column, NULL slots included."""
        return int64_view(self.batch.column(index))[self.start : self.stop]

    def joined(self, other: BatchRows) -> BatchRows | None:
        """Both as one, where the other is of the same batch and follows."""
        if other.batch is not self.batch or other.start != self.stop:
            return None
        return BatchRows(self.batch, self.start, other.stop)


class SettledRows:
    """Rows in stream order, and their times."""

    def __init__(self, pieces: Sequence[BatchRows], known: dict[int, Ints], time_column: int) -> None:
        """``known`` are columns that were looked at already, the one of times among them."""
        self.pieces = pieces
        self.times = known[time_column]
        self.known = known
        self._time_column = time_column

    @staticmethod
    def of(rows: pa.RecordBatch, time_column: int) -> SettledRows:
        return SettledRows([BatchRows.of(rows)], {time_column: int64_view(rows.column(time_column))}, time_column)

    def __len__(self) -> int:
        return len(self.times)

    def ints(self, index: int) -> Ints:
        """A column of int64, NULL slots included."""
        found = self.known.get(index)
        if found is None:
            found = self.known[index] = joined_ints([piece.ints(index) for piece in self.pieces])
        return found

    def column(self, index: int) -> pa.Array:
        found = [piece.column(index) for piece in self.pieces]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    @cached_property
    def columns(self) -> Sequence[pa.Array]:
        """All columns, each of which is put together when it is taken out."""
        return _Columns(self)

    def filtered(self, keep: np.ndarray) -> SettledRows:
        """The rows where ``keep`` is true."""
        rows = concat([piece.rows for piece in self.pieces])
        return SettledRows.of(rows.filter(pa.array(keep)), self._time_column)


class _Columns(Sequence[pa.Array]):
    def __init__(self, settled: SettledRows) -> None:
        self._settled = settled
        self._found: dict[int, pa.Array] = {}

    @overload
    def __getitem__(self, index: int) -> pa.Array: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[pa.Array]: ...
    def __getitem__(self, index: int | slice) -> pa.Array | Sequence[pa.Array]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index not in self._found:
            self._found[index] = self._settled.column(index)
        return self._found[index]

    def __len__(self) -> int:
        return self._settled.pieces[0].batch.num_columns if self._settled.pieces else 0


def joined_ints(parts: Sequence[Ints]) -> Ints:
    """At least one part."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
