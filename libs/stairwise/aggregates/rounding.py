"""From exact sums to doubles with a single rounding: the nearest double, ties to even.

A value is computed in pairs of doubles first, together with a bound on the error. Where the bound shows that
the nearest double is certain, and that is all but about one group in 2^35, it is the answer. A group too close
to a tie is computed again with Python's integers, so the fast way never decides what it cannot know.

             candidate     tie     next
    ────────────┼───────────┼───────┼────────         |value − tie| > bound: certain
                     [value ± bound]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stairwise.aggregates import ragged
from stairwise.aggregates.grouped import reach
from stairwise.aggregates.limbs import LIMB_BITS, arrays, exact, table, two_product, two_sum
from stairwise.expressions import huge
from stairwise.expressions.views import Bools, Floats, Ints, Words

_DIGITS = 4
_ERROR = 2.0**-88
"""Of pairs of doubles, and of sums cut after four digits, relative to the largest term; generously."""


class Leading(NamedTuple):
    """The first digits of balanced sums: row d of ``digits`` weighs 2^(32·(top − d)), its last is the rest's sign."""

    top: Ints
    digits: Ints


def leading(column: pa.ListArray) -> Leading:
    offsets, entries = ragged.read(column)
    groups = len(column)
    digits = np.zeros((_DIGITS + 1, groups), np.int64)
    columns = table(offsets, entries)
    if columns is not None:
        top = columns[-1][0]
        for place, found in reversed(columns):
            if top - place < _DIGITS:
                digits[top - place] = found
            else:
                digits[_DIGITS] = np.where(digits[_DIGITS] == 0, np.sign(found), digits[_DIGITS])
        return Leading(np.full(groups, top), digits)
    limb, digit = arrays(entries)
    start, end = offsets[:-1], offsets[1:] - 1
    tops = np.zeros(groups, np.int64)
    some = np.flatnonzero(end >= start)
    tops[some] = limb[end[some]]
    digits[0, some] = digit[end[some]]
    for behind in range(1, _DIGITS + 1):
        some = some[end[some] - behind >= start[some]]
        at = end[some] - behind
        gap = np.minimum(tops[some] - limb[at], _DIGITS)
        fresh = (gap < _DIGITS) | (digits[_DIGITS, some] == 0)
        digits[gap[fresh], some[fresh]] = digit[at[fresh]]
    digits[_DIGITS] = np.sign(digits[_DIGITS])
    return Leading(tops, digits)


def nearest(column: pa.ListArray) -> Floats:
    """The double nearest to each finite sum of doubles; beyond their range an infinity."""
    top, digits = leading(column)
    negative = digits[0] < 0
    first, second, third, fourth, rest = np.where(negative, -digits, digits)
    below = np.where(fourth != 0, np.sign(fourth), rest)
    # magnitude = word · 2^32 + low + (something in (0, 1) if sticky), weighing 2^(32·(top − 2))
    low = third - (below < 0)
    word = ((first << LIMB_BITS) + second - (low < 0)).view(np.uint64)
    low = (low & np.int64(2**LIMB_BITS - 1)).view(np.uint64)
    # Bring the top bits to just below bit 63, what falls off becomes one sticky bit at the end: the machine's
    # conversion to double then rounds as if it saw them all.
    width = np.minimum(np.frexp(word.astype(np.float64))[1], 64).astype(np.int64)
    left = np.clip(63 - width, 0, LIMB_BITS).astype(np.uint64)
    halved = (width == 64).astype(np.uint64)
    dropped = np.uint64(LIMB_BITS) - left
    kept = (word >> halved << left) | (low >> dropped)
    lost = (below != 0) | ((low & ((np.uint64(1) << dropped) - np.uint64(1))) != 0) | ((word & halved) != 0)
    mantissa = (kept | lost).view(np.int64).astype(np.float64)
    exponent = LIMB_BITS * (top - 1) - left.view(np.int64) + halved.view(np.int64)
    with np.errstate(over="ignore"):
        magnitude = np.ldexp(mantissa, exponent.astype(np.int32))
    return np.asarray(np.where(negative, -magnitude, magnitude))


def mean(column: pa.ListArray, count: Ints, wanted: Bools) -> Floats:
    """Sums of doubles divided by counts. Groups that are not ``wanted`` get 0."""

    def exactly(group: int) -> Fraction:
        return exact(column, group) / int(count[group])

    top, digits = leading(column)
    terms = [digits[d].astype(np.float64) * 2.0 ** (-LIMB_BITS * d) for d in range(_DIGITS)]
    return quotient(terms, count, LIMB_BITS * top, wanted, exactly, digits[_DIGITS] != 0)


def mean_of_words(words: Words, count: Ints, wanted: Bools) -> Floats:
    """128-bit integers divided by counts. Groups that are not ``wanted`` get 0."""
    whole = words[:, 0].view(np.int64)
    if huge.fits_int64(words) and reach(whole) <= 2**53:
        # Both are doubles already, and a division of doubles rounds once.
        return np.where(wanted, whole / np.where(wanted, count, 1), 0.0)
    sign = np.where(huge.is_negative(words), -1.0, 1.0)
    digits = huge.halves(huge.absolute(words))
    terms = [sign * digits[d].astype(np.float64) * 2.0 ** (LIMB_BITS * d) for d in reversed(range(4))]

    def exactly(group: int) -> Fraction:
        low, high = (int(word) for word in words[group])
        return Fraction((high << 64 | low) - (1 << 128 if high >> 63 else 0), int(count[group]))

    return quotient(terms, count, np.zeros(len(count), np.int64), wanted, exactly)


def quotient(
    terms: Sequence[Floats],
    divisor: Ints,
    exponent: Ints,
    wanted: Bools,
    exactly: Callable[[int], Fraction],
    more: Bools | None = None,
) -> Floats:
    """The double nearest to (sum of terms) / divisor · 2^exponent, for terms of moderate size.

    ``exactly`` gives that value of one group as a fraction. It is asked where the double is not certain. ``more``
    says where the terms leave something out, less than the error of pairs of doubles.
    """
    by = np.where(wanted, divisor, 1).astype(np.float64)
    total, rest, complete = np.where(wanted, terms[0], 0.0), np.zeros(len(by)), np.ones(len(by), np.bool_)
    size = np.abs(total)
    for term in terms[1:]:
        term = np.where(wanted, term, 0.0)
        total, lost = two_sum(total, term)
        rest, dropped = two_sum(rest, lost)
        complete &= dropped == 0
        size = size + np.abs(term)
    total, rest = two_sum(total, rest)  # where terms cancelled, the rest may have been the larger
    if more is not None:
        complete &= ~more
    first = total / by
    value, error = two_sum(first, _remainder(total, rest, first, by)[0] / by)
    certain = is_certain(value, error, size / by * _ERROR)
    if not (certain | (size == 0)).all():
        value, settled = _settle_ties(value, total, rest, by)
        certain |= settled & complete
    with np.errstate(over="ignore", under="ignore"):
        result = np.ldexp(value, exponent.astype(np.int32))
    certain &= (np.abs(result) > 2.0**-1000) & np.isfinite(result) & (divisor < 2**53)
    certain |= size == 0
    for group in np.flatnonzero(~certain & wanted):
        result[group] = to_double(exactly(int(group)))
    return np.where(wanted, result, 0.0)


def is_certain(value: Floats, error: Floats, bound: Floats) -> Bools:
    """Is ``value`` the double nearest to every number within ``bound`` of value + error?

    Ties lie half a unit in the last place away, or below a power of two a quarter of one.
    """
    unit = np.spacing(np.abs(value))
    off = np.abs(error)
    return np.asarray((np.abs(off - unit / 2) > bound) & (np.abs(off - unit / 4) > bound) & (off < unit / 2))


def _remainder(total: Floats, rest: Floats, value: Floats, by: Floats) -> tuple[Floats, Bools]:
    """(total + rest) − value · by for a value next to the quotient, and where that is exact."""
    product, lost = two_product(value, by)
    far, first = two_sum(total, -product)
    near, second = two_sum(far, -lost)
    remainder, third = two_sum(near, rest)
    return remainder + (first + second + third), (first == 0) & (second == 0) & (third == 0)


def _settle_ties(value: Floats, total: Floats, rest: Floats, by: Floats) -> tuple[Floats, Bools]:
    """Where the remainder is exact, compare it with half a unit: on a tie the even neighbour is the answer.

    A mean of few values and the middle of two are ties quite often, too often for the slow way.
    """
    remainder, is_exact = _remainder(total, rest, value, by)
    half = np.spacing(np.abs(value)) / 2 * by
    odd = (value.view(np.int64) & 1) == 1
    off = np.abs(remainder)
    neighbour = np.nextafter(value, np.where(remainder > 0, np.inf, -np.inf))
    power_of_two = np.abs(np.frexp(value)[0]) == 0.5  # its lower neighbour is closer: only what is well inside counts
    settled = is_exact & ((off < half / 2) | ((off <= half) & ~power_of_two))
    return np.where(settled & (off == half) & odd, neighbour, value), settled


def to_double(value: Fraction) -> float:
    """The nearest double, an infinity beyond their range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
