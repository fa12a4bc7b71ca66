"""Instants as texts and as parts of a calendar: UTC, the proleptic Gregorian one, years 1 to 9999.

A format is text with directives, of which each stands at most once:

    %Y 2026   %m 01..12   %d 01..31   %H 00..23   %M 00..59   %S 00..59   %f fraction of a second   %z Z or +01:00

and %% for %. A text that does not fit, or is no day of the calendar, is read as NULL. Digits below the millisecond are
cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.arithmetic import Operand
from stairwise.expressions.views import Bools, Ints, from_numpy, int64_view, validity
from stairwise.schema import EARLIEST, LATEST

UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""What DATE_TRUNC goes down to."""

FIELDS: Mapping[str, Callable[[Operand], Operand]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "dow": lambda stamps: pc.day_of_week(stamps, count_from_zero=True, week_start=7),
    "isodow": lambda stamps: pc.day_of_week(stamps, count_from_zero=False, week_start=1),
    "doy": pc.day_of_year,
    "epoch": lambda stamps: pc.cast(pc.floor_temporal(stamps, unit="second"), pa.timestamp("s", "UTC")),
}
"""What EXTRACT knows. Weeks are ISO's; dow counts from Sunday, 0, and isodow from Monday, 1."""

RFC_3339 = "%Y-%m-%dT%H:%M:%S.%fZ"
"""How instants are written."""

_RFC_3339_READ = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})[Tt ](?P<H>[0-9]{2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})"
    r"(?:\.(?P<f>[0-9]{1,9}))?(?P<z>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_READ = {letter: rf"(?P<{letter}>[0-9]{{2}})" for letter in "mdHMS"}
_READ |= {"Y": "(?P<Y>[0-9]{4})", "f": "(?P<f>[0-9]{1,9})", "z": "(?P<z>[Zz]|[+-][0-9]{2}:[0-9]{2})"}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DAY, _MINUTE = 86_400_000, 60_000


def truncate(unit: pa.Scalar, times: Operand) -> Operand:
    """The begin of the unit of time in which each instant lies; weeks begin on Monday."""
    floor = pc.floor_temporal(_stamps(times), unit=unit.as_py().lower(), week_starts_monday=True)
    return pc.cast(floor, pa.int64())


def extract(field: pa.Scalar, times: Operand) -> Operand:
    return pc.cast(FIELDS[field.as_py().lower()](_stamps(times)), pa.int64())


def _stamps(times: Operand) -> Operand:
    return pc.cast(times, pa.timestamp("ms", "UTC"))


# ── formats ─────────────────────────────────────────────────────────────────────────────────────────────


def is_format(text: str) -> bool:
    """Can instants be written in this format?"""
    letters = _DIRECTIVE.findall(text)
    return all(letter in _READ or letter == "%" for letter in letters)


def is_readable(text: str) -> bool:
    """Does a text in this format say an instant?"""
    letters = [letter for letter in _DIRECTIVE.findall(text) if letter != "%"]
    return is_format(text) and "Y" in letters and len(letters) == len(set(letters))


def write(times: Operand, format_: Operand | None = None) -> Operand:
    stamps, text = _stamps(times), RFC_3339 if format_ is None else format_.as_py()
    parts: list[Operand] = []
    end = 0
    for directive in _DIRECTIVE.finditer(text):
        parts += [pa.scalar(text[end : directive.start()]), _written(directive[1], stamps)]
        end = directive.end()
    parts.append(pa.scalar(text[end:]))
    return pc.if_else(pc.is_valid(times), pc.binary_join_element_wise(*parts, ""), pa.scalar(None, pa.string()))


_PARTS = {"Y": (pc.year, 4), "m": (pc.month, 2), "d": (pc.day, 2), "H": (pc.hour, 2), "M": (pc.minute, 2)}
_PARTS |= {"S": (pc.second, 2), "f": (pc.millisecond, 3)}


def _written(letter: str, stamps: Operand) -> Operand:
    if letter not in _PARTS:
        return pa.scalar({"%": "%", "z": "Z"}[letter])
    part, width = _PARTS[letter]
    return pc.utf8_lpad(pc.cast(part(stamps), pa.string()), width, "0")


def read(texts: pa.Array, format_: str | None = None) -> tuple[pa.Array, Bools]:
    """The instants that texts say in a format, RFC 3339 by default, and which of them say none."""
    found = pc.extract_regex(texts, rf"\A{_RFC_3339_READ if format_ is None else _pattern(format_)}\z")
    fits = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    parts = {field.name: found.field(i) for i, field in enumerate(found.type)}

    def number(letter: str, default: int) -> Ints:
        if letter not in parts:
            return np.full(len(texts), default, np.int64)
        return int64_view(pc.if_else(from_numpy(fits), parts[letter], "0").cast(pa.int64()))

    year, month, day = number("Y", 1970), number("m", 1), number("d", 1)
    hour, minute, second = number("H", 0), number("M", 0), number("S", 0)
    months = (year - 1970) * 12 + month - 1
    first, following = (m.astype("M8[M]").astype("M8[D]").astype(np.int64) for m in (months, months + 1))
    fits &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)
    fits &= (hour < 24) & (minute < 60) & (second < 60)
    time = (first + day - 1) * _DAY + ((hour * 60 + minute) * 60 + second) * 1000
    if "f" in parts:
        time += int64_view(pc.utf8_slice_codeunits(pc.utf8_rpad(parts["f"], 3, "0"), 0, 3).cast(pa.int64()))
    if "z" in parts:
        shift, is_shift = _shift(parts["z"])
        time, fits = time - shift, fits & is_shift
    fits &= (time >= EARLIEST) & (time <= LATEST)
    there = validity(texts)
    return from_numpy(time, fits), ~fits if there is None else ~fits & there


def _shift(zones: pa.StringArray) -> tuple[Ints, Bools]:
    """How far ahead of UTC texts such as Z, +01:00 or nothing are, and which can be."""
    is_shift = pc.equal(pc.utf8_length(zones), 6)
    written = pc.if_else(is_shift, zones, "+00:00")
    hours, minutes = (int64_view(pc.utf8_slice_codeunits(written, at, at + 2).cast(pa.int64())) for at in (1, 4))
    sign = np.where(pc.starts_with(written, "-").to_numpy(zero_copy_only=False), -1, 1)
    return sign * (hours * 60 + minutes) * _MINUTE, (hours < 24) & (minutes < 60)


def _pattern(format_: str) -> str:
    parts, end = [], 0
    for directive in _DIRECTIVE.finditer(format_):
        parts += [re.escape(format_[end : directive.start()]), _READ.get(directive[1], "%")]
        end = directive.end()
    return "".join([*parts, re.escape(format_[end:])])
