"""What decimals, lengths of time and instants are worth, from their spelling."""

from __future__ import annotations

import datetime
from fractions import Fraction

from stairwise.cql import ast
from stairwise.schema import Duration, Instant

_UNITS = {"ms": 1, "millisecond": 1, "s": 1000, "second": 1000, "m": 60_000, "minute": 60_000}
_UNITS |= {"h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000}


def decimal(number: ast.Number) -> Fraction:
    """The decimal as written, to the digits that a DOUBLE keeps: 0.1 is a tenth, not the double next to it."""
    return Fraction(repr(float(number.text)))


def length(duration: ast.Duration) -> Duration:
    """In milliseconds."""
    unit = duration.unit.lower()
    return int(Fraction(duration.count) * _UNITS[unit if unit in _UNITS else unit.removesuffix("s")])


def rfc_3339(text: str) -> Instant:
    """Milliseconds since the epoch; what is finer is cut off."""
    since_epoch = datetime.datetime.fromisoformat(text.upper()) - datetime.datetime.fromtimestamp(0, datetime.UTC)
    return since_epoch // datetime.timedelta(milliseconds=1)


def instant(literal: ast.Instant) -> Instant:
    """The t of FROM t and UNTIL t."""
    match literal:
        case ast.Number(text=text):
            return int(text)
        case ast.String(value=text) | ast.TypedString(text=ast.String(value=text)):
            return rfc_3339(text)
