"""Columns of any type as int64 keys in the order of their values, and keys back as values.

STRING     b      a      NULL   c           keys count the batch's distinct values in order of their bytes,
key        1      0      -      2           so kernels compare, sort and deduplicate integers only
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.views import (
    Bools,
    Ints,
    bool_values,
    float64_view,
    from_numpy,
    from_order_keys,
    int32_view,
    int64_view,
    order_keys,
    validity,
)


@dataclass(frozen=True)
class Ranks:
    """``keys`` in the order of the column's values, anything where it is not ``valid`` (None: it is everywhere).

    Keys are comparable within one column only. Equal values have equal keys: −0.0 and 0.0, all NaNs. ``values``
    makes a column of keys again, in the values' canonical spelling, NULL where a mask of valid ones says so.
    """

    keys: Ints
    valid: Bools | None
    values: Callable[[Ints, Bools | None], pa.Array]


def rank(column: pa.Array) -> Ranks:
    if pa.types.is_int64(column.type):
        return Ranks(int64_view(column), validity(column), from_numpy)
    if pa.types.is_floating(column.type):
        return Ranks(order_keys(float64_view(column)), validity(column), _doubles)
    if pa.types.is_boolean(column.type):
        return Ranks(bool_values(column).astype(np.int64), validity(column), _booleans)
    return _rank_by_dictionary(column)


def _doubles(keys: Ints, valid: Bools | None) -> pa.Array:
    return from_numpy(from_order_keys(keys), valid)


def _booleans(keys: Ints, valid: Bools | None) -> pa.Array:
    return from_numpy(keys == 1, valid)


def _rank_by_dictionary(column: pa.Array) -> Ranks:
    encoded = column.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    rank_of = np.empty(len(order) + 1, np.int64)
    rank_of[order.to_numpy()] = np.arange(len(order))
    valid = validity(column)
    indices = int32_view(encoded.indices)
    if valid is not None:
        indices = np.where(valid, indices, np.int32(len(order)))
    ascending = encoded.dictionary.take(order)
    return Ranks(rank_of[indices], valid, lambda keys, seen: ascending.take(from_numpy(keys, seen)))
