"""FIRST and LAST: the value of a group's first or last row in the order of the stream.

answers     FIRST(x), LAST(x); NULL where there is no row, or where that row's value is NULL
class       distributive, not subtractable
cost        update O(1) a row, lookup O(1) a group, space one value and its place a group
order       none on arrival: the partial keeps (time, partition, sequence), which is the stream's order
source      seed 001 section 2.2.1

A NULL is a value here, as for SQL's FIRST_VALUE: the answer is what the first row says, not the first row that
says something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import (
    Bools,
    Ints,
    bool_values,
    canonical,
    float64_view,
    from_numpy,
    int32_view,
    int64_view,
    validity,
)
from stairwise.schema import Instant


@dataclass(frozen=True)
class End:
    """FIRST, or LAST where ``last`` says so, of a column of Arrow type ``dtype``."""

    dtype: pa.DataType
    last: bool

    kind: ClassVar[Kind] = Kind.DISTRIBUTIVE
    subtractable: ClassVar[bool] = False

    @property
    def family(self) -> str:
        return "last" if self.last else "first"

    @cached_property
    def state(self) -> pa.Schema:
        """A group without rows has no ``time``."""
        return pa.schema(
            [
                pa.field("time", pa.int64()),
                pa.field("partition", pa.int32()),
                pa.field("sequence", pa.int64()),
                pa.field("value", self.dtype),
            ]
        )

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        """Of two arguments the second says which rows count: FILTER, where a NULL is a value."""
        counts = bool_values(args[1]) if len(args) > 1 else None
        return self._pick(rows, args[0], counts, codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        time, partition, sequence, value = partials.columns
        rows = Rows(int64_view(time), int32_view(partition), int64_view(sequence))
        return self._pick(rows, value, validity(time), codes, groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return partials.column(3)

    def _pick(self, rows: Rows, values: pa.Array, valid: Bools | None, codes: Ints, groups: int) -> pa.RecordBatch:
        index, seen = end_rows(rows, valid, codes, groups, last=self.last)
        # Row 0 stands in for groups without rows; with no row at all there is nothing to stand in.
        if len(values) == 0:
            return pa.RecordBatch.from_arrays([pa.nulls(groups, f.type) for f in self.state], schema=self.state)
        picked = values.take(from_numpy(index, seen))
        if pa.types.is_floating(self.dtype):
            picked = from_numpy(canonical(float64_view(picked)), validity(picked))
        return pa.RecordBatch.from_arrays([*rows_of(rows, index, seen), picked], schema=self.state)


def end_rows(rows: Rows, valid: Bools | None, codes: Ints, groups: int, *, last: bool) -> tuple[Ints, Bools | None]:
    """The first or last row of each group: by time, then among those of that time by partition, then sequence.

    Row 0 stands in for a group without one; which groups have one is told with it (None: all do).
    """
    contenders: Bools | None = valid
    best, seen = grouped.extreme(rows.time, contenders, codes, groups, largest=last)
    level = rows.time == best[codes]
    contenders = level if contenders is None else level & contenders
    for keys in (rows.partition.astype(np.int64), rows.sequence):
        at = np.flatnonzero(contenders)
        best, _ = grouped.extreme(keys[at], None, codes[at], groups, largest=last)
        contenders = np.zeros(len(codes), np.bool_)
        contenders[at[keys[at] == best[codes[at]]]] = True
    winner = np.zeros(groups, np.int64)
    at = np.flatnonzero(contenders)
    winner[codes[at]] = at
    return winner, seen


def rows_of(rows: Rows, index: Ints, seen: Bools | None) -> list[pa.Array]:
    """The places of some rows as columns."""
    return [from_numpy(column[index], seen) for column in (rows.time, rows.partition, rows.sequence)]
