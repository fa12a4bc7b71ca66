"""The functions of a row: one catalogue, which the parser's names and types, evaluation, completion and docs follow.

A function is added here, in one line: what it takes and gives, its kernel, and what docs/cql.md says of it. The kernel
gets Arrow columns or scalars, constants among them as scalars, and gives a column or scalar; NULL in gives NULL out,
unless it says otherwise. One that has no answer for some values gives the rows that failed as well (``fails``).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions import arithmetic, instants, texts
from stairwise.expressions.arithmetic import Operand
from stairwise.expressions.comparison import compare
from stairwise.schema import Type

MAX_ARGUMENTS = 1_000
MAX_DIGITS = 15


class Takes(enum.Enum):
    """What may stand as the argument of a function."""

    NUMBER = "a number"
    DOUBLE = "a number, taken as DOUBLE"
    STRING = "a STRING"
    INSTANT = "a TIMESTAMP"
    CONDITION = "a condition"
    ORDERED = "a number, a STRING or a TIMESTAMP"
    ANY = "anything"


@dataclass(frozen=True)
class Constant:
    """An argument that is a literal."""

    type: Type
    expected: str
    fits: Callable[[Any], bool] = lambda value: True


@dataclass(frozen=True)
class Scalar:
    """A function of values of one row."""

    takes: tuple[Takes | Constant, ...]
    result: Type | None
    """None: the type in which its arguments meet."""
    kernel: Callable[..., Any] | None
    """None: the parser spells it out in other calls."""
    example: str
    """How it is called, for docs and errors."""
    gives: str
    optional: int = 0
    """How many of the last arguments may be left out."""
    repeats: bool = False
    """May the last argument come any number of times?"""
    fails: bool = False
    """Does the kernel also give the rows that failed?"""
    elsewhere: tuple[str, ...] = ()
    """What it is called in other systems."""

    @property
    def least(self) -> int:
        return len(self.takes) - self.optional

    @property
    def most(self) -> int:
        return MAX_ARGUMENTS if self.repeats else len(self.takes)


def _round(value: Operand, digits: pa.Scalar | None = None) -> Operand:
    if digits is None or digits.as_py() == 0:
        return pc.round(value, round_mode="half_towards_infinity")
    factor = pa.scalar(10.0 ** abs(digits.as_py()))
    shift, back = (pc.multiply, pc.divide) if digits.as_py() > 0 else (pc.divide, pc.multiply)
    rounded = back(pc.round(shift(value, factor), round_mode="half_towards_infinity"), factor)
    return pc.if_else(pc.is_finite(rounded), rounded, value)


def _log(first: Operand, second: Operand | None = None) -> Operand:
    return pc.log10(first) if second is None else pc.divide(pc.ln(second), pc.ln(first))


def _extreme(op: str) -> Callable[..., Operand]:
    """The first of the greatest or least, NULLs passed over."""

    def choose(best: Operand, other: Operand) -> Operand:
        is_better = pc.coalesce(compare(op, other, best), pc.is_null(best))
        return pc.if_else(is_better, other, best)

    return lambda *values: reduce(choose, values)


def _to_timestamp(text: Operand, format_: pa.Scalar | None = None) -> Any:
    return instants.read(text, None if format_ is None else format_.as_py())


_TEXT = Constant(Type.STRING, "a constant STRING")
_PLACE = Constant(Type.BIGINT, "a constant whole number from 1 up", lambda place: place >= 1)
_COUNT = Constant(Type.BIGINT, "a constant whole number from 0 up", lambda count: count >= 0)
_PART = Constant(Type.BIGINT, "a constant whole number other than 0", lambda place: place != 0)
_DIGITS = Constant(
    Type.BIGINT, f"a constant from -{MAX_DIGITS} to {MAX_DIGITS}", lambda digits: abs(digits) <= MAX_DIGITS
)
_PATTERN = Constant(Type.STRING, "a constant regular expression (RE2)", texts.is_pattern)
_UNIT = Constant(Type.STRING, f"one of {', '.join(instants.UNITS)}", lambda unit: unit.lower() in instants.UNITS)
_FIELD = Constant(Type.STRING, f"one of {', '.join(instants.FIELDS)}", lambda field: field.lower() in instants.FIELDS)
_DIRECTIVES = "a constant format of %Y, %m, %d, %H, %M, %S, %f, %z and %%"
_WRITTEN = Constant(Type.STRING, _DIRECTIVES, instants.is_format)
_READ = Constant(Type.STRING, f"{_DIRECTIVES}, each once, with %Y", instants.is_readable)

_N, _D, _S, _T, _O, _A = (
    Takes.NUMBER,
    Takes.DOUBLE,
    Takes.STRING,
    Takes.INSTANT,
    Takes.ORDERED,
    Takes.ANY,
)
_DOUBLE, _STRING, _BIGINT, _BOOLEAN, _INSTANT = Type.DOUBLE, Type.STRING, Type.BIGINT, Type.BOOLEAN, Type.TIMESTAMP

SCALARS: dict[str, Scalar] = {
    "ABS": Scalar((_N,), None, arithmetic.absolute, "ABS(x)", "the magnitude, in the same type", fails=True),
    "FLOOR": Scalar((_D,), _DOUBLE, pc.floor, "FLOOR(x)", "DOUBLE: the next whole number below"),
    "CEIL": Scalar((_D,), _DOUBLE, pc.ceil, "CEIL(x)", "DOUBLE: the next whole number above", elsewhere=("CEILING",)),
    "ROUND": Scalar((_D, _DIGITS), _DOUBLE, _round, "ROUND(x, n)", "DOUBLE: `ROUND(x * 10^n) / 10^n`, n is 0 unless"
                    " given; halves go away from zero", optional=1),
    "SQRT": Scalar((_D,), _DOUBLE, pc.sqrt, "SQRT(x)", "DOUBLE; NaN below 0"),
    "LN": Scalar((_D,), _DOUBLE, pc.ln, "LN(x)", "DOUBLE: the natural logarithm"),
    "LOG": Scalar((_D, _D), _DOUBLE, _log, "LOG(b, x)", "DOUBLE: the logarithm to the base b; `LOG(x)` to the base 10",
                  optional=1, elsewhere=("LOG10",)),
    "EXP": Scalar((_D,), _DOUBLE, pc.exp, "EXP(x)", "DOUBLE"),
    "POWER": Scalar((_D, _D), _DOUBLE, pc.power, "POWER(x, y)", "DOUBLE: x to the y", elsewhere=("POW",)),
    "MOD": Scalar((_N, _N), None, None, "MOD(a, b)", "as `a % b`"),
    "GREATEST": Scalar((_O,), None, _extreme(">"), "GREATEST(a, b, …)", "the greatest; NULLs are passed over",
                       repeats=True),
    "LEAST": Scalar((_O,), None, _extreme("<"), "LEAST(a, b, …)", "the least; NULLs are passed over", repeats=True),
    "COALESCE": Scalar((_A,), None, None, "COALESCE(a, b, …)", "the first that is not NULL", repeats=True,
                       elsewhere=("IFNULL", "NVL", "ISNULL")),
    "NULLIF": Scalar((_A, _A), None, None, "NULLIF(a, b)", "NULL where `a = b`, else a"),
    "LOWER": Scalar((_S,), _STRING, pc.utf8_lower, "LOWER(s)", "STRING", elsewhere=("LCASE",)),
    "UPPER": Scalar((_S,), _STRING, pc.utf8_upper, "UPPER(s)", "STRING", elsewhere=("UCASE",)),
    "LENGTH": Scalar((_S,), _BIGINT, texts.length, "LENGTH(s)", "BIGINT, in characters",
                     elsewhere=("LEN", "CHAR_LENGTH", "CHARACTER_LENGTH")),
    "CONCAT": Scalar((_S,), _STRING, texts.concat, "CONCAT(s, t, …)", "STRING; NULL if one is", repeats=True),
    "SUBSTRING": Scalar((_S, _PLACE, _COUNT), _STRING, texts.substring, "SUBSTRING(s, from, count)",
                        "STRING: from a place on, the first is 1; to the end without a count", optional=1,
                        elsewhere=("SUBSTR", "MID")),
    "TRIM": Scalar((_S, _TEXT), _STRING, texts.trimmer(pc.utf8_trim), "TRIM(s, characters)",
                   "STRING without blanks, or these characters, at both ends", optional=1, elsewhere=("BTRIM",)),
    "LTRIM": Scalar((_S, _TEXT), _STRING, texts.trimmer(pc.utf8_ltrim), "LTRIM(s, characters)", "the same at the left",
                    optional=1),
    "RTRIM": Scalar((_S, _TEXT), _STRING, texts.trimmer(pc.utf8_rtrim), "RTRIM(s, characters)",
                    "the same at the right", optional=1),
    "REPLACE": Scalar((_S, _TEXT, _TEXT), _STRING, texts.replace, "REPLACE(s, sought, put)",
                      "STRING: all occurrences, from the left"),
    "SPLIT_PART": Scalar((_S, _TEXT, _PART), _STRING, texts.split_part, "SPLIT_PART(s, separator, n)",
                         "STRING: the n-th part, from the end if n is negative; the empty string if there is none"),
    "REGEXP_MATCH": Scalar((_S, _PATTERN), _BOOLEAN, texts.matches, "REGEXP_MATCH(s, pattern)",
                           "BOOLEAN: does the pattern (RE2) occur in s?",
                           elsewhere=("REGEXP_LIKE", "REGEXP_MATCHES", "RLIKE")),
    "STARTS_WITH": Scalar((_S, _TEXT), _BOOLEAN, texts.starts_with, "STARTS_WITH(s, prefix)", "BOOLEAN",
                          elsewhere=("STARTSWITH",)),
    "ENDS_WITH": Scalar((_S, _TEXT), _BOOLEAN, texts.ends_with, "ENDS_WITH(s, suffix)", "BOOLEAN",
                        elsewhere=("ENDSWITH",)),
    "CONTAINS": Scalar((_S, _TEXT), _BOOLEAN, texts.contains, "CONTAINS(s, sought)", "BOOLEAN",
                       elsewhere=("STRPOS", "POSITION", "INSTR")),
    "DATE_TRUNC": Scalar((_UNIT, _T), _INSTANT, instants.truncate, "DATE_TRUNC('hour', t)",
                         f"TIMESTAMP: where the unit begins in which t lies, in UTC: {', '.join(instants.UNITS)}",
                         elsewhere=("TIME_FLOOR", "DATE_FLOOR", "TIME_BUCKET")),
    "EXTRACT": Scalar((_FIELD, _T), _BIGINT, instants.extract, "EXTRACT(hour FROM t)",
                      f"BIGINT, in UTC: {', '.join(instants.FIELDS)} (seconds since 1970). Weeks are ISO's, dow counts"
                      " from Sunday, 0, isodow from Monday, 1", elsewhere=("DATE_PART", "DATEPART")),
    "TO_TIMESTAMP": Scalar((_S, _READ), _INSTANT, _to_timestamp, "TO_TIMESTAMP(s, '%Y-%m-%d')",
                           "TIMESTAMP; RFC 3339 without a format. NULL where it does not fit", optional=1, fails=True,
                           elsewhere=("STRPTIME", "PARSE_TIMESTAMP", "STRINGTOTIMESTAMP")),
    "FORMAT_TIMESTAMP": Scalar((_T, _WRITTEN), _STRING, instants.write, "FORMAT_TIMESTAMP(t, '%H:%M')",
                               "STRING; as `2026-01-31T12:00:00.000Z` without a format", optional=1,
                               elsewhere=("STRFTIME", "DATE_FORMAT", "TO_CHAR", "TIMESTAMPTOSTRING")),
}  # fmt: skip

KERNELS = {name.lower(): function for name, function in SCALARS.items() if function.kernel is not None}
"""By the names of their calls."""

ELSEWHERE = {other: name for name, function in SCALARS.items() for other in function.elsewhere}
"""What functions of other systems are called here."""
