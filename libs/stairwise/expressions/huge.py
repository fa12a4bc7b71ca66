"""HUGEINT, Arrow's decimal128(38, 0), as exact vectorised integer arithmetic on its two 64-bit words.

Arrow's own decimal kernels widen the precision with every operation and refuse beyond 38 digits; here a
result stays HUGEINT, and one that has no place in 38 digits is reported as an overflow.

    word 1 (high, signed)          word 0 (low)
    |s............................|............................|      value = high * 2^64 + low
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Bools, Floats, Ints, Words

LIMIT = 10**38
"""The first magnitude that 38 digits cannot hold."""

_LIMIT_HIGH = np.uint64(LIMIT >> 64)
_LIMIT_LOW = np.uint64(LIMIT & (2**64 - 1))
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def from_int64(values: Ints) -> Words:
    """Sign-extended."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    np.right_shift(values, 63, out=words[:, 1])
    return words.view(np.uint64)


def fits_int64(words: Words) -> bool:
    """Could every value be a BIGINT?"""
    return bool(((words[:, 0].view(np.int64) >> 63) == words[:, 1].view(np.int64)).all())


def add(left: Words, right: Words) -> tuple[Words, Bools]:
    """The sum, and where it has more than 38 digits. 128 bits hold any sum of two HUGEINTs."""
    total = wrapping_add(left, right)
    return total, _out_of_range(total)


def wrapping_add(left: Words, right: Words) -> Words:
    """The sum modulo 2^128."""
    low = left[:, 0] + right[:, 0]
    carry = (low < left[:, 0]).astype(np.uint64)
    return np.stack([low, left[:, 1] + right[:, 1] + carry], axis=-1)


def shift_half(words: Words) -> Words:
    """Times 2^32, modulo 2^128."""
    low, high = words[:, 0], words[:, 1]
    return np.stack([low << _HALF, high << _HALF | low >> _HALF], axis=-1)


def negate(words: Words) -> Words:
    """Two's complement; no HUGEINT's negation overflows."""
    low = ~words[:, 0] + _ONE
    return np.stack([low, ~words[:, 1] + (low == 0).astype(np.uint64)], axis=-1)


def subtract(left: Words, right: Words) -> tuple[Words, Bools]:
    return add(left, negate(right))


def is_negative(words: Words) -> Bools:
    return words[:, 1].view(np.int64) < 0


def absolute(words: Words) -> Words:
    return np.where(is_negative(words)[:, None], negate(words), words)


def multiply(left: Words, right: Words) -> tuple[Words, Bools]:
    """The product, and where it has more than 38 digits.

    Schoolbook over four 32-bit digits: a column of the product is at most 4 * (2^32 - 1)^2 plus a carry,
    which is why each partial product is split before it is added.
    """
    negative = is_negative(left) != is_negative(right)
    a, b = halves(absolute(left)), halves(absolute(right))
    columns = [np.zeros(len(left), np.uint64) for _ in range(9)]
    for i in range(4):
        for j in range(4):
            partial = a[i] * b[j]
            columns[i + j] += partial & _LOW_HALF
            columns[i + j + 1] += partial >> _HALF
    for k in range(8):
        columns[k + 1] += columns[k] >> _HALF
        columns[k] &= _LOW_HALF
    magnitude = np.stack([columns[0] | columns[1] << _HALF, columns[2] | columns[3] << _HALF], axis=-1)
    beyond = (columns[4] | columns[5] | columns[6] | columns[7]) != 0
    overflow = beyond | _magnitude_out_of_range(magnitude)
    return np.where(negative[:, None], negate(magnitude), magnitude), overflow


def divide(left: Words, right: Words) -> tuple[Words, Words]:
    """Quotient truncated toward zero, and remainder with the sign of the dividend. No divisor may be zero."""
    dividend, divisor = absolute(left), absolute(right)
    quotient, remainder = _divide_magnitudes(dividend, divisor)
    negative = is_negative(left)
    opposite = negative != is_negative(right)
    return (
        np.where(opposite[:, None], negate(quotient), quotient),
        np.where(negative[:, None], negate(remainder), remainder),
    )


def to_double(words: Words) -> Floats:
    """The nearest DOUBLE, ties to even."""
    magnitude = absolute(words)
    high, low = magnitude[:, 1], magnitude[:, 0]
    # Below 2^63 the machine's own conversion rounds once. Above, shift so that 63 bits remain and keep what
    # falls out as a sticky last bit: the conversion then still rounds as if it saw every bit.
    large = (high != 0) | (low >> np.uint64(63) != 0)
    if not large.any():
        return words[:, 0].view(np.int64).astype(np.float64)
    shift = np.where(large, bit_length(high) + _ONE, _ZERO)
    before = np.maximum(shift, _ONE) - _ONE  # a shift by 64 is not one: shift by one less, then by one
    fallen = np.where(large, low >> before >> _ONE, low)
    lifted = np.where(large, high << (np.uint64(63) - before), _ZERO)
    lost = large & (fallen << before << _ONE != low)
    kept = lifted | fallen | lost.astype(np.uint64)
    value = np.ldexp(kept.view(np.int64).astype(np.float64), shift.astype(np.int32))
    return np.asarray(np.where(is_negative(words), -value, value))


def halves(words: Words) -> list[Words]:
    """The four 32-bit digits of magnitudes, the lowest first."""
    low, high = words[:, 0], words[:, 1]
    return [low & _LOW_HALF, low >> _HALF, high & _LOW_HALF, high >> _HALF]


def bit_length(values: Words) -> Words:
    """The number of bits that each value needs: 0 for 0, 64 for 2^63 and above."""
    high, low = values >> _HALF, values & _LOW_HALF
    upper = np.frexp(high.astype(np.float64))[1]
    lower = np.frexp(low.astype(np.float64))[1]
    return np.where(high != 0, upper + 32, lower).astype(np.uint64)


def _out_of_range(words: Words) -> Bools:
    return _magnitude_out_of_range(absolute(words))


def _magnitude_out_of_range(magnitude: Words) -> Bools:
    low, high = magnitude[:, 0], magnitude[:, 1]
    return np.asarray((high > _LIMIT_HIGH) | ((high == _LIMIT_HIGH) & (low >= _LIMIT_LOW)))


def _divide_magnitudes(dividend: Words, divisor: Words) -> tuple[Words, Words]:
    """The machine divides single words; wider rows take 127 steps of shift and subtract, all together."""
    quotient, remainder = np.zeros_like(dividend), np.zeros_like(dividend)
    small = (dividend[:, 1] | divisor[:, 1]) == 0
    quotient[small, 0], remainder[small, 0] = np.divmod(dividend[small, 0], divisor[small, 0])
    if not small.all():
        quotient[~small], remainder[~small] = _long_division(dividend[~small], divisor[~small])
    return quotient, remainder


def _long_division(dividend: Words, divisor: Words) -> tuple[Words, Words]:
    q_low, q_high = np.zeros((2, len(dividend)), np.uint64)
    r_low, r_high = np.zeros((2, len(dividend)), np.uint64)
    d_low, d_high = divisor[:, 0], divisor[:, 1]
    for bit in range(126, -1, -1):
        word, place = divmod(bit, 64)
        taken = (dividend[:, word] >> np.uint64(place)) & _ONE
        r_high = r_high << _ONE | r_low >> np.uint64(63)
        r_low = r_low << _ONE | taken
        fits = (r_high > d_high) | ((r_high == d_high) & (r_low >= d_low))
        borrow = (r_low < d_low).astype(np.uint64)
        r_high = np.where(fits, r_high - d_high - borrow, r_high)
        r_low = np.where(fits, r_low - d_low, r_low)
        digit = fits.astype(np.uint64) << np.uint64(place)
        if word:
            q_high = q_high | digit
        else:
            q_low = q_low | digit
    return np.stack([q_low, q_high], axis=-1), np.stack([r_low, r_high], axis=-1)
