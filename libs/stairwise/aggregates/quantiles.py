"""QUANTILE and MEDIAN, exact: each partial is a sorted run of all values.

answers     QUANTILE(x, q) for x BIGINT or DOUBLE; NULL where no row has a value
class       holistic, not subtractable
cost        update O(log n) a row, lookup O(1) a group, space one value a row
order       none
source      seed 001 section 2.2.1; seed 004 on quantiles over intervals

The quantile lies at place q·(n−1) of the sorted values, between two neighbours in proportion, with q as it is
written (0.1 is a tenth) and the result rounded once:

    values   10    20    40    80          q = 0.5, n = 4: place 1.5, half way from 20 to 40
    place     0     1     2     3

NaN is the greatest value. Between two infinities, or an infinity and a number, is what IEEE arithmetic says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, ragged, rounding
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.limbs import two_product
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Bools, Floats, Ints, float64_view, from_numpy, int64_view
from stairwise.schema import Instant

_LARGEST, _SMALLEST = 2.0**900, 2.0**-800
"""Between these a neighbour times a weight neither overflows nor loses bits."""
_LARGEST_DENOMINATOR = 2**30
"""A q with more digits than this (nine or so) is rare, and is computed group by group."""


@dataclass(frozen=True)
class Quantile:
    """The ``q`` quantile of a column of Arrow type ``dtype``."""

    dtype: pa.DataType
    q: Fraction

    kind: ClassVar[Kind] = Kind.HOLISTIC
    subtractable: ClassVar[bool] = False
    family: ClassVar[str] = "sorted values"

    @cached_property
    def state(self) -> pa.Schema:
        return pa.schema([pa.field("values", self._runs, nullable=False)])

    @cached_property
    def _runs(self) -> pa.ListType:
        return pa.list_(pa.field("item", self.dtype, nullable=False))

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        return self._sorted(args[0], codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        offsets, values = ragged.read(partials.column(0))
        return self._sorted(values, ragged.owners(offsets, codes), groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        offsets, values = ragged.read(partials.column(0))
        length = np.diff(offsets)
        some = length > 0
        answer = np.zeros(len(some))
        if self.q.denominator > _LARGEST_DENOMINATOR:
            for group in np.flatnonzero(some):
                answer[group] = self._one(values.slice(offsets[group], length[group]))
        elif len(values):
            # place = q·(n−1) = whole + part / denominator, in integers
            whole, part = np.divmod((length - some) * self.q.numerator, self.q.denominator)
            low = np.where(some, offsets[:-1] + whole, 0)
            answer = self._between(values, low, low + (part > 0), part, some)
        return from_numpy(answer, some)

    def _sorted(self, column: pa.Array, codes: Ints, groups: int) -> pa.RecordBatch:
        ranks = rank(column)
        keys = ranks.keys
        if ranks.valid is not None:
            keys, codes = keys[ranks.valid], codes[ranks.valid]
        order = grouped.sort(keys, codes, groups)
        runs = ragged.build_by_owner(codes, groups, ranks.values(keys[order], None), self._runs)
        return pa.RecordBatch.from_arrays([runs], schema=self.state)

    def _between(self, values: pa.Array, lower: Ints, upper: Ints, part: Ints, some: Bools) -> Floats:
        """(low · (denominator − part) + high · part) / denominator for each group that has ``some`` value."""
        numbers, is_exact = self._as_doubles(values)
        low, high = numbers[lower], numbers[upper]
        size, least = np.maximum(np.abs(low), np.abs(high)), np.minimum(np.abs(low), np.abs(high))
        with np.errstate(invalid="ignore", over="ignore"):
            answer = np.where((part == 0) | (low == high), low, low + high)
        rest = some & (part > 0) & (size < np.inf) & ((low != high) | ~is_exact)
        if not rest.any():
            return answer
        tame = rest & is_exact & (size < _LARGEST) & ((least > _SMALLEST) | ((least == 0) & (size > _SMALLEST)))

        def exactly(group: int) -> Fraction:
            one, other = (Fraction(values[at[group]].as_py()) for at in (lower, upper))
            return one + (other - one) * Fraction(int(part[group]), self.q.denominator)

        terms = [
            *two_product(np.where(tame, low, 0.0), (self.q.denominator - part).astype(np.float64)),
            *two_product(np.where(tame, high, 0.0), part.astype(np.float64)),
        ]
        divisor, exponent = np.full(len(part), self.q.denominator), np.zeros(len(part), np.int64)
        answer = np.where(tame, rounding.quotient(terms, divisor, exponent, tame, exactly), answer)
        for group in np.flatnonzero(rest & ~tame):
            answer[group] = rounding.to_double(exactly(int(group)))
        return answer

    def _as_doubles(self, values: pa.Array) -> tuple[Floats, bool]:
        """The values as doubles, and whether all of them are exactly that."""
        if pa.types.is_floating(self.dtype):
            return float64_view(values), True
        whole = int64_view(values)
        return whole.astype(np.float64), grouped.reach(whole) <= 2**53

    def _one(self, values: pa.Array) -> float:
        """The quantile of one sorted run, by the definition."""
        place = self.q * (len(values) - 1)
        low, high = values[math.floor(place)].as_py(), values[math.ceil(place)].as_py()
        if low == high or place.denominator == 1:
            return float(low)
        if not (math.isfinite(low) and math.isfinite(high)):
            return float(low + high)
        return rounding.to_double(Fraction(low) + (Fraction(high) - Fraction(low)) * (place - math.floor(place)))
