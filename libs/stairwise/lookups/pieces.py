"""Rows in the pieces of batches that they came in; a column is put together when somebody reads it.

    pieces      │ left over │ ....... the next batch ....... │
    ints(2)     ├───────────┴────────────────────────────────┤     one array; the other columns are not touched

Structures read two or three columns of a stream's rows, and most rows wait for a moment in the reorder buffer. To
copy whole batches there, and to look at a column of them once more in every step, took a third of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.pages import concat


class Piece:
    """The rows [start, stop) of a batch. What one piece of a batch has looked at, the others need not look at again."""

    __slots__ = ("_batch", "_seen", "_start", "_stop")

    def __init__(
        self, batch: pa.RecordBatch, start: int = 0, stop: int | None = None, seen: dict[int, Ints] | None = None
    ) -> None:
        self._batch = batch
        self._start = start
        self._stop = batch.num_rows if stop is None else stop
        self._seen = {} if seen is None else seen

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def rows(self) -> pa.RecordBatch:
        is_whole = self._stop - self._start == self._batch.num_rows
        return self._batch if is_whole else self._batch.slice(self._start, self._stop - self._start)

    def column(self, index: int) -> pa.Array:
        return self._batch.column(index).slice(self._start, self._stop - self._start)

    def ints(self, index: int) -> Ints:
        """An int64 column, NULL slots included."""
        seen = self._seen.get(index)
        if seen is None:
            seen = self._seen[index] = int64_view(self._batch.column(index))
        return seen[self._start : self._stop]

    def split(self, at: int) -> tuple[Piece, Piece]:
        """The first ``at`` rows, and the others."""
        edge = self._start + at
        batch, seen = self._batch, self._seen
        return Piece(batch, self._start, edge, seen), Piece(batch, edge, self._stop, seen)

    def joined(self, other: Piece) -> Piece | None:
        """Both as one, where the other is of the same batch and follows."""
        if other._batch is not self._batch or other._start != self._stop:
            return None
        return Piece(self._batch, self._start, other._stop, self._seen)


class Settled:
    """Rows in stream order, and their times."""

    def __init__(self, pieces: Sequence[Piece], times: Ints) -> None:
        self.pieces = pieces
        self.times = times

    @staticmethod
    def of(rows: pa.RecordBatch, time_column: int) -> Settled:
        piece = Piece(rows)
        return Settled([piece], piece.ints(time_column))

    def __len__(self) -> int:
        return len(self.times)

    def ints(self, *indices: int) -> list[Ints]:
        """Columns of int64, NULL slots included. To ask for several together is cheaper."""
        if len(self.pieces) == 1:
            return [self.pieces[0].ints(index) for index in indices]
        return [np.concatenate([piece.ints(index) for piece in self.pieces]) for index in indices]

    def column(self, index: int) -> pa.Array:
        found = [piece.column(index) for piece in self.pieces]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    @cached_property
    def columns(self) -> Sequence[pa.Array]:
        """All columns, each of which is put together when it is taken out."""
        return _Columns(self)

    def filtered(self, keep: np.ndarray, time_column: int) -> Settled:
        """The rows where ``keep`` is true."""
        rows = concat([piece.rows for piece in self.pieces])
        return Settled.of(rows.filter(pa.array(keep)), time_column)


class _Columns(Sequence[pa.Array]):
    def __init__(self, settled: Settled) -> None:
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
        return self._settled.pieces[0].rows.num_columns if self._settled.pieces else 0


def joined_ints(parts: Sequence[Ints]) -> Ints:
    """At least one part."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
