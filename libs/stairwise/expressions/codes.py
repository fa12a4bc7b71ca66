"""Rows grouped by their keys: a dense number per distinct key, so that kernels index instead of hashing.

ticker   code        first
A        0           0        codes count groups in order of first appearance;
B        1           1        first[g] is the first row of group g
A        0           3
NULL     2                    NULLs are one group, NaNs too, and −0.0 is 0.0
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints, canonical, float64_view, from_numpy, int32_view, int64_view, validity

_SPAN_PER_ROW = 4
"""A table of this many entries for each row is cheaper than hashing the rows."""


def encode(columns: Sequence[pa.Array]) -> tuple[Ints, Ints]:
    """The code of each row, and for each code its first row. There must be a column."""
    first_column, *others = columns
    codes, groups = _encode_one(first_column)
    for column in others:
        more, count = _encode_one(column)
        if count > 1:
            # Fewer groups than rows on both sides: the product stays far below 2^63.
            codes, groups = _encode_integers(codes * count + more, groups * count)
    return codes, first_rows(codes, groups)


def first_rows(codes: Ints, groups: int) -> Ints:
    """For each of ``groups`` codes, all of which occur, the first row that has it."""
    first = np.empty(groups, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _encode_one(column: pa.Array) -> tuple[Ints, int]:
    if pa.types.is_int64(column.type) and len(column) and column.null_count == 0:
        values = int64_view(column)
        least = int(values.min())
        span = int(values.max()) - least + 1
        if span <= _SPAN_PER_ROW * len(values):
            return _encode_integers(values - least, span)
    return _encode_by_hash(_comparable(column))


def _encode_integers(values: Ints, span: int) -> tuple[Ints, int]:
    """Codes of integers from 0 up to ``span``: by a table of first appearances where it is small enough."""
    if span > _SPAN_PER_ROW * len(values):
        return _encode_by_hash(from_numpy(values))
    absent = len(values)
    first = np.full(span, absent)
    first[values[::-1]] = np.arange(absent - 1, -1, -1)
    seen = np.flatnonzero(first < absent)
    code_of = np.empty(span, np.int64)
    code_of[seen[np.argsort(first[seen])]] = np.arange(len(seen))
    return code_of[values], len(seen)


def _encode_by_hash(column: pa.Array) -> tuple[Ints, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return int32_view(encoded.indices).astype(np.int64), len(encoded.dictionary)


def _comparable(column: pa.Array) -> pa.Array:
    """Hashing compares bits: spell equal doubles alike."""
    if not pa.types.is_floating(column.type):
        return column
    return from_numpy(canonical(float64_view(column)), validity(column))
