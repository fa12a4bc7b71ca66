"""A count and exact sums as one partial: what VARIANCE, COVAR and REGR keep of a group.

count     Σx     Σx²     Σxy     ...          int64, then ``limbs`` for each sum
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.contract import Kind
from stairwise.expressions.views import Floats, Ints, float64_view, from_numpy, int64_view, validity

Terms = list[tuple[Floats, int]]
"""Finite doubles and their shifts, which together make up a column."""


class ExactSums:
    """Combines and subtracts such partials; ``state`` says which sums there are."""

    kind: ClassVar[Kind] = Kind.ALGEBRAIC
    subtractable: ClassVar[bool] = True
    state: ClassVar[pa.Schema]

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        sums = [limbs.Accumulator(groups) for _ in partials.columns[1:]]
        for accumulator, column in zip(sums, partials.columns[1:], strict=True):
            accumulator.add_lists(column, codes)
        return self._partial(grouped.add(int64_view(partials.column(0)), codes, groups), *sums)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        sums = limbs.subtract(minuend, subtrahend, range(1, minuend.num_columns))
        return self._partial(int64_view(minuend.column(0)) - int64_view(subtrahend.column(0)), *sums)

    def _partial(self, count: Ints, *sums: limbs.Accumulator) -> pa.RecordBatch:
        columns = [from_numpy(count), *(accumulator.to_lists() for accumulator in sums)]
        return pa.RecordBatch.from_arrays(columns, schema=self.state)


def state_of(*sums: str) -> pa.Schema:
    """The columns of a partial with these sums."""
    fields = [pa.field(name, limbs.LIMBS, nullable=False) for name in sums]
    return pa.schema([pa.field("count", pa.int64(), nullable=False), *fields])


def numeric_terms(column: pa.Array) -> tuple[Terms, Floats | None]:
    """A BIGINT or DOUBLE column as terms, 0 for NULL, NaN and infinities.

    With it, if there are any, the NaNs and infinities alone, 0 elsewhere.
    """
    valid = validity(column)
    if not pa.types.is_floating(column.type):
        whole = int64_view(column)
        return limbs.integer_terms(whole if valid is None else np.where(valid, whole, 0)), None
    values = float64_view(column)
    if valid is not None:
        values = np.where(valid, values, 0.0)
    finite = np.isfinite(values)
    if finite.all():
        return [(values, 0)], None
    return [(np.where(finite, values, 0.0), 0)], np.where(finite, 0.0, values)


def add_powers(terms: Terms, codes: Ints, plain: limbs.Accumulator, squares: limbs.Accumulator) -> None:
    """Add a column to the one sum, and its squares to the other."""
    for index, (term, shift) in enumerate(terms):
        plain.add_doubles(term, codes, shift)
        squares.add_products(term, term, codes, 2 * shift)
        for other, other_shift in terms[index + 1 :]:
            squares.add_products(2.0 * term, other, codes, shift + other_shift)


def add_products(left: Terms, right: Terms, codes: Ints, products: limbs.Accumulator) -> None:
    """Add the products of two columns to a sum."""
    for term, shift in left:
        for other, other_shift in right:
            products.add_products(term, other, codes, shift + other_shift)
