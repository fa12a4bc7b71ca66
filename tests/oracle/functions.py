"""Operators and functions of values of one row, none of which is NULL.

Comparisons follow the order of values: NaN equals NaN and is above all other numbers, −0.0 equals 0.0.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

from stairwise.schema import Type
from tests.oracle.values import Value, rank

LIMITS = {Type.BIGINT: 2**63, Type.TIMESTAMP: 2**63, Type.HUGEINT: 10**38}


def within(type_: Type, value: float) -> Value:
    """A number in its type; NULL where it is an integer that its type cannot hold."""
    if type_ not in LIMITS:
        return float(value)
    return int(value) if -LIMITS[type_] <= value < LIMITS[type_] else None


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


ARITHMETIC: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
}
"""Of two BIGINTs or two DOUBLEs."""

COMPARISONS: dict[str, Callable[..., bool]] = {
    "=": lambda a, b: rank(a) == rank(b),
    "<>": lambda a, b: rank(a) != rank(b),
    "<": lambda a, b: rank(a) < rank(b),
    "<=": lambda a, b: rank(a) <= rank(b),
    ">": lambda a, b: rank(a) > rank(b),
    ">=": lambda a, b: rank(a) >= rank(b),
}


def like(text: str, pattern: str) -> bool:
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


def _whole(of: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(of(value)) if math.isfinite(value) else value


def _mapped(text: str, to: Callable[[str], str]) -> str:
    """Character by character; one that would become several stays as it is."""
    return "".join(changed if len(changed := to(character)) == 1 else character for character in text)


def _ln(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.nan if value < 0 else math.log(value)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


OF_DOUBLE: dict[str, Callable[[float], float]] = {
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": _whole(_nearest_whole),
    "SQRT": lambda value: math.nan if value < 0 else math.sqrt(value),
    "LN": _ln,
    "EXP": _exp,
}
"""DOUBLE in, DOUBLE out."""

OF_STRINGS: dict[str, tuple[Type, Callable[..., Value]]] = {
    "LOWER": (Type.STRING, lambda text: _mapped(text, str.lower)),
    "UPPER": (Type.STRING, lambda text: _mapped(text, str.upper)),
    "LENGTH": (Type.BIGINT, len),
    "CONCAT": (Type.STRING, lambda *texts: "".join(texts)),
}
"""STRINGs in, and the type of what comes out."""
