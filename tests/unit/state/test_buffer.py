"""Rows wait until their order is final, settle, and are dropped when nothing needs them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.state import row_buffer as buffer_module
from stairwise.state.row_buffer import RowBuffer, placed
from stairwise.state.store import MemoryStore

SCHEMA = pa.schema([pa.field("x", pa.int64())])


def rows(*places: tuple[int, int, int]) -> pa.RecordBatch:
    """Rows with these (time, partition, sequence); x is the time."""
    columns = [pa.array([p[0] for p in places], pa.int64())]
    columns += [pa.array([p[i] for p in places], pa.int64()) for i in range(3)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([f.remove_metadata() for f in placed(SCHEMA)]))


def times(batch: pa.RecordBatch) -> list[int]:
    found: list[int] = batch.column("_t").to_pylist()
    return found


@pytest.fixture(params=[2, 4096])
def buffer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RowBuffer:
    monkeypatch.setattr(buffer_module, "SMALL", request.param)
    return RowBuffer(MemoryStore(), b"p", SCHEMA)


def test_rows_settle_in_order_of_time_partition_and_sequence(buffer: RowBuffer) -> None:
    buffer.add(rows((5, 1, 0), (9, 1, 1)))
    buffer.add(rows((7, 0, 1), (5, 0, 0), (12, 0, 2)))
    buffer.settle(9)
    settled = buffer.rows(0, buffer.end)
    places = list(zip(*(settled.column(c).to_pylist() for c in ("_t", "_p", "_s")), strict=True))
    assert places == [(5, 0, 0), (5, 1, 0), (7, 0, 1), (9, 1, 1)]


def test_rows_above_the_watermark_wait(buffer: RowBuffer) -> None:
    buffer.add(rows((5, 0, 0), (12, 0, 1)))
    buffer.settle(9)
    assert times(buffer.rows(0, buffer.end)) == [5]
    buffer.settle(12)
    assert times(buffer.rows(0, buffer.end)) == [5, 12]


def test_positions_count_from_the_streams_first_row(buffer: RowBuffer) -> None:
    buffer.add(rows(*((t, 0, t) for t in range(6))))
    buffer.settle(10)
    buffer.drop(4)
    assert (buffer.first, buffer.end) == (4, 6)
    assert times(buffer.rows(4, 6)) == [4, 5]
    assert buffer.passed(np.array([0, 4, 5, 99])).tolist() == [4, 5, 6, 6]


def test_positions_go_on_when_everything_was_dropped(buffer: RowBuffer) -> None:
    buffer.add(rows(*((t, 0, t) for t in range(6))))
    buffer.settle(10)
    buffer.drop(6)
    buffer.add(rows((20, 0, 6)))
    buffer.settle(20)
    assert (buffer.first, buffer.end) == (6, 7)
    assert times(buffer.rows(6, 7)) == [20]


@pytest.mark.parametrize("small", [2, 4096])
def test_a_buffer_made_anew_goes_on_from_its_store(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "SMALL", small)
    store = MemoryStore()
    first = 0
    for start in range(0, 60, 4):
        buffer = RowBuffer(store, b"p", SCHEMA, first)
        buffer.add(rows(*((t + 3, 0, t) for t in range(start, start + 4))))
        buffer.settle(start)
        assert times(buffer.rows(buffer.first, buffer.end)) == list(range(max(3, buffer.first + 3), start + 1))
        buffer.drop(buffer.end - 5)
        buffer.flush()
        first = buffer.first


def test_a_flush_leaves_no_pages_of_dropped_rows() -> None:
    store = MemoryStore()
    buffer = RowBuffer(store, b"p", SCHEMA)
    for start in range(0, 50_000, 5000):
        buffer.add(rows(*((t, 0, t) for t in range(start, start + 5000))))
        buffer.settle(start + 5000)
        buffer.drop(buffer.end - 10)
        buffer.flush()
    assert len(list(store.scan(b"p"))) == 1
