"""VARIANCE and STDDEV of a sample, from the exact sums of x and x².

answers     VARIANCE(x), STDDEV(x) for x BIGINT or DOUBLE; NULL below two rows with a value
class       algebraic, subtractable
cost        update O(1) a row, lookup O(1) a group, space 8 bytes and 5 for each digit of both sums a group
order       none
source      ``limbs``

The variance is the exact rational (n·Σx² − (Σx)²) / (n·(n−1)), rounded once: nothing cancels before the rounding.
STDDEV is the square root of that rounded variance. A NaN or an infinity among the values makes both NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs, rationals
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import Floats, Ints, float64_view, from_numpy, int64_view, validity
from stairwise.schema import Instant


def numeric_terms(column: pa.Array) -> tuple[list[tuple[Floats, int]], Floats | None]:
    """A BIGINT or DOUBLE column as finite doubles and shifts that make it up, 0 for NULL, NaN and infinities.

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


@dataclass(frozen=True)
class Variance:
    """VARIANCE, or STDDEV where ``root`` says so."""

    root: bool

    kind: ClassVar[Kind] = Kind.ALGEBRAIC
    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "moments"
    state: ClassVar[pa.Schema] = pa.schema(
        [
            pa.field("count", pa.int64(), nullable=False),
            pa.field("sum", limbs.LIMBS, nullable=False),
            pa.field("squares", limbs.LIMBS, nullable=False),
        ]
    )

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        total, squares = limbs.Accumulator(groups), limbs.Accumulator(groups)
        terms, specials = numeric_terms(args[0])
        if specials is not None:
            total.add_doubles(specials, codes)
        for index, (term, shift) in enumerate(terms):
            total.add_doubles(term, codes, shift)
            squares.add_products(term, term, codes, 2 * shift)
            for other, other_shift in terms[index + 1 :]:
                squares.add_products(2.0 * term, other, codes, shift + other_shift)
        return self._partial(grouped.count(codes, groups, validity(args[0])), total, squares)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        total, squares = limbs.Accumulator(groups), limbs.Accumulator(groups)
        total.add_lists(partials.column(1), codes)
        squares.add_lists(partials.column(2), codes)
        return self._partial(grouped.add(int64_view(partials.column(0)), codes, groups), total, squares)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        sums = limbs.subtract(minuend, subtrahend, (1, 2))
        return self._partial(int64_view(minuend.column(0)) - int64_view(subtrahend.column(0)), *sums)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        count = int64_view(partials.column(0))
        some = count > 1
        special = limbs.specials(partials.column(1))
        wanted = np.flatnonzero(some if special is None else some & ~special[1])
        n = rationals.integers(count)
        total, squares = rationals.sums(partials.column(1)), rationals.sums(partials.column(2))
        fraction = (n * squares - total * total) / (n * (n - 1))
        variance = np.full(len(count), np.nan)
        variance[wanted] = fraction.take(wanted).to_doubles()
        return from_numpy(np.sqrt(variance) if self.root else variance, some)

    def _partial(self, count: Ints, total: limbs.Accumulator, squares: limbs.Accumulator) -> pa.RecordBatch:
        columns = [from_numpy(count), total.to_lists(), squares.to_lists()]
        return pa.RecordBatch.from_arrays(columns, schema=self.state)
