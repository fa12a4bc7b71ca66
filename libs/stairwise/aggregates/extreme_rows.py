"""MIN_BY and MAX_BY: what the row with the least or greatest y says of x.

answers     MIN_BY(x, y), MAX_BY(x, y); NULL where no row has a y, or where x is NULL in that row
class       distributive, not subtractable
cost        update O(1) a row (strings: a dictionary of the batch is sorted), lookup O(1), space two values and a place
            a group
order       none on arrival: of rows with equal y the first in the stream's order counts, and the partial keeps places
source      seed 001 section 2.2.1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.ends import end_rows, rows_of
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Ints, canonical, float64_view, from_numpy, int32_view, int64_view, validity
from stairwise.schema import Instant


@dataclass(frozen=True)
class ExtremeRow:
    """MIN_BY, or MAX_BY where ``largest`` says so, of columns of these Arrow types."""

    dtype: pa.DataType
    by: pa.DataType
    largest: bool

    kind: ClassVar[Kind] = Kind.DISTRIBUTIVE
    subtractable: ClassVar[bool] = False

    @property
    def family(self) -> str:
        return "row of max" if self.largest else "row of min"

    @cached_property
    def state(self) -> pa.Schema:
        """A group without rows has no ``time``."""
        places = [pa.field("time", pa.int64()), pa.field("partition", pa.int32()), pa.field("sequence", pa.int64())]
        return pa.schema([*places, pa.field("value", self.dtype), pa.field("by", self.by)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._pick(rows, args[0], args[1], codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        time, partition, sequence, value, by = partials.columns
        return self._pick(Rows(int64_view(time), int32_view(partition), int64_view(sequence)), value, by, codes, groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return partials.column(3)

    def _pick(self, rows: Rows, values: pa.Array, by: pa.Array, codes: Ints, groups: int) -> pa.RecordBatch:
        if len(by) == by.null_count:
            return pa.RecordBatch.from_arrays([pa.nulls(groups, f.type) for f in self.state], schema=self.state)
        ranks = rank(by)
        best, _ = grouped.extreme(ranks.keys, ranks.valid, codes, groups, largest=self.largest)
        contends = ranks.keys == best[codes]
        if ranks.valid is not None:
            contends &= ranks.valid
        index, seen = end_rows(rows, contends, codes, groups, last=False)
        picked = [_spelled(column.take(from_numpy(index, seen))) for column in (values, by)]
        return pa.RecordBatch.from_arrays([*rows_of(rows, index, seen), *picked], schema=self.state)


def _spelled(column: pa.Array) -> pa.Array:
    """Equal doubles alike."""
    if not pa.types.is_floating(column.type):
        return column
    return from_numpy(canonical(float64_view(column)), validity(column))
