"""The total order of results over Arrow columns: NULL first, strings by UTF-8 bytes, −0.0 = 0.0, NaN last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.views import Ints, float64_view, from_numpy, order_keys, validity


def sort_indices(columns: Sequence[pa.Array]) -> Ints:
    """The rows' indices in order of the first column, then the second, ...; equal rows stay as they came.

    NULLs and NaNs are turned into keys of their own rather than left to the sort, whose placing of them
    differs between versions of Arrow and cannot put NULL at one end and NaN at the other.
    """
    if not columns:
        return np.empty(0, np.int64)
    keys: list[pa.Array] = []
    for column in columns:
        if column.null_count:
            keys.append(column.is_valid())
        keys.append(_sortable(column))
    if len(keys) == 1:
        indices = pc.array_sort_indices(keys[0])
    else:
        names = [str(i) for i in range(len(keys))]
        batch = pa.RecordBatch.from_arrays(keys, names=names)
        indices = pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in names])
    return np.asarray(indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def _sortable(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return from_numpy(order_keys(float64_view(column)), validity(column))
