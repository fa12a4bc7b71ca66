"""What a partition keeps while keys come and go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.lookups import shelf as shelves
from stairwise.lookups.gather import look_up
from stairwise.lookups.past import Past, Retain
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type

STREAM = Stream(
    "s",
    (Column("ts", Type.TIMESTAMP, nullable=False), Column("k", Type.BIGINT)),
    timestamp_by="ts",
    partitions=1,
)


def test_keys_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "_FEW_KEYS", 100)
    past = Past(STREAM, 0, Retain(1_000, 2**40))
    lookup = read_lookup("SELECT k, COUNT(*) AS n FROM s [RANGE 500 ms] GROUP BY k HAVING COUNT(*) > 0", {"s": STREAM})
    sizes = []
    for start in range(0, 400_000, 1_000):
        times = np.arange(start, start + 1_000)
        rows = pa.RecordBatch.from_arrays([pa.array(times), pa.array(times // 2)], schema=STREAM.arrow_schema)
        past.take(rows, start + 999)
        assert look_up(lookup, start + 999, {0: past}).num_rows == 250
        sizes.append(past.size_bytes)
    assert max(sizes[200:]) <= 2 * max(sizes[:200])
