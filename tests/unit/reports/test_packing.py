"""Published answers take as few bytes as they need, and are read as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stairwise.reports.packing import FEW, packed, unpacked

MANY = 2 * FEW
HUGEINT = pa.decimal128(38, 0)


def column_of(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array((values * MANY)[:MANY], kind)


@pytest.mark.parametrize("kind", [pa.int64(), HUGEINT])
@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([0, -128, 127], 8),
        ([None], 8),
        ([None, 128], 16),
        ([-(2**15) - 1, 5], 32),
        ([2**31, None, 0], 64),
        ([-(2**63), 2**63 - 1], 64),
    ],
)
def test_integers_take_the_width_of_the_largest(values: list[int | None], width: int, kind: pa.DataType) -> None:
    column = column_of(values, kind)
    rows = packed(pa.record_batch({"n": column}))
    assert rows.schema.field("n").type.bit_width == width
    assert unpacked(rows, "n").equals(column)
    assert unpacked(rows.slice(3, 7), "n").equals(column.slice(3, 7))
    assert unpacked(rows.take(pa.array([5, 1])), "n").equals(column.take(pa.array([5, 1])))


def test_sums_beyond_64_bits_stay_as_they_are() -> None:
    column = column_of([2**63, -1], HUGEINT)
    rows = packed(pa.record_batch({"n": column}))
    assert rows.schema.field("n").type == HUGEINT
    assert unpacked(rows, "n").equals(column)


@pytest.mark.parametrize("keys", [3, 200, 40_000])
def test_keys_are_the_same_under_narrower_codes(keys: int) -> None:
    codes = pa.array([number % keys for number in range(max(keys, MANY))], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array([f"key {number}" for number in range(keys)]))
    found = unpacked(packed(pa.record_batch({"k": column})), "k")
    assert found.type.index_type.bit_width == {3: 8, 200: 16, 40_000: 32}[keys]
    assert found.dictionary_decode().equals(column.dictionary_decode())


def test_other_columns_and_few_rows_pass_as_they_are() -> None:
    doubles = pa.array([0.5] * MANY)
    assert packed(pa.record_batch({"x": doubles})).column("x").equals(doubles)
    few = pa.record_batch({"n": pa.array([1, 2, 3])})
    assert packed(few) is few


def test_what_a_batch_says_beside_its_rows_stays() -> None:
    rows = pa.record_batch({"n": column_of([1], pa.int64())}).replace_schema_metadata({b"stair": b"steps"})
    assert packed(rows).schema.metadata == {b"stair": b"steps"}
