"""What numbers, durations and instants are worth, and the bounds within which they must lie."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from stairwise.cql import ast
from stairwise.cql.source import Source, Span
from stairwise.schema import DAWN, DUSK, Duration, Instant

BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1
MAX_DURATION: Duration = 1_000_000 * 86_400_000
"""A million days: any sum of a few of them and any instant stay inside 64 bits."""

_DIGITS_OF_BIGINT = 19
_LONGEST_COUNT = 20
"""Of a duration, in characters: what Decimal multiplies exactly."""

_UNITS: dict[str, Duration] = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "second": 1_000,
    "m": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}


MAX_SIZE = 2**50
"""A pebibyte: more than any machine has."""

_BYTES = {
    "byte": 1,
    "kb": 1_000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}


def bigint(source: Source, number: ast.Number, *, negative: bool = False) -> int:
    """The value of a whole number, inside 64 bits; ``negative`` says that a minus sign stands before it."""
    digits = number.text.lstrip("-").lstrip("0")
    if len(digits) <= _DIGITS_OF_BIGINT:
        value = int(digits or "0")
        value = -value if negative or number.text.startswith("-") else value
        if BIGINT_MIN <= value <= BIGINT_MAX:
            return value
    raise source.error(
        number.span,
        "this number does not fit into 64 bits",
        expected=f"a whole number from {BIGINT_MIN} to {BIGINT_MAX}",
        hint="write it with a fraction, as 1.0e20, to have a DOUBLE",
    )


def double(source: Source, number: ast.Number) -> float:
    value = float(number.text)
    if abs(value) == float("inf"):
        raise source.error(number.span, "this number is too large for a DOUBLE", expected="less than 1.8e308")
    return value


def count(source: Source, number: ast.Number, what: str, most: int) -> int:
    """A whole number from 1 to ``most``."""
    value = bigint(source, number)
    if not 1 <= value <= most:
        raise source.error(number.span, f"{what} cannot be {value}", expected=f"a number from 1 to {most:,}")
    return value


def duration(source: Source, literal: ast.Duration, what: str, *, zero: bool = False) -> Duration:
    """A length of time in milliseconds; ``zero`` says whether none at all is a length too."""
    factor = _UNITS[_unit(literal.unit)]
    length = Decimal(literal.count) * factor
    if length > MAX_DURATION:
        raise source.error(literal.span, f"{what} is longer than a million days")
    if length != int(length) or len(literal.count) > _LONGEST_COUNT:
        raise source.error(
            literal.span,
            f"{what} is not a whole number of milliseconds",
            hint="time is counted in milliseconds",
        )
    if length == 0 and not zero:
        raise source.error(literal.span, f"{what} cannot be zero", expected="a duration above zero")
    return int(length)


def size(source: Source, literal: ast.Size, what: str) -> int:
    """A number of bytes."""
    amount = Decimal(literal.count) * _BYTES[literal.unit.lower().removesuffix("s")]
    if amount > MAX_SIZE:
        raise source.error(literal.span, f"{what} is more than {MAX_SIZE >> 40} TiB")
    if amount != int(amount) or len(literal.count) > _LONGEST_COUNT:
        raise source.error(literal.span, f"{what} is not a whole number of bytes")
    return int(amount)


def _unit(word: str) -> str:
    word = word.lower()
    return word if word in _UNITS else word.removesuffix("s")


def instant(source: Source, literal: ast.Instant) -> Instant:
    """The t of FROM t and UNTIL t."""
    match literal:
        case ast.Number():
            value = bigint(source, literal)
            if not DAWN < value < DUSK:
                raise source.error(literal.span, "this instant is out of reach", expected="milliseconds since 1970")
            return value
        case ast.String():
            return timestamp(source, literal.value, literal.span)
        case ast.TypedString():
            return typed_timestamp(source, literal)


def typed_timestamp(source: Source, literal: ast.TypedString) -> Instant:
    if literal.type.text.upper() != "TIMESTAMP":
        raise source.error(
            literal.span,
            f"there is no literal {literal.type.text} '...'",
            hint="an instant is TIMESTAMP '2026-01-31T12:00:00Z'; names stand in double quotes, if in any",
        )
    return timestamp(source, literal.text.value, literal.text.span)


_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> Instant | None:
    """Milliseconds since the epoch of an RFC 3339 text (finer digits are cut off), or None if it is none."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    *fields, fraction, sign, hours, minutes = match.groups()
    shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if shift >= timedelta(days=1):
        return None
    try:
        moment = datetime(*map(int, fields), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    since = moment - _EPOCH + (shift if sign == "-" else -shift)
    return since // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])


def timestamp(source: Source, text: str, span: Span) -> Instant:
    value = parse_timestamp(text)
    if value is None:
        raise source.error(
            span,
            f"{text[:60]!r} is no instant",
            expected="RFC 3339, as '2026-01-31T12:00:00Z' or '2026-01-31T13:00:00.250+01:00'",
        )
    return value
