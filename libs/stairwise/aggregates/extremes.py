"""MIN and MAX of any type, by the order of results.

answers     MIN(x), MAX(x); NULL where no row has a value
class       distributive, not subtractable
cost        update O(1) a row (strings: a dictionary of the batch is sorted), lookup O(1), space one value a group
order       none
source      seed 001 section 2.2.1

Strings compare by UTF-8 bytes, FALSE is less than TRUE, NaN is the greatest DOUBLE, and −0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Ints
from stairwise.schema import Instant


@dataclass(frozen=True)
class Extreme:
    """MIN, or MAX where ``largest`` says so, of a column of Arrow type ``dtype``."""

    dtype: pa.DataType
    largest: bool

    kind: ClassVar[Kind] = Kind.DISTRIBUTIVE
    subtractable: ClassVar[bool] = False

    @property
    def family(self) -> str:
        return "max" if self.largest else "min"

    @cached_property
    def state(self) -> pa.Schema:
        return pa.schema([pa.field("value", self.dtype)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._best(args[0], codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._best(partials.column(0), codes, groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return partials.column(0)

    def _best(self, column: pa.Array, codes: Ints, groups: int) -> pa.RecordBatch:
        if len(column) == column.null_count:
            best = pa.nulls(groups, self.dtype)
        else:
            ranks = rank(column)
            keys, seen = grouped.extreme(ranks.keys, ranks.valid, codes, groups, largest=self.largest)
            best = ranks.values(keys, seen)
        return pa.RecordBatch.from_arrays([best], schema=self.state)
