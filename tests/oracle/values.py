"""Values beside each other: which are the same, which comes first, how they look in a result line.

NaN is NaN and −0.0 is 0.0 everywhere; NULL is NULL in GROUP BY, DISTINCT, EXCEPT and the differences between
answers, while ``=`` of an expression has no answer for it. An integer and a double compare as the numbers they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Value = bool | int | float | str | None

NAN = float("nan")
"""The one NaN, so that rows that hold it compare equal as tuples."""


def canonical(value: Value) -> Value:
    """The one spelling of values that are the same: 0.0 for −0.0, one NaN for all."""
    if isinstance(value, float):
        if math.isnan(value):
            return NAN
        return value + 0.0  # −0.0 + 0.0 is 0.0
    return value


def canonical_row(row: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(canonical(value) for value in row)


def rank(value: Value) -> tuple[Any, ...]:
    """Where a value stands among values of its type: NULL first, strings by UTF-8 bytes, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode("utf-8"))
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def ranks(row: Iterable[Value]) -> tuple[tuple[Any, ...], ...]:
    return tuple(rank(value) for value in row)


def to_json(value: Value) -> Value:
    """Integers and finite doubles as themselves, NaN and the infinities as strings."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return value
