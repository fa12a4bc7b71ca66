"""Batches are in Kafka in few bytes, and are read as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.schema import Column, Stream, Type
from stairwise.wire.batches import FEW, decode_rows, encode_rows, pack_rows
from stairwise.wire.narrow import narrowed, widened

MANY = 2 * FEW
LOWEST, HIGHEST = -(2**63), 2**63 - 1
STREAM = Stream(
    "s",
    (
        Column("ts", Type.TIMESTAMP, nullable=False),
        Column("n", Type.BIGINT),
        Column("x", Type.DOUBLE),
        Column("name", Type.STRING),
        Column("good", Type.BOOLEAN),
    ),
    timestamp_by="ts",
)


def column(values: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array((values * MANY)[:MANY], pa.int64())})


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([0], 8),
        ([None], 8),
        ([1_700_000_000_000, 1_700_000_000_255], 8),
        ([1_700_000_000_000, 1_700_000_000_256, None], 16),
        ([-5, 65_530], 16),
        ([-6, 65_530], 32),
        ([LOWEST, LOWEST + 7], 8),
        ([HIGHEST - 2**32 + 1, None, HIGHEST], 32),
        ([0, 2**32], 64),
        ([LOWEST, None, HIGHEST], 64),
    ],
)
def test_integers_take_the_width_of_what_lies_between_them(values: list[int | None], width: int) -> None:
    rows = column(values)
    narrow = narrowed(rows)
    assert narrow.schema.field("n").type.bit_width == width
    assert widened(narrow, rows.schema).equals(rows)
    part = rows.slice(3, 7)
    assert widened(narrowed(part), rows.schema).equals(part)


INTEGERS = st.integers(LOWEST, HIGHEST)
NEAR = INTEGERS.flatmap(lambda at: st.integers(max(LOWEST, at - 300), min(HIGHEST, at + 300)))


@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.integers(1_700_000_000_000, 1_700_000_100_000), INTEGERS),
            st.none() | NEAR,
            st.none() | st.floats(),
            st.none() | st.text(max_size=5),
            st.none() | st.booleans(),
        ),
        min_size=1,
        max_size=30,
    ),
    times=st.sampled_from([1, FEW, 3]),
    start=st.integers(0, 40),
)
def test_whatever_is_packed_is_read_as_it_was(rows: list[tuple[object, ...]], times: int, start: int) -> None:
    schema = STREAM.arrow_schema
    values = zip(*rows * times, strict=True)
    columns = [pa.array(list(some), kind) for some, kind in zip(values, schema.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema).slice(start)
    for value in (pack_rows(batch), encode_rows(batch)):
        found = decode_rows(value, STREAM)
        assert found.schema.equals(schema)
        assert repr(found.to_pylist()) == repr(batch.to_pylist())  # by their text NaN are alike


def test_many_rows_take_fewer_bytes_and_few_rows_no_more() -> None:
    count = 16_384
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(range(1_700_000_000_000, 1_700_000_000_000 + count)),
            pa.array(n * 7 % 1000 for n in range(count)),
            pa.array(n % 97 / 4 for n in range(count)),
            pa.array(("ACME", "GLOBEX", "INITECH")[n % 3] for n in range(count)),
            pa.array(n % 2 == 0 for n in range(count)),
        ],
        schema=STREAM.arrow_schema,
    )
    assert len(pack_rows(rows)) < len(encode_rows(rows)) / 3
    few = rows.slice(0, FEW)
    assert pack_rows(few) == encode_rows(few)
    assert pack_rows(rows.slice(0, 0)) == b""
