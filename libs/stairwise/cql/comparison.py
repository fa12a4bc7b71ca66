"""Comparisons of integers with DOUBLEs, which compare as the numbers they are: nothing is rounded.

The operators of an expression take two values of one type, so a comparison is spelled in those:

    x > 1.5                     x > 1                               x is a BIGINT
    x = 1.5                     never: x < −2^63
    d < 2^53 + 1                d <= 2^53                           d is a DOUBLE, and there is none between the two
    x = d                       to_double(x) = d, and x lost nothing by it
    x < d                       to_double(x) < d, or equal and x was rounded up
"""

from __future__ import annotations

import math

from stairwise.cql.coercion import is_null
from stairwise.expressions.tree import Call, Const, Expr
from stairwise.schema import Type

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LIMITS = {Type.BIGINT: (-(2**63), 2**63 - 1), Type.HUGEINT: (1 - 10**38, 10**38 - 1)}


def are_mixed(left: Expr, right: Expr) -> bool:
    """Is one of the two an integer and the other a DOUBLE?"""
    types = {left.type, right.type}
    return Type.DOUBLE in types and not types.isdisjoint(_LIMITS) and not (is_null(left) or is_null(right))


def compare_exactly(op: str, left: Expr, right: Expr) -> Expr:
    """``left op right`` where they are mixed."""
    if left.type is Type.DOUBLE:
        return compare_exactly(_MIRRORED[op], right, left)
    if isinstance(right, Const) and isinstance(right.value, float):
        return _with_double(op, left, right.value)
    if isinstance(left, Const) and isinstance(left.value, int):
        return _with_integer(_MIRRORED[op], right, left.value)
    return _over_rows(op, left, right)


def same_number(const: Const, type_: Type) -> Const | None:
    """A literal as a value of a type of numbers; None where the type has none that equals it."""
    value = const.value
    if type_ is Type.DOUBLE and isinstance(value, int):
        return Const(float(value), type_) if float(value) == value else None
    if type_ is not Type.DOUBLE and isinstance(value, float):
        least, most = _LIMITS[type_]
        return Const(int(value), type_) if value.is_integer() and least <= value <= most else None
    return Const(value, type_)


def decided(expr: Expr, holds: bool) -> Expr:
    """TRUE or FALSE for every number, and NULL for NULL."""
    least = -math.inf if expr.type is Type.DOUBLE else _LIMITS[expr.type][0]
    return _condition(">=" if holds else "<", expr, Const(least, expr.type))


def _condition(op: str, *args: Expr) -> Call:
    return Call(op, args, Type.BOOLEAN)


def _with_double(op: str, whole: Expr, double: float) -> Expr:
    least, most = _LIMITS[whole.type]
    floor = math.floor(double)
    if floor > most:
        return decided(whole, op in ("<", "<=", "<>"))
    if floor < least:
        return decided(whole, op in (">", ">=", "<>"))
    if floor == double:
        return _condition(op, whole, Const(floor, whole.type))
    if op in ("=", "<>"):
        return decided(whole, op == "<>")
    return _condition("<=" if op in ("<", "<=") else ">", whole, Const(floor, whole.type))


def _with_integer(op: str, double: Expr, whole: int) -> Expr:
    near = float(whole)
    if near == whole or op in ("=", "<>"):
        return _condition(op, double, Const(near, Type.DOUBLE)) if near == whole else decided(double, op == "<>")
    if op in ("<", "<="):
        return _condition("<=", double, Const(near if near < whole else math.nextafter(near, -math.inf), Type.DOUBLE))
    return _condition(">=", double, Const(near if near > whole else math.nextafter(near, math.inf), Type.DOUBLE))


def _over_rows(op: str, whole: Expr, double: Expr) -> Expr:
    """By the nearest DOUBLE, and where that is equal by what the integer has beyond it."""
    near = Call("to_double", (whole,), Type.DOUBLE)
    rest, zero = Call("excess", (whole,), Type.BIGINT), Const(0, Type.BIGINT)
    equal = _condition("=", near, double)
    if op not in ("=", "<>"):
        return _condition("case", equal, _condition(op, rest, zero), _condition(op, near, double))
    # Beside a NULL on the right what the left has lost must not decide: NULL AND FALSE is FALSE.
    is_whole = _condition("or", _condition("=", rest, zero), _condition("is_null", double))
    exactly = _condition("and", equal, is_whole)
    return exactly if op == "=" else _condition("not", exactly)
