"""Operators and functions of values of one row, none of which is NULL.

Comparisons follow the order of values: NaN equals NaN and is above all other numbers, −0.0 equals 0.0.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from stairwise.schema import Type
from tests.oracle import calendar
from tests.oracle.values import Value, rank, to_json

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


def _round(value: float, digits: float = 0.0) -> float:
    """ROUND(x * 10^n) / 10^n; for a negative n the other way round. Beyond the range of DOUBLE nothing is rounded."""
    factor = 10.0 ** abs(digits)
    shifted = value * factor if digits >= 0 else value / factor
    if not math.isfinite(shifted):
        return value
    rounded = float(_nearest_whole(shifted))
    return float(rounded / factor if digits >= 0 else rounded * factor)


def _log(first: float, second: float | None = None) -> float:
    if second is not None:
        above, below = _ln(second), _ln(first)
        if below == 0:
            return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above)
        return above / below
    if first == 0:
        return -math.inf
    return math.nan if first < 0 else math.log10(first)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


OF_DOUBLE: dict[str, Callable[..., float]] = {
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": _round,
    "LOG": _log,
    "POWER": _power,
    "SQRT": lambda value: math.nan if value < 0 else math.sqrt(value),
    "LN": _ln,
    "EXP": _exp,
}
"""DOUBLE in, DOUBLE out."""


def _split_part(text: str, separator: str, place: int) -> str:
    parts = text.split(separator) if separator else [text]
    if place < 0:
        parts, place = parts[::-1], -place
    return parts[place - 1] if place <= len(parts) else ""


OF_STRINGS: dict[str, tuple[Type, Callable[..., Value]]] = {
    "LOWER": (Type.STRING, lambda text: _mapped(text, str.lower)),
    "UPPER": (Type.STRING, lambda text: _mapped(text, str.upper)),
    "LENGTH": (Type.BIGINT, len),
    "CONCAT": (Type.STRING, lambda *texts: "".join(texts)),
    "SUBSTRING": (Type.STRING, lambda text, place, count=None: text[place - 1 :][:count]),
    "TRIM": (Type.STRING, lambda text, characters=" ": text.strip(characters) if characters else text),
    "LTRIM": (Type.STRING, lambda text, characters=" ": text.lstrip(characters) if characters else text),
    "RTRIM": (Type.STRING, lambda text, characters=" ": text.rstrip(characters) if characters else text),
    "REPLACE": (Type.STRING, lambda text, sought, put: text.replace(sought, put) if sought else text),
    "SPLIT_PART": (Type.STRING, _split_part),
    "REGEXP_MATCH": (Type.BOOLEAN, lambda text, pattern: re.search(pattern, text) is not None),
    "STARTS_WITH": (Type.BOOLEAN, lambda text, prefix: text[: len(prefix)] == prefix),
    "ENDS_WITH": (Type.BOOLEAN, lambda text, suffix: text.endswith(suffix)),
    "CONTAINS": (Type.BOOLEAN, lambda text, sought: sought in text),
    "TO_TIMESTAMP": (Type.TIMESTAMP, calendar.read),
}
"""STRINGs and constants in, and the type of what comes out."""

OF_INSTANTS: dict[str, tuple[Type, Callable[..., Value]]] = {
    "DATE_TRUNC": (Type.TIMESTAMP, calendar.begin),
    "EXTRACT": (Type.BIGINT, calendar.part),
    "FORMAT_TIMESTAMP": (Type.STRING, calendar.written),
}
"""Instants and constants in."""

SHORTEST = {"GREATEST": -1, "LEAST": 0}
"""Of the values in order, NULLs passed over, the place of the one that is meant."""


def cast(value: Any, source: Type, target: Type) -> Value:
    """A value in another type; NULL where that has none."""
    match target:
        case Type.BIGINT:
            if isinstance(value, str):
                return within(target, int(value)) if re.fullmatch("[+-]?[0-9]+", value) else None
            if isinstance(value, float):
                return within(target, _nearest_whole(value)) if math.isfinite(value) else None
            return within(target, int(value))
        case Type.DOUBLE:
            if not isinstance(value, str):
                return float(value)
            is_number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|-?Infinity", value)
            return float(value) if is_number else None
        case Type.BOOLEAN:
            return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value != 0
        case Type.TIMESTAMP:
            if isinstance(value, str):
                return calendar.read(value)
            number = cast(value, source, Type.BIGINT)
            years = -62_135_596_800_000, 253_402_300_799_999
            return number if isinstance(number, int) and years[0] <= number <= years[1] else None
    if source is Type.TIMESTAMP:
        return calendar.written(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else _decimal_text(value)


def _decimal_text(value: float) -> str:
    """The fewest digits that read back; with an exponent below 10^-6 and from 10^10 on."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return str(to_json(value))
    digits, exponent = f"{Decimal(repr(value + 0.0)):e}".lower().split("e")
    sign, digits, place = "-" * digits.startswith("-"), digits.lstrip("-").replace(".", "").rstrip("0"), int(exponent)
    if value == 0:
        return "0"
    if not -6 <= place < 10:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'+' if place >= 0 else '-'}{abs(place)}"
    return sign + f"{Decimal(digits).scaleb(place - len(digits) + 1):f}"
