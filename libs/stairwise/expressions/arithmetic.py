"""BIGINT, HUGEINT and DOUBLE arithmetic that answers NULL, and says so, where there is no right answer.

Each function takes two Arrow operands of one type (columns or scalars) and returns the result, already NULL
where it failed, with the failures: a mask over the rows, or one bool where both operands are scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions import huge
from stairwise.expressions.views import (
    Bools,
    Floats,
    Ints,
    Words,
    decimal_words,
    float64_view,
    from_numpy,
    from_words,
    int64_view,
    validity,
)

Operand: TypeAlias = pa.Array | pa.Scalar

INT64_MIN = -(2**63)
_WHOLE = 2.0**53
"""Below it every integer is a DOUBLE."""
_NO_FAILURE = np.zeros((), np.bool_)


def add(left: Operand, right: Operand) -> tuple[Operand, Bools]:
    """Overflow only."""
    if pa.types.is_floating(left.type):
        return pc.add(left, right), _NO_FAILURE
    if pa.types.is_decimal(left.type):
        return _huge(huge.add, left, right)
    total = pc.add(left, right)
    a, b, c = _ints(left), _ints(right), _ints(total)
    return _fail(total, ((a ^ c) & (b ^ c)) < 0)


def subtract(left: Operand, right: Operand) -> tuple[Operand, Bools]:
    """Overflow only."""
    if pa.types.is_floating(left.type):
        return pc.subtract(left, right), _NO_FAILURE
    if pa.types.is_decimal(left.type):
        return _huge(huge.subtract, left, right)
    difference = pc.subtract(left, right)
    a, b, c = _ints(left), _ints(right), _ints(difference)
    return _fail(difference, ((a ^ b) & (a ^ c)) < 0)


def multiply(left: Operand, right: Operand) -> tuple[Operand, Bools]:
    """Overflow only."""
    if pa.types.is_floating(left.type):
        return pc.multiply(left, right), _NO_FAILURE
    if pa.types.is_decimal(left.type):
        return _huge(huge.multiply, left, right)
    product = pc.multiply(left, right)
    a, b, c = _ints(left), _ints(right), _ints(product)
    if _reach(a) * _reach(b) < 2**63:
        return product, _NO_FAILURE
    # Where it overflowed, c differs from a*b by a multiple of 2^64, so c // a cannot be b, save in the one
    # case that the division itself overflows.
    divisor = np.where(a == 0, 1, a)
    with np.errstate(over="ignore"):
        wrong = (a != 0) & ((c // divisor != b) | ((a == -1) & (b == INT64_MIN)))
    return _fail(product, wrong)


def divide(left: Operand, right: Operand) -> tuple[Operand, Bools, Bools]:
    """Truncating for integers. Two masks: overflow, division by zero."""
    if pa.types.is_decimal(left.type):
        quotient, by_zero = _huge_division(left, right, remainder=False)
        return quotient, _NO_FAILURE, by_zero
    zero, divisor = _without_zero(right)
    overflow: Bools = _NO_FAILURE
    if not pa.types.is_floating(left.type):
        overflow = (_ints(left) == INT64_MIN) & (_ints(right) == -1)
        if overflow.any():
            divisor = pc.if_else(_as_arrow(overflow), pa.scalar(1, pa.int64()), divisor)
    quotient, zero = _fail(pc.divide(left, divisor), zero)
    quotient, overflow = _fail(quotient, overflow)
    return quotient, overflow, zero


def modulo(left: Operand, right: Operand) -> tuple[Operand, Bools]:
    """The remainder with the sign of the dividend; division by zero only."""
    if pa.types.is_decimal(left.type):
        return _huge_division(left, right, remainder=True)
    zero, divisor = _without_zero(right)
    if pa.types.is_floating(left.type):
        with np.errstate(invalid="ignore"):
            values = np.fmod(_floats(left), _floats(divisor))
        return _fail(_with_nulls_of(values, left, divisor), zero)
    # INT64_MIN % -1 is 0, but the machine's division traps on it: a divisor of 1 gives the same 0.
    divisor = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, pa.int64()), divisor)
    remainder = pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))
    return _fail(remainder, zero)


def negate(value: Operand) -> tuple[Operand, Bools]:
    """Overflow only: INT64_MIN has no opposite."""
    if pa.types.is_floating(value.type):
        return pc.negate(value), _NO_FAILURE
    if pa.types.is_decimal(value.type):
        return _huge(lambda a, _: (huge.negate(a), _NO_FAILURE), value, value)
    return _fail(pc.negate(value), _ints(value) == INT64_MIN)


def absolute(value: Operand) -> tuple[Operand, Bools]:
    """Overflow only: INT64_MIN has no magnitude."""
    if pa.types.is_floating(value.type):
        return pc.abs(value), _NO_FAILURE
    if pa.types.is_decimal(value.type):
        return _huge(lambda a, _: (huge.absolute(a), _NO_FAILURE), value, value)
    return _fail(pc.abs(value), _ints(value) == INT64_MIN)


def to_double(value: Operand) -> Operand:
    """The nearest DOUBLE of a BIGINT, TIMESTAMP or HUGEINT."""
    if not pa.types.is_decimal(value.type):
        return pc.cast(value, pa.float64(), safe=False)
    column = _as_column(value, 1)
    doubles = from_numpy(huge.to_double(decimal_words(column)))
    return _like(value, _null_where_null(doubles, column))


def excess(value: Operand) -> Operand:
    """1 where a BIGINT or HUGEINT is above its nearest DOUBLE, −1 where it is below it, 0 where it is one."""
    column = _as_column(value, 1)
    if pa.types.is_decimal(column.type):
        doubles = huge.to_double(decimal_words(column))
        signs = np.zeros(len(column), np.int64)
        for row in np.flatnonzero(np.abs(doubles) >= _WHOLE).tolist():
            rest = int(column[row].as_py() or 0) - int(doubles[row])
            signs[row] = (rest > 0) - (rest < 0)
    else:
        integers = int64_view(column)
        doubles = integers.astype(np.float64)
        above = doubles >= -float(INT64_MIN)  # where the nearest DOUBLE is no BIGINT
        signs = np.where(above, -1, np.sign(integers - np.where(above, 0.0, doubles).astype(np.int64)))
    return _like(value, _null_where_null(from_numpy(signs), column))


def to_bigint(value: Operand) -> tuple[Operand, Bools]:
    """The BIGINT of a whole DOUBLE; overflow where there is none, as for NaN and the infinities."""
    doubles = _floats(value)
    with np.errstate(invalid="ignore"):
        beyond = ~((doubles >= -(2.0**63)) & (doubles < 2.0**63))
    safe = pc.if_else(_as_arrow(beyond), pa.scalar(0.0), value) if beyond.any() else value
    return _fail(pc.cast(safe, pa.int64(), safe=False), beyond)


def _fail(result: Operand, wrong: Bools) -> tuple[Operand, Bools]:
    """NULL where ``wrong``; a slot that is NULL anyway has not failed."""
    if not wrong.any():
        return result, _NO_FAILURE
    if isinstance(result, pa.Scalar):
        return pa.scalar(None, result.type), wrong & result.is_valid
    valid = validity(result)
    if valid is not None:
        wrong = wrong & valid
    return pc.if_else(_as_arrow(wrong), pa.scalar(None, result.type), result), wrong


def _without_zero(divisor: Operand) -> tuple[Bools, Operand]:
    """Where the divisor is zero, and the divisor with something harmless there; a NULL one stays NULL."""
    values = _floats(divisor) if pa.types.is_floating(divisor.type) else _ints(divisor)
    zero = np.asarray(values == 0)
    if not zero.any():
        return zero, divisor
    present = np.asarray(divisor.is_valid) if isinstance(divisor, pa.Scalar) else validity(divisor)
    if present is not None:
        zero = zero & present
    return zero, pc.if_else(_as_arrow(zero), pa.scalar(1, divisor.type), divisor)


def _ints(operand: Operand) -> Ints:
    """The values behind an int64 operand; a NULL scalar shows as 0, which fails nothing that is not NULL."""
    if isinstance(operand, pa.Scalar):
        return np.asarray(operand.as_py() or 0, np.int64)
    return int64_view(operand)


def _floats(operand: Operand) -> Floats:
    if isinstance(operand, pa.Scalar):
        return np.asarray(0.0 if operand.as_py() is None else operand.as_py(), np.float64)
    return float64_view(operand)


def _reach(values: Ints) -> int:
    """The largest magnitude among the values."""
    return max(-int(values.min()), int(values.max()), 0) if values.size else 0


def _as_arrow(mask: Bools) -> Operand:
    return pa.scalar(bool(mask)) if mask.ndim == 0 else from_numpy(mask)


def _with_nulls_of(values: Floats, left: Operand, right: Operand) -> Operand:
    """``values`` as an operand that is NULL where ``left`` or ``right`` is."""
    result = pa.scalar(float(values)) if values.ndim == 0 else from_numpy(values)
    missing = pc.or_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(missing, pa.scalar(None, pa.float64()), result)


def _as_column(operand: Operand, length: int) -> pa.Array:
    return pa.repeat(operand, length) if isinstance(operand, pa.Scalar) else operand


def _like(operand: Operand, column: pa.Array) -> Operand:
    return column[0] if isinstance(operand, pa.Scalar) else column


def _null_where_null(result: pa.Array, column: pa.Array) -> pa.Array:
    if column.null_count == 0:
        return result
    return pc.if_else(column.is_null(), pa.scalar(None, result.type), result)


def _huge_columns(left: Operand, right: Operand) -> tuple[pa.Array, pa.Array, bool]:
    """Both as columns of one length, and whether that is the length of a lone scalar."""
    lone = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    length = 1 if lone else len(right if isinstance(left, pa.Scalar) else left)
    return _as_column(left, length), _as_column(right, length), lone


def _huge(
    operation: Callable[[Words, Words], tuple[Words, Bools]], left: Operand, right: Operand
) -> tuple[Operand, Bools]:
    a, b, lone = _huge_columns(left, right)
    words, wrong = operation(decimal_words(a), decimal_words(b))
    return _huge_result(words, wrong, a, b, lone)


def _huge_division(left: Operand, right: Operand, *, remainder: bool) -> tuple[Operand, Bools]:
    a, b, lone = _huge_columns(left, right)
    divisor = decimal_words(b)
    zero = (divisor[:, 0] | divisor[:, 1]) == 0
    divisor = np.where(zero[:, None], np.array([1, 0], np.uint64), divisor)
    quotient, rest = huge.divide(decimal_words(a), divisor)
    return _huge_result(rest if remainder else quotient, zero, a, b, lone)


def _huge_result(words: Words, wrong: Bools, a: pa.Array, b: pa.Array, lone: bool) -> tuple[Operand, Bools]:
    result = _null_where_null(_null_where_null(from_words(words), a), b)
    result, wrong = _fail(result, wrong)
    return (result[0], np.asarray(wrong.any())) if lone else (result, wrong)
