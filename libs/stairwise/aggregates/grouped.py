"""The kernels under the aggregates: counts, exact integer sums, extremes and sorts by group.

Codes and values are numpy arrays of one length. Adding goes through integers, or through doubles that hold
integers below 2^53, so every sum is exact and no order of adding can show. One group is the common query without
keys, and has paths of its own that need no codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stairwise.expressions import huge
from stairwise.expressions.views import Bools, Ints, Words

INT64_MAX = np.int64(2**63 - 1)
INT64_MIN = np.int64(-(2**63))
_LOW_HALF = np.int64(0xFFFF_FFFF)


def count(codes: Ints, groups: int, valid: Bools | None = None) -> Ints:
    """Rows per group; only those that are ``valid`` if it is given."""
    if groups == 1:
        return np.array([len(codes) if valid is None else np.count_nonzero(valid)], np.int64)
    if valid is None:
        return np.bincount(codes, minlength=groups)
    return np.bincount(codes, valid, groups).astype(np.int64)


def add(values: Ints, codes: Ints, groups: int) -> Ints:
    """Sums of int64 per group, for values whose sums are known to fit."""
    if groups == 1:
        return np.array([values.sum(dtype=np.int64)])
    total = np.zeros(groups, np.int64)
    np.add.at(total, codes, values)
    return total


def add_exactly(values: Ints, codes: Ints, groups: int) -> Words:
    """Sums of any int64 per group, in 128 bits."""
    if reach(values) * len(values) < 2**63:
        return huge.from_int64(add(values, codes, groups))
    low = huge.from_int64(add(values & _LOW_HALF, codes, groups))
    high = huge.from_int64(add(values >> 32, codes, groups))
    return huge.wrapping_add(huge.shift_half(high), low)


def add_words(words: Words, codes: Ints, groups: int) -> Words:
    """Sums of 128-bit integers per group."""
    low = np.ascontiguousarray(words[:, 0])
    if huge.fits_int64(words):
        return add_exactly(low.view(np.int64), codes, groups)
    halves = low.view(np.int64)
    first = huge.from_int64(add(halves & _LOW_HALF, codes, groups))
    second = huge.from_int64(add(halves >> 32 & _LOW_HALF, codes, groups))
    high = add(np.ascontiguousarray(words[:, 1]).view(np.int64), codes, groups)
    third = np.stack([np.zeros(groups, np.uint64), high.view(np.uint64)], axis=-1)
    return huge.wrapping_add(huge.wrapping_add(huge.shift_half(second), first), third)


def reach(values: Ints) -> int:
    """The largest magnitude among the values."""
    return max(-int(values.min()), int(values.max())) if len(values) else 0


def extreme(values: Ints, valid: Bools | None, codes: Ints, groups: int, *, largest: bool) -> tuple[Ints, Bools | None]:
    """The least or greatest value per group, and which groups have one (None: all do)."""
    nothing = INT64_MIN if largest else INT64_MAX
    if valid is not None:
        values = np.where(valid, values, nothing)
    if groups == 1 and len(values):
        best = np.array([values.max() if largest else values.min()])
    else:
        best = np.full(groups, nothing)
        (np.maximum if largest else np.minimum).at(best, codes, values)
    if not (best == nothing).any():
        return best, None
    seen = np.zeros(groups, np.bool_)
    seen[codes if valid is None else codes[valid]] = True
    return best, seen


def sort(keys: npt.NDArray[Any], codes: Ints, groups: int) -> Ints:
    """The order of rows by group, then key."""
    by_key = np.argsort(keys)
    return by_key if groups == 1 else by_key[sort_codes(codes[by_key], groups)]


def sort_codes(codes: Ints, groups: int) -> Ints:
    """A stable order by code: radix passes over 16 bits, which numpy sorts in linear time."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    shift = 16
    while groups >> shift:
        order = order[np.argsort((codes[order] >> shift).astype(np.uint16), kind="stable")]
        shift += 16
    return order


def run_starts(*sorted_keys: npt.NDArray[Any]) -> Ints:
    """Where a new run of equal keys begins in columns that are sorted together."""
    length = len(sorted_keys[0])
    if length == 0:
        return np.empty(0, np.int64)
    fresh = np.zeros(length, np.bool_)
    fresh[0] = True
    for keys in sorted_keys:
        fresh[1:] |= keys[1:] != keys[:-1]
    return np.flatnonzero(fresh)
