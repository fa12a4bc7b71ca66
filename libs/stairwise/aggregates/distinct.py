"""COUNT(DISTINCT x) and the other aggregates over distinct values, exact: each partial is a sorted set.

answers     COUNT(DISTINCT x), and SUM, AVG, VARIANCE, STDDEV, QUANTILE of DISTINCT x
class       holistic, not subtractable
cost        update O(log n) a row, lookup O(1) a group (or that of the aggregate over the set), space one value for
            each distinct value a group
order       none
source      seed 001 section 2.2.1

NULL is not counted; −0.0 is 0.0, and all NaNs are one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.aggregates.contract import NO_ROWS, Algebra, Kind, Rows
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Ints
from stairwise.schema import Instant


@dataclass(frozen=True)
class Distinct:
    """``over`` the distinct values of a column of Arrow type ``dtype``; it must not depend on rows' places."""

    dtype: pa.DataType
    over: Algebra

    kind: ClassVar[Kind] = Kind.HOLISTIC
    subtractable: ClassVar[bool] = False
    family: ClassVar[str] = "distinct values"

    @cached_property
    def state(self) -> pa.Schema:
        return pa.schema([pa.field("values", self._sets, nullable=False)])

    @cached_property
    def _sets(self) -> pa.ListType:
        return pa.list_(pa.field("item", self.dtype, nullable=False))

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._unique(args[0], codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        offsets, values = ragged.read(partials.column(0))
        return self._unique(values, ragged.owners(offsets, codes), groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        offsets, values = ragged.read(partials.column(0))
        inner = self.over.lift([values], NO_ROWS, ragged.owners(offsets), partials.num_rows)
        return self.over.lower(inner, at)

    def _unique(self, column: pa.Array, codes: Ints, groups: int) -> pa.RecordBatch:
        ranks = rank(column)
        keys = ranks.keys
        if ranks.valid is not None:
            keys, codes = keys[ranks.valid], codes[ranks.valid]
        order = grouped.sort(keys, codes, groups)
        keys, codes = keys[order], codes[order]
        starts = grouped.run_starts(codes, keys)
        sets = ragged.build_by_owner(codes[starts], groups, ranks.values(keys[starts], None), self._sets)
        return pa.RecordBatch.from_arrays([sets], schema=self.state)
