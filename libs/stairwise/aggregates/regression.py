"""REGR_SLOPE and REGR_INTERCEPT: the least squares line through a group's values over time.

answers     REGR_SLOPE(y) per second and REGR_INTERCEPT(y) at report time τ, for y BIGINT or DOUBLE; NULL where the
            rows with a value do not have two different times
class       algebraic, subtractable
cost        update O(1) a row, lookup O(1) a group, space 8 bytes and 5 for each digit of four sums a group
order       none
source      seed 003 section IV.B (linear fit coefficients over window levels)

    y │         . ´  intercept: the line's height at τ
      │     . ´
      │ . ´                                      slope     = (n·Σty − Σt·Σy) / (n·Σt² − (Σt)²)
      └──────────────┼──▶ t in seconds           intercept = (Σy − slope·Σ(t−τ)) / n
                     τ

Time counts in milliseconds from the epoch in the sums, which are exact, so that slices need not agree on τ; the
shift to τ and to seconds happens in exact arithmetic at the end, followed by the only rounding. A NaN or an
infinity among the values makes the answer NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs, rationals
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.moments import numeric_terms
from stairwise.expressions.views import Ints, from_numpy, int64_view, validity
from stairwise.schema import Instant

_SUMS = ("t", "tt", "y", "ty")


@dataclass(frozen=True)
class Regression:
    """REGR_SLOPE, or REGR_INTERCEPT where ``intercept`` says so."""

    intercept: bool

    kind: ClassVar[Kind] = Kind.ALGEBRAIC
    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "regression"
    state: ClassVar[pa.Schema] = pa.schema(
        [
            pa.field("count", pa.int64(), nullable=False),
            *(pa.field(name, limbs.LIMBS, nullable=False) for name in _SUMS),
        ]
    )

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        t, tt, y, ty = (limbs.Accumulator(groups) for _ in _SUMS)
        valid = validity(args[0])
        values, specials = numeric_terms(args[0])
        times = limbs.integer_terms(rows.time if valid is None else np.where(valid, rows.time, 0))
        for index, (term, shift) in enumerate(times):
            t.add_doubles(term, codes, shift)
            tt.add_products(term, term, codes, 2 * shift)
            for other, other_shift in times[index + 1 :]:
                tt.add_products(2.0 * term, other, codes, shift + other_shift)
            for value, value_shift in values:
                ty.add_products(term, value, codes, shift + value_shift)
        for value, value_shift in values:
            y.add_doubles(value, codes, value_shift)
        if specials is not None:
            y.add_doubles(specials, codes)
        return self._partial(grouped.count(codes, groups, valid), t, tt, y, ty)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        sums = [limbs.Accumulator(groups) for _ in _SUMS]
        for accumulator, column in zip(sums, partials.columns[1:], strict=True):
            accumulator.add_lists(column, codes)
        return self._partial(grouped.add(int64_view(partials.column(0)), codes, groups), *sums)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        sums = limbs.subtract(minuend, subtrahend, range(1, 1 + len(_SUMS)))
        return self._partial(int64_view(minuend.column(0)) - int64_view(subtrahend.column(0)), *sums)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        count = int64_view(partials.column(0))
        n = rationals.integers(count)
        t, tt, y, ty = (rationals.sums(column) for column in partials.columns[1:])
        spread = n * tt - t * t
        some = ~spread.is_zero()
        special = limbs.specials(partials.column(3))
        wanted = np.flatnonzero(some if special is None else some & ~special[1])
        rise = n * ty - t * y
        fraction = rise * 1000 / spread
        if self.intercept:
            fraction = (y * spread + rise * (n * at - t)) / (n * spread)
        answer = np.full(len(count), np.nan)
        answer[wanted] = fraction.take(wanted).to_doubles()
        return from_numpy(answer, some)

    def _partial(self, count: Ints, *sums: limbs.Accumulator) -> pa.RecordBatch:
        columns = [from_numpy(count), *(accumulator.to_lists() for accumulator in sums)]
        return pa.RecordBatch.from_arrays(columns, schema=self.state)
