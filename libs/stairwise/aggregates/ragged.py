"""List columns as flat entries with the number of the row that owns each, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.expressions.views import Bools, Ints, from_numpy


def read(column: pa.ListArray) -> tuple[Ints, pa.Array]:
    """Offsets that begin at 0, one more than there are rows, and the entries they cut up."""
    if len(column) == 0:
        return np.zeros(1, np.int64), column.values.slice(0, 0)
    offsets = np.asarray(column.offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
    start = int(offsets[0])
    return offsets - start, column.values.slice(start, int(offsets[-1]) - start)


def owners(offsets: Ints, labels: Ints | None = None) -> Ints:
    """For each entry the row that owns it, or that row's label."""
    rows = np.arange(len(offsets) - 1) if labels is None else labels
    return np.repeat(rows, np.diff(offsets))


def build(lengths: npt.NDArray[np.integer], values: pa.Array, dtype: pa.ListType) -> pa.ListArray:
    """A list column whose rows take ``lengths`` entries each, one after the other."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(from_numpy(offsets), values, type=dtype)


def build_table(rows: int, values: pa.Array, dtype: pa.ListType) -> pa.ListArray:
    """A list column whose rows all take the same number of entries."""
    offsets = np.arange(0, len(values) + 1, len(values) // rows, dtype=np.int32)
    return pa.ListArray.from_arrays(from_numpy(offsets), values, type=dtype)


def build_by_owner(owner: Ints, rows: int, values: pa.Array, dtype: pa.ListType) -> pa.ListArray:
    """A list column of ``rows`` rows from entries that lie in order of their owners."""
    return build(np.bincount(owner, minlength=rows), values, dtype)


def last_of_runs(starts: Ints, length: int) -> Bools:
    """True at the last entry of each run, for runs that begin at ``starts``."""
    last = np.zeros(length, np.bool_)
    last[starts[1:] - 1] = True
    if length:
        last[-1] = True
    return last
