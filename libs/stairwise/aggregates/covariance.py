"""COVAR_POP, COVAR_SAMP and CORR of two columns, from exact sums of x, y, x², y² and x·y.

answers     COVAR_POP(y, x), NULL where no row has both; COVAR_SAMP(y, x), NULL below two such rows; CORR(y, x), NULL
            where one of the two does not vary
class       algebraic, subtractable
cost        update O(1) a row, lookup O(1) a group, space 8 bytes and 5 for each digit of five sums a group
order       none
source      ``limbs``

    COVAR_POP  = (n·Σxy − Σx·Σy) / n²            COVAR_SAMP = (n·Σxy − Σx·Σy) / (n·(n−1))
    CORR²      = (n·Σxy − Σx·Σy)² / ((n·Σx² − (Σx)²) · (n·Σy² − (Σy)²))

Each is an exact rational, rounded once; CORR is the square root of its rounded square, with the sign of the covariance.
Rows count in which both have a value. A NaN or an infinity among these makes the answer NaN.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.aggregates import grouped, limbs, rationals
from stairwise.aggregates.contract import Rows
from stairwise.aggregates.exact_sums import ExactSums, add_powers, add_products, numeric_terms, state_of
from stairwise.expressions.views import Bools, Ints, from_numpy, int64_view, validity
from stairwise.schema import Instant

_SUMS = ("y", "x", "yy", "xx", "yx")


class Spread(enum.Enum):
    """What is told of how two columns go together."""

    POPULATION = "COVAR_POP"
    SAMPLE = "COVAR_SAMP"
    CORRELATION = "CORR"


@dataclass(frozen=True)
class Covariance(ExactSums):
    spread: Spread

    family: ClassVar[str] = "covariance"
    state: ClassVar[pa.Schema] = state_of(*_SUMS)

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        y, x, yy, xx, yx = (limbs.Accumulator(groups) for _ in _SUMS)
        both = pc.and_(args[0].is_valid(), args[1].is_valid())
        left, right = (pc.if_else(both, column, pa.scalar(None, column.type)) for column in args)
        ys, xs = numeric_terms(left), numeric_terms(right)
        for (terms, specials), plain, squares in ((ys, y, yy), (xs, x, xx)):
            if specials is not None:
                plain.add_doubles(specials, codes)
            add_powers(terms, codes, plain, squares)
        add_products(ys[0], xs[0], codes, yx)
        return self._partial(grouped.count(codes, groups, validity(left)), y, x, yy, xx, yx)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        count = int64_view(partials.column(0))
        n = rationals.integers(count)
        y, x, yy, xx, yx = (rationals.sums(column) for column in partials.columns[1:])
        together = n * yx - y * x
        some: Bools
        match self.spread:
            case Spread.POPULATION:
                some, fraction = count > 0, together / (n * n)
            case Spread.SAMPLE:
                some, fraction = count > 1, together / (n * (n - 1))
            case Spread.CORRELATION:
                apart = (n * yy - y * y) * (n * xx - x * x)
                some, fraction = ~apart.is_zero(), together * together / apart
        wanted = some.copy()
        for column in partials.columns[1:3]:
            special = limbs.specials(column)
            if special is not None:
                wanted &= ~special[1]
                some |= special[1] & (count > (0 if self.spread is Spread.POPULATION else 1))
        groups = np.flatnonzero(wanted)
        answer = np.full(len(count), np.nan)
        answer[groups] = fraction.take(groups).to_doubles()
        if self.spread is Spread.CORRELATION:
            sign = np.array([1.0 if digits >= 0 else -1.0 for digits in together.digits])
            answer = sign * np.sqrt(answer)
        return from_numpy(answer, some)
