"""A key's home is where publishers send its rows, and only lookups that name keys are about homes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.lookups.homes import are_at_home, have_homes, homes, homes_asked
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type
from stairwise.streams.partition import partition_of, split

COLUMNS = (
    Column("ts", Type.TIMESTAMP, nullable=False),
    Column("name", Type.STRING),
    Column("number", Type.BIGINT),
    Column("size", Type.DOUBLE),
)
BY_NAME = Stream("s", COLUMNS, timestamp_by="ts", partition_by="name", partitions=5)
BY_NUMBER = Stream("s", COLUMNS, timestamp_by="ts", partition_by="number", partitions=5)


@given(st.lists(st.none() | st.text()), st.integers(1, 64), st.integers(0, 3))
def test_texts_are_at_home_where_they_are_published_to(keys: list[str | None], partitions: int, skipped: int) -> None:
    expected = [partition_of(key, partitions) for key in keys][skipped:]
    assert homes(pa.array(keys, pa.string())[skipped:], partitions).tolist() == expected


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_at_home_where_they_are_published_to(keys: list[int | None]) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(keys, pa.int64())], names=["k"])
    assert homes(rows.column(0), 7).tolist() == split(rows, "k", 7, 0).tolist()


def test_rows_are_at_home_or_one_of_them_is_not() -> None:
    rows = pa.RecordBatch.from_pylist([{"ts": 1, "name": name} for name in "aab"], schema=BY_NAME.arrow_schema)
    home, other = partition_of("a", 5), partition_of("b", 5)
    assert home != other
    assert are_at_home(rows[:2], BY_NAME, home)
    assert not are_at_home(rows, BY_NAME, home)
    assert are_at_home(rows[:0], BY_NAME, other)


def test_numbers_with_a_fraction_have_no_home() -> None:
    """0.0 and -0.0 are one key and two texts."""
    assert not have_homes(Stream("s", COLUMNS, timestamp_by="ts", partition_by="size", partitions=5))
    assert not have_homes(Stream("s", COLUMNS, timestamp_by="ts", partitions=5))


@pytest.mark.parametrize(
    ("stream", "rest", "names"),
    [
        (BY_NAME, "[RANGE 5s] WHERE name = 'a'", ("a",)),
        (BY_NAME, "[RANGE 5s] WHERE name IN ('a', 'b') AND size > 1 GROUP BY name", ("a", "b")),
        (BY_NAME, "[RANGE 5s] WHERE name = 'a' AND number = 3", ("a",)),
        (BY_NUMBER, "[RANGE 5s] WHERE name = 'a' AND number = 3", ("3",)),
        (BY_NAME, "[RANGE 5s] WHERE number = 3", None),
        (BY_NAME, "[RANGE 5s] GROUP BY name", None),
        (BY_NAME, "[ROWS 5] WHERE name = 'a'", None),
    ],
)
def test_a_lookup_is_about_the_homes_of_the_keys_that_it_names(
    stream: Stream, rest: str, names: tuple[str, ...] | None
) -> None:
    lookup = read_lookup(f"SELECT COUNT(*) AS n FROM s {rest}", {"s": stream})
    expected = None if names is None else {partition_of(name, 5) for name in names}
    assert homes_asked(lookup, None) == expected


def test_keys_that_are_asked_one_by_one_have_homes() -> None:
    lookup = read_lookup("SELECT name, COUNT(*) AS n FROM s [RANGE 5s] GROUP BY name", {"s": BY_NAME})
    keys = pa.RecordBatch.from_arrays([pa.array(["a", "b", None])], names=["name"])
    assert homes_asked(lookup, keys) == {partition_of(key, 5) for key in ("a", "b", None)}
