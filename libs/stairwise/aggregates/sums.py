"""SUM and AVG of BIGINT: exact 128-bit sums.

answers     SUM(x) as HUGEINT and AVG(x) as DOUBLE, for x BIGINT; NULL where no row has a value
class       SUM distributive, AVG algebraic; subtractable
cost        update O(1) a row, lookup O(1) a group, space 24 bytes a group
order       none
source      seed 001 section 2.2.1

AVG is the exact sum divided by the count, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.rounding import mean_of_words
from stairwise.expressions import huge
from stairwise.expressions.views import Ints, Words, decimal_words, from_numpy, from_words, int64_view, validity
from stairwise.schema import Instant


@dataclass(frozen=True)
class IntegerSum:
    """SUM, or AVG where ``average`` says so."""

    average: bool

    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "integer sum"
    state: ClassVar[pa.Schema] = pa.schema(
        [
            pa.field("count", pa.int64(), nullable=False),
            pa.field("sum", pa.decimal128(38, 0), nullable=False),
        ]
    )

    @property
    def kind(self) -> Kind:
        return Kind.ALGEBRAIC if self.average else Kind.DISTRIBUTIVE

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        values, valid = int64_view(args[0]), validity(args[0])
        if valid is not None:
            values = np.where(valid, values, 0)
        return self._partial(grouped.count(codes, groups, valid), grouped.add_exactly(values, codes, groups))

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        count, words = self._read(partials)
        return self._partial(grouped.add(count, codes, groups), grouped.add_words(words, codes, groups))

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        more, less = self._read(minuend), self._read(subtrahend)
        return self._partial(more[0] - less[0], huge.wrapping_add(more[1], huge.negate(less[1])))

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        some = int64_view(partials.column(0)) > 0
        if not self.average and some.all():
            return partials.column(1)
        count, words = self._read(partials)
        return from_numpy(mean_of_words(words, count, some), some) if self.average else from_words(words, some)

    def _read(self, partials: pa.RecordBatch) -> tuple[Ints, Words]:
        return int64_view(partials.column(0)), decimal_words(partials.column(1))

    def _partial(self, count: Ints, words: Words) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([from_numpy(count), from_words(words)], schema=self.state)
