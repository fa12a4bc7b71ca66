"""Rows leave the reorder buffer in stream order, each once, when the watermark has passed them."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.lookups.reorder import ReorderBuffer
from stairwise.lookups.settled_rows import SettledRows
from stairwise.schema import DUSK, Column, Stream, Type

STREAM = Stream("s", (Column("ts", Type.TIMESTAMP), Column("n", Type.BIGINT)), timestamp_by="ts")
Row = tuple[int, int]


def batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    return pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema)


def rows_of(found: SettledRows) -> list[Row]:
    rows = [row for piece in found.pieces for row in zip(*(c.to_pylist() for c in piece.rows.columns), strict=True)]
    assert [time for time, _ in rows] == found.times.tolist()
    assert not rows or found.ints(1).tolist() == found.column(1).to_pylist() == [number for _, number in rows]
    return rows


def add(buffer: ReorderBuffer, rows: pa.RecordBatch, watermark: int) -> list[Row]:
    buffer.put(rows, watermark)
    return rows_of(buffer.take())


def test_what_the_watermark_has_not_passed_waits() -> None:
    buffer = ReorderBuffer(STREAM)
    assert add(buffer, batch([(9, 0), (7, 1), (12, 2)]), 9) == [(7, 1), (9, 0)]
    assert buffer.waiting == 1
    assert add(buffer, batch([(11, 3), (14, 4)]), 11) == [(11, 3)]
    assert add(buffer, batch([]), DUSK) == [(12, 2), (14, 4)]
    assert (buffer.waiting, buffer.size_bytes) == (0, 0)


@given(times=st.lists(st.integers(0, 20)), cuts=st.lists(st.integers(0, 30)), lateness=st.integers(0, 8))
def test_they_leave_in_the_order_of_time_then_sequence(times: list[int], cuts: list[int], lateness: int) -> None:
    highest, rows = -100, []
    for sequence, time in enumerate(times):
        if time >= highest - lateness:  # the others would have been late
            rows.append((time, sequence))
            highest = max(highest, time)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    buffer, left, highest = ReorderBuffer(STREAM), [], -100
    for start, stop in pairwise(edges):
        highest = max([highest, *(time for time, _ in rows[start:stop])])
        left += add(buffer, batch(rows[start:stop]), highest - lateness - 1)
        assert all(time < highest - lateness for time, _ in left)
    left += add(buffer, batch([]), DUSK)
    assert left == sorted(rows)
