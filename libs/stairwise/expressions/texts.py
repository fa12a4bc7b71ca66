"""Functions of strings. Places count code points, from 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.arithmetic import Operand
from stairwise.expressions.views import from_numpy, int64_view


def concat(*texts: Operand) -> Operand:
    return pc.binary_join_element_wise(*texts, pa.scalar(""), null_handling="emit_null")


def length(text: Operand) -> Operand:
    return pc.cast(pc.utf8_length(text), pa.int64())


def substring(text: Operand, start: pa.Scalar, count: pa.Scalar | None = None) -> Operand:
    """From a place on, all or so many."""
    first = start.as_py() - 1
    return pc.utf8_slice_codeunits(text, first, None if count is None else first + count.as_py())


def trimmer(trim: Callable[..., Operand]) -> Callable[..., Operand]:
    """TRIM, LTRIM or RTRIM, of blanks or of the characters of a second text."""

    def trimmed(text: Operand, characters: pa.Scalar | None = None) -> Operand:
        return trim(text, " " if characters is None else characters.as_py())

    return trimmed


def replace(text: Operand, sought: pa.Scalar, put: pa.Scalar) -> Operand:
    """Every occurrence, from the left; of nothing there is none."""
    return pc.replace_substring(text, sought.as_py(), put.as_py()) if sought.as_py() else text


def split_part(text: Operand, separator: pa.Scalar, number: pa.Scalar) -> Operand:
    """The part with a number, from 1, or from the end, from −1; the empty string where there is none."""
    place, pattern = number.as_py(), separator.as_py()
    column = pa.array([text.as_py()], pa.string()) if isinstance(text, pa.Scalar) else text
    if pattern:
        parts = pc.split_pattern(column, pattern)
        count = int64_view(pc.cast(pc.fill_null(pc.list_value_length(parts), 0), pa.int64()))
        at = np.full(len(count), place - 1) if place > 0 else count + place
        there = (at >= 0) & (at < count)
        begins = np.cumsum(count) - count
        found = pc.list_flatten(parts).take(from_numpy(np.where(there, begins + at, 0), there))
    else:
        found = column if place in (1, -1) else pa.nulls(len(column), pa.string())
    found = pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), pc.fill_null(found, ""))
    return found[0] if isinstance(text, pa.Scalar) else found


def is_pattern(pattern: str) -> bool:
    """Is it a regular expression (RE2)?"""
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def matches(text: Operand, pattern: pa.Scalar) -> Operand:
    return pc.match_substring_regex(text, pattern.as_py())


def starts_with(text: Operand, prefix: pa.Scalar) -> Operand:
    return pc.starts_with(text, prefix.as_py())


def ends_with(text: Operand, suffix: pa.Scalar) -> Operand:
    return pc.ends_with(text, suffix.as_py())


def contains(text: Operand, sought: pa.Scalar) -> Operand:
    return pc.match_substring(text, sought.as_py())
