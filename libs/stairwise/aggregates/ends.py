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
        return self._pick(rows, args[0], None, codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        time, partition, sequence, value = partials.columns
        rows = Rows(int64_view(time), int32_view(partition), int64_view(sequence))
        return self._pick(rows, value, validity(time), codes, groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return partials.column(3)

    def _pick(self, rows: Rows, values: pa.Array, valid: Bools | None, codes: Ints, groups: int) -> pa.RecordBatch:
        index, seen = self._winners(rows, valid, codes, groups)
        # Row 0 stands in for groups without rows; with no row at all there is nothing to stand in.
        if len(values) == 0:
            return pa.RecordBatch.from_arrays([pa.nulls(groups, f.type) for f in self.state], schema=self.state)
        picked = values.take(from_numpy(index, seen))
        if pa.types.is_floating(self.dtype):
            picked = from_numpy(canonical(float64_view(picked)), validity(picked))
        columns = [
            from_numpy(rows.time[index], seen),
            from_numpy(rows.partition[index], seen),
            from_numpy(rows.sequence[index], seen),
            picked,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.state)

    def _winners(self, rows: Rows, valid: Bools | None, codes: Ints, groups: int) -> tuple[Ints, Bools | None]:
        """The winning row of each group: by time, then among those of that time by partition, then sequence."""
        contenders: Bools | None = valid
        best, seen = grouped.extreme(rows.time, contenders, codes, groups, largest=self.last)
        level = rows.time == best[codes]
        contenders = level if contenders is None else level & contenders
        for keys in (rows.partition.astype(np.int64), rows.sequence):
            at = np.flatnonzero(contenders)
            best, _ = grouped.extreme(keys[at], None, codes[at], groups, largest=self.last)
            contenders = np.zeros(len(codes), np.bool_)
            contenders[at[keys[at] == best[codes[at]]]] = True
        winner = np.zeros(groups, np.int64)
        at = np.flatnonzero(contenders)
        winner[codes[at]] = at
        return winner, seen
