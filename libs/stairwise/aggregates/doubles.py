"""SUM and AVG of DOUBLE: exact sums in limbs, rounded once at the end.

answers     SUM(x), AVG(x) for x DOUBLE; NULL where no row has a value
class       SUM distributive, AVG algebraic; subtractable
cost        update O(1) a row, lookup O(1) a group, space 8 bytes and 5 for each digit present a group
order       none
source      ``limbs``

A NaN, or infinities of both signs, make NaN; else an infinity makes that infinity. A sum of exactly zero is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs, rounding
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import Ints, float64_view, from_numpy, int64_view, validity
from stairwise.schema import Instant


@dataclass(frozen=True)
class DoubleSum:
    """SUM, or AVG where ``average`` says so."""

    average: bool

    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "double sum"
    state: ClassVar[pa.Schema] = pa.schema(
        [
            pa.field("count", pa.int64(), nullable=False),
            pa.field("sum", limbs.LIMBS, nullable=False),
        ]
    )

    @property
    def kind(self) -> Kind:
        return Kind.ALGEBRAIC if self.average else Kind.DISTRIBUTIVE

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        values, valid = float64_view(args[0]), validity(args[0])
        if valid is not None:
            values = np.where(valid, values, 0.0)
        total = limbs.Accumulator(groups)
        total.add_doubles(values, codes)
        return self._partial(grouped.count(codes, groups, valid), total)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        total = limbs.Accumulator(groups)
        total.add_lists(partials.column(1), codes)
        return self._partial(grouped.add(int64_view(partials.column(0)), codes, groups), total)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        (total,) = limbs.subtract(minuend, subtrahend, (1,))
        return self._partial(int64_view(minuend.column(0)) - int64_view(subtrahend.column(0)), total)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        count, total = int64_view(partials.column(0)), partials.column(1)
        some = count > 0
        special = limbs.specials(total)
        finite = some if special is None else some & ~special[1]
        value = rounding.mean(total, count, finite) if self.average else rounding.nearest(total)
        if special is not None:
            value = np.where(special[1], special[0], value)
        return from_numpy(value, some)

    def _partial(self, count: Ints, total: limbs.Accumulator) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([from_numpy(count), total.to_lists()], schema=self.state)
