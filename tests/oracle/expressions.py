"""A scalar evaluator of expression trees with SQL's NULL logic, one value at a time.

Comparisons follow the order of values: NaN equals NaN and is above all other numbers, −0.0 equals 0.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from stairwise.cql.query import Call, Const, Expr, Field, Value
from stairwise.schema import Type
from tests.oracle.values import rank

LIMITS = {Type.BIGINT: 2**63, Type.TIMESTAMP: 2**63, Type.HUGEINT: 10**38}


def evaluate(expr: Expr, row: Sequence[Value]) -> Value:
    """The value of an expression over a row; a NULL is None."""
    match expr:
        case Field(index=index):
            return row[index]
        case Const(value=value):
            return value
        case Call(op=op, args=args) if op in _LAZY:
            return _LAZY[op](args, row)
        case Call(op=op, args=args):
            values = [evaluate(arg, row) for arg in args]
            if any(value is None for value in values):
                return None
            return _within(expr.type, _STRICT[op](*values))
    raise TypeError(f"{expr!r} is no expression")


def holds(expr: Expr | None, row: Sequence[Value]) -> bool:
    """Does a condition let the row through? NULL does not."""
    return expr is None or evaluate(expr, row) is True


def _within(type_: Type, value: Value) -> Value:
    """A number in its type; NULL where it is an integer that its type cannot hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if type_ not in LIMITS:
        return float(value)
    return int(value) if -LIMITS[type_] <= value < LIMITS[type_] else None


def _and(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    values = [evaluate(arg, row) for arg in args]
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    values = [evaluate(arg, row) for arg in args]
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _is_null(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    return evaluate(args[0], row) is None


def _in(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    sought, *listed = (evaluate(arg, row) for arg in args)
    if sought is None:
        return None
    if any(rank(value) == rank(sought) for value in listed if value is not None):
        return True
    return None if any(value is None for value in listed) else False


def _case(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    *pairs, otherwise = args
    for when, then in zip(pairs[::2], pairs[1::2], strict=True):
        if evaluate(when, row) is True:
            return evaluate(then, row)
    return evaluate(otherwise, row)


def _coalesce(args: tuple[Expr, ...], row: Sequence[Value]) -> Value:
    return next((value for arg in args if (value := evaluate(arg, row)) is not None), None)


_LAZY: dict[str, Callable[[tuple[Expr, ...], Sequence[Value]], Value]] = {
    "and": _and,
    "or": _or,
    "is_null": _is_null,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
}
"""Those that look at NULL themselves; all others are NULL as soon as an argument is."""


def _divide(a: float, b: float) -> Value:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


def _remainder(a: float, b: float) -> Value:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    if math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def _like(text: str, pattern: str) -> bool:
    """% stands for any text, _ for any one character, all else for itself."""
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(character) or re.escape(character) for character in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _nearest_whole(value: float) -> int:
    """Halves go away from zero."""
    magnitude = math.floor(abs(value))
    if abs(value) - magnitude >= 0.5:
        magnitude += 1
    return magnitude if value >= 0 else -magnitude


def _whole(of: Callable[[float], int]) -> Callable[[float], Value]:
    def apply(value: float) -> Value:
        return of(value) if math.isfinite(value) else value

    return apply


def _mapped(text: str, to: Callable[[str], str]) -> str:
    """Character by character; one that would become several stays as it is."""
    return "".join(changed if len(changed := to(character)) == 1 else character for character in text)


def _sqrt(value: float) -> Value:
    return math.nan if value < 0 else math.sqrt(value)


def _ln(value: float) -> Value:
    if value == 0:
        return -math.inf
    return math.nan if value < 0 else math.log(value)


def _exp(value: float) -> Value:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


_STRICT: dict[str, Callable[..., Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "=": lambda a, b: rank(a) == rank(b),
    "<>": lambda a, b: rank(a) != rank(b),
    "<": lambda a, b: rank(a) < rank(b),
    "<=": lambda a, b: rank(a) <= rank(b),
    ">": lambda a, b: rank(a) > rank(b),
    ">=": lambda a, b: rank(a) >= rank(b),
    "not": lambda a: not a,
    "like": _like,
    "to_double": float,
    "to_hugeint": int,
    "lower": lambda text: _mapped(text, str.lower),
    "upper": lambda text: _mapped(text, str.upper),
    "length": len,
    "concat": lambda *texts: "".join(texts),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(_nearest_whole),
    "sqrt": _sqrt,
    "ln": _ln,
    "exp": _exp,
}
