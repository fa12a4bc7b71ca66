"""MIN and MAX follow what is asked and what comes in: base intervals, and landmarks while they pay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.lookups.gather import look_up
from stairwise.lookups.lookup_explain import explained
from stairwise.lookups.partition_history import LUMP, PartitionHistory, Retain
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type
from stairwise.structures import extreme_intervals

STREAM = Stream("s", (Column("ts", Type.TIMESTAMP), Column("k", Type.BIGINT), Column("n", Type.BIGINT)), "ts")
LOOKUP = read_lookup("SELECT MAX(n) AS m FROM s [RANGE 100 ms] WHERE k = 1", {"s": STREAM})
BATCH = 1000


class Held:
    def __init__(self, retain: Retain) -> None:
        self.history = PartitionHistory(STREAM, 0, retain)
        self._values: list[int] = []
        self._chance = np.random.default_rng(1)

    def take(self, batches: int) -> None:
        for _ in range(batches):
            start = len(self._values)
            times = np.arange(start, start + BATCH)
            values = self._chance.integers(0, 10**6, BATCH)
            self._values += values.tolist()
            rows = pa.RecordBatch.from_arrays(
                [pa.array(times), pa.array(times % 2), pa.array(values)], schema=STREAM.arrow_schema
            )
            self.history.take(rows, start + BATCH - 1)

    def ask(self, times: int) -> str:
        """So many lookups, all right; how the last was answered."""
        at = self.history.watermark
        expected = max(v for t, v in enumerate(self._values) if at - 100 < t <= at and t % 2 == 1)
        for _ in range(times):
            assert look_up(LOOKUP, at, {0: self.history}).to_pylist() == [{"m": expected}]
        return explained(LOOKUP, at, [self.history])


def test_landmarks_are_kept_while_lookups_are_worth_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extreme_intervals, "EPOCH", 4 * BATCH)
    monkeypatch.setattr(extreme_intervals, "SAVED", BATCH // 10)
    held = Held(Retain(2 * BATCH, 2**40))
    held.take(2)
    assert "max by B-INT" in held.ask(20)
    assert "max by L-INT for intervals of 32 to 63 rows" in held.ask(30)
    for _ in range(5):
        held.take(1)
        assert "max by L-INT" in held.ask(10)
    held.take(4 * LUMP // BATCH)
    assert "max by B-INT" in held.ask(1)


def test_no_room_is_taken_for_landmarks_where_memory_is_short() -> None:
    held = Held(Retain(2 * BATCH, 2**40))
    held.take(3)
    held.ask(2)
    short = Held(Retain(2 * BATCH, held.history.size_bytes * 3 // 2))
    short.take(3)
    assert "max by B-INT" in short.ask(100)
    assert "max by L-INT" in held.ask(100)
