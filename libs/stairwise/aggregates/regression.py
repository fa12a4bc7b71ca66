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
from stairwise.aggregates.contract import Rows
from stairwise.aggregates.exact_sums import ExactSums, add_powers, add_products, numeric_terms, state_of
from stairwise.expressions.views import Ints, from_numpy, int64_view, validity
from stairwise.schema import Instant

_SUMS = ("t", "tt", "y", "ty")


@dataclass(frozen=True)
class Regression(ExactSums):
    """REGR_SLOPE, or REGR_INTERCEPT where ``intercept`` says so."""

    intercept: bool

    family: ClassVar[str] = "regression"
    state: ClassVar[pa.Schema] = state_of(*_SUMS)

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        t, tt, y, ty = (limbs.Accumulator(groups) for _ in _SUMS)
        valid = validity(args[0])
        values, specials = numeric_terms(args[0])
        times = limbs.integer_terms(rows.time if valid is None else np.where(valid, rows.time, 0))
        add_powers(times, codes, t, tt)
        add_products(times, values, codes, ty)
        for value, value_shift in values:
            y.add_doubles(value, codes, value_shift)
        if specials is not None:
            y.add_doubles(specials, codes)
        return self._partial(grouped.count(codes, groups, valid), t, tt, y, ty)

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
