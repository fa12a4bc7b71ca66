"""Which partition a row goes to: the same answer for `publish`, the client and the local engine.

No query's answer depends on it; it only decides which rows can be late relative to which.
"""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa


def partition_of(key: str | None, partitions: int) -> int:
    """The partition of a row whose PARTITION BY column has this value, written as text."""
    return zlib.crc32(b"\0" if key is None else key.encode()) % partitions


def split(rows: pa.RecordBatch, partition_by: str | None, partitions: int, first: int) -> np.ndarray:
    """The partition of each row; ``first`` is the number of the batch's first row in its input.

    Without PARTITION BY rows go round in turn.
    """
    if partitions == 1:
        return np.zeros(rows.num_rows, np.int64)
    if partition_by is None:
        return np.arange(first, first + rows.num_rows, dtype=np.int64) % partitions
    keys = rows.column(partition_by).cast(pa.string()).dictionary_encode()
    of_key = [partition_of(key, partitions) for key in keys.dictionary.to_pylist()]
    table = np.array([*of_key, partition_of(None, partitions)], np.int64)
    codes: np.ndarray = keys.indices.fill_null(len(of_key)).to_numpy(zero_copy_only=False)
    partition_of_row: np.ndarray = table[codes]
    return partition_of_row
