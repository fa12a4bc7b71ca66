"""CAST: a value in another type, or NULL, and counted, where that type has none for it.

    to        from
    BIGINT    DOUBLE: the nearest, halves away from zero; BOOLEAN: 1 and 0; TIMESTAMP: its milliseconds; STRING: digits
    DOUBLE    a number, BOOLEAN, TIMESTAMP; STRING: a decimal, NaN, Infinity, -Infinity
    STRING    the fewest digits that read back, with an exponent below 10^-6 and from 10^10 on; true, false; instants as
              2026-01-31T12:00:00.000Z
    BOOLEAN   a number: is it other than 0; STRING: true and false in any case
    TIMESTAMP a number: of milliseconds, in the years 1 to 9999; STRING: RFC 3339

Texts must be nothing but the value. Kernels give the result with the rows that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions import arithmetic, instants
from stairwise.expressions.views import Bools, from_numpy, int64_view, validity
from stairwise.schema import EARLIEST, LATEST, Type

Outcome = tuple[pa.Array, Bools]
_NOTHING = np.zeros((), np.bool_)
_DIGITS = r"\A[+-]?[0-9]+\z"
_DECIMAL = r"\A[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def cast_op(source: Type, target: Type) -> str | None:
    """The call that casts, by its name; None where there is no such cast."""
    return f"cast_{source.value}_{target.value}".lower() if (source, target) in _CASTS else None


def _certain(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], Outcome]:
    return lambda column: (kernel(column), _NOTHING)


def _by_value(texts: pa.Array, convert: Callable[[str], Any], kind: pa.DataType) -> Outcome:
    """Each distinct text is converted once; None is a failure."""
    encoded = texts.dictionary_encode()
    values = pa.array([convert(text) for text in encoded.dictionary.to_pylist()], kind)
    result = values.take(encoded.indices)
    return result, _newly_null(texts, result)


def _newly_null(before: pa.Array, after: pa.Array) -> Bools:
    failed = pc.and_(before.is_valid(), after.is_null())
    return np.asarray(failed.to_numpy(zero_copy_only=False), np.bool_)


def _integer(text: str) -> int | None:
    if re.fullmatch(r"[+-]?[0-9]{1,40}", text) is None:
        return None
    return value if -(2**63) <= (value := int(text)) < 2**63 else None


def _decimal(text: str) -> float | None:
    if text in _SPECIAL:
        return _SPECIAL[text]
    fits = re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text)
    return float(text) if fits is not None else None


def _of_digits(texts: pa.Array) -> Outcome:
    try:
        if pc.all(pc.match_substring_regex(texts, _DIGITS)).as_py() is not False:
            return pc.cast(texts, pa.int64()), _NOTHING
    except pa.ArrowInvalid:
        pass  # some have a + or are too large
    return _by_value(texts, _integer, pa.int64())


def _of_decimals(texts: pa.Array) -> Outcome:
    try:
        if pc.all(pc.match_substring_regex(texts, _DECIMAL)).as_py() is not False:
            return pc.cast(texts, pa.float64()), _NOTHING
    except pa.ArrowInvalid:
        pass
    return _by_value(texts, _decimal, pa.float64())


def _truth(texts: pa.Array) -> Outcome:
    lower = pc.utf8_lower(texts)
    known = pc.or_(pc.equal(lower, "true"), pc.equal(lower, "false"))
    result = pc.if_else(known, pc.equal(lower, "true"), pa.scalar(None, pa.bool_()))
    return result, _newly_null(texts, result)


def _text_of_double(column: pa.Array) -> pa.Array:
    texts = pc.cast(pc.add(column, 0.0), pa.string())  # −0.0 is 0.0
    for shown, written in (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        texts = pc.if_else(pc.equal(texts, shown), written, texts)
    return texts


def _within_years(column: pa.Array) -> Outcome:
    times = int64_view(column)
    wrong = (times < EARLIEST) | (times > LATEST)
    there = validity(column)
    wrong = wrong if there is None else wrong & there
    return (pc.if_else(from_numpy(wrong), pa.scalar(None, pa.int64()), column) if wrong.any() else column), wrong


def _bigint_of_double(column: pa.Array) -> Outcome:
    return arithmetic.to_bigint(pc.round(column, round_mode="half_towards_infinity"))


def _bigint_of_huge(column: pa.Array) -> Outcome:
    values = [None if v is None or not -(2**63) <= int(v) < 2**63 else int(v) for v in column.to_pylist()]
    result = pa.array(values, pa.int64())
    return result, _newly_null(column, result)


def _then(first: Callable[[pa.Array], Outcome], second: Callable[[pa.Array], Outcome]) -> Callable[[pa.Array], Outcome]:
    def both(column: pa.Array) -> Outcome:
        between, wrong = first(column)
        result, beyond = second(between)
        return result, wrong | beyond

    return both


def _is_not_zero(column: pa.Array) -> pa.Array:
    return pc.not_equal(column, pa.scalar(0, column.type))


_CASTS: dict[tuple[Type, Type], Callable[[pa.Array], Outcome]] = {
    (Type.BIGINT, Type.STRING): _certain(lambda column: pc.cast(column, pa.string())),
    (Type.BIGINT, Type.BOOLEAN): _certain(_is_not_zero),
    (Type.BIGINT, Type.TIMESTAMP): _within_years,
    (Type.DOUBLE, Type.BIGINT): _bigint_of_double,
    (Type.DOUBLE, Type.STRING): _certain(_text_of_double),
    (Type.DOUBLE, Type.BOOLEAN): _certain(_is_not_zero),
    (Type.DOUBLE, Type.TIMESTAMP): _then(_bigint_of_double, _within_years),
    (Type.HUGEINT, Type.BIGINT): _bigint_of_huge,
    (Type.HUGEINT, Type.STRING): _certain(lambda column: pc.cast(column, pa.string())),
    (Type.HUGEINT, Type.BOOLEAN): _certain(lambda column: _is_not_zero(arithmetic.to_double(column))),
    (Type.HUGEINT, Type.TIMESTAMP): _then(_bigint_of_huge, _within_years),
    (Type.STRING, Type.BIGINT): _of_digits,
    (Type.STRING, Type.DOUBLE): _of_decimals,
    (Type.STRING, Type.BOOLEAN): _truth,
    (Type.STRING, Type.TIMESTAMP): instants.read,
    (Type.BOOLEAN, Type.BIGINT): _certain(lambda column: pc.cast(column, pa.int64())),
    (Type.BOOLEAN, Type.DOUBLE): _certain(lambda column: pc.cast(pc.cast(column, pa.int64()), pa.float64())),
    (Type.BOOLEAN, Type.STRING): _certain(lambda column: pc.if_else(column, "true", "false")),
    (Type.TIMESTAMP, Type.BIGINT): _certain(lambda column: column),
    (Type.TIMESTAMP, Type.STRING): _certain(instants.write),
}

CASTS = {f"cast_{source.value}_{target.value}".lower(): kernel for (source, target), kernel in _CASTS.items()}
"""By the names of their calls. A number or an instant becomes DOUBLE by ``to_double``."""
