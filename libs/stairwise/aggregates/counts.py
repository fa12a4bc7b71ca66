"""COUNT(*) and COUNT(x): how many rows, or how many with a value.

answers     COUNT(*), COUNT(x)
class       distributive, subtractable
cost        update O(1) a row, lookup O(1) a group, space one integer a group
order       none
source      seed 001 section 2.2.1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import Ints, from_numpy, int64_view, validity
from stairwise.schema import Instant


@dataclass(frozen=True)
class Count:
    kind: ClassVar[Kind] = Kind.DISTRIBUTIVE
    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "count"
    state: ClassVar[pa.Schema] = pa.schema([pa.field("count", pa.int64(), nullable=False)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        valid = validity(args[0]) if args else None
        return self._partial(grouped.count(codes, groups, valid))

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._partial(grouped.add(int64_view(partials.column(0)), codes, groups))

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        return self._partial(int64_view(minuend.column(0)) - int64_view(subtrahend.column(0)))

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return partials.column(0)

    def _partial(self, count: Ints) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([from_numpy(count)], schema=self.state)
