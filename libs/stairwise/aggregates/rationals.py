"""Exact arithmetic over groups on numbers of any size: what the formulas of VARIANCE and REGR are written in.

A vector holds one Python integer for each group over a common power of two, or a ratio of two such vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.aggregates import ragged
from stairwise.aggregates.limbs import LIMB_BITS, NAN_LIMB, arrays
from stairwise.expressions.views import Floats, Ints

_Objects = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Exact:
    """The numbers ``digits`` · 2^``exponent``."""

    digits: _Objects
    exponent: int = 0

    def __mul__(self, other: Exact | int) -> Exact:
        if isinstance(other, int):
            return Exact(self.digits * other, self.exponent)
        return Exact(self.digits * other.digits, self.exponent + other.exponent)

    def __add__(self, other: Exact | int) -> Exact:
        if isinstance(other, int):
            other = Exact(np.full(len(self.digits), other, object))
        low = min(self.exponent, other.exponent)
        return Exact(self._at(low) + other._at(low), low)

    def __sub__(self, other: Exact | int) -> Exact:
        return self + other * -1 if isinstance(other, Exact) else self + -other

    def __truediv__(self, other: Exact) -> Ratio:
        return Ratio(self, other)

    def take(self, groups: Ints) -> Exact:
        return Exact(self.digits[groups], self.exponent)

    def is_zero(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.digits == 0, np.bool_)

    def _at(self, exponent: int) -> _Objects:
        return self.digits << (self.exponent - exponent) if self.exponent > exponent else self.digits


@dataclass(frozen=True)
class Ratio:
    numerator: Exact
    denominator: Exact

    def take(self, groups: Ints) -> Ratio:
        return Ratio(self.numerator.take(groups), self.denominator.take(groups))

    def to_doubles(self) -> Floats:
        """The nearest double to each, an infinity beyond their range. No denominator may be zero."""
        exponent = self.numerator.exponent - self.denominator.exponent
        above = self.numerator.digits << max(exponent, 0)
        below = self.denominator.digits << max(-exponent, 0)
        try:
            return np.asarray(above / below, np.float64)  # Python divides integers with a single rounding
        except OverflowError:
            return np.array([_divide(a, b) for a, b in zip(above, below, strict=True)], np.float64)


def integers(values: Ints) -> Exact:
    return Exact(values.astype(object))


def sums(column: pa.ListArray) -> Exact:
    """The finite sums of a column of limbs."""
    offsets, entries = ragged.read(column)
    digits = np.zeros(len(column), object)
    limb, digit = arrays(entries)
    owner = ragged.owners(offsets)
    finite = limb[limb < NAN_LIMB]
    if len(finite) == 0:
        return Exact(digits)
    low, high = int(finite.min()), int(finite.max())
    for place in range(high, low - 1, -1):
        here = limb == place
        digits = digits << LIMB_BITS
        digits[owner[here]] += digit[here].astype(object)
    return Exact(digits, LIMB_BITS * low)


def _divide(above: Any, below: Any) -> float:
    try:
        return float(above / below)
    except OverflowError:
        return float("inf") if (above > 0) == (below > 0) else float("-inf")
