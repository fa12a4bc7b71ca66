"""RETAIN ... AT MOST bounds rows and structures together, whatever is asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.gather import look_up, look_up_each
from stairwise.lookups.index_shelf import FEW, PATIENCE
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.lookups.partition_parts import TooLargeError
from stairwise.lookups.statement import read_lookup
from stairwise.schema import DAWN, Column, Stream, Type

STREAM = Stream(
    "s",
    (Column("ts", Type.TIMESTAMP, False), Column("k", Type.STRING), Column("n", Type.BIGINT)),
    timestamp_by="ts",
    partitions=1,
)
BATCH = 1_000
ROWS = 100_000


def take(history: PartitionHistory, first: int, rows: int) -> None:
    for start in range(first, first + rows, BATCH):
        times = np.arange(start, start + BATCH)
        keys = pa.array([f"k{number % 97}" for number in times.tolist()])
        columns = [pa.array(times), keys, pa.array(times % 1000)]
        history.take(pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema), start + BATCH - 1)


def filled(size: int) -> PartitionHistory:
    history = PartitionHistory(STREAM, 0, Retain(2**60, size))
    take(history, 0, ROWS)
    return history


def test_many_signatures_stay_within_the_bound_and_the_past_stays_whole() -> None:
    size = 8 << 20
    history = filled(size)
    at = ROWS - 1
    for number in range(25):
        lookup = read_lookup(f"SELECT k, SUM(n) AS v FROM s [FROM 0] WHERE n <> {number} GROUP BY k", {"s": STREAM})
        for _ in range(2):
            found = look_up(lookup, at, {0: history}).to_pylist()
            assert sum(int(row["v"]) for row in found) == sum(n for n in range(1000) if n != number) * ROWS // 1000
            assert history.size_bytes <= 1.1 * size
    assert history.horizon == DAWN


def test_structures_that_are_asked_often_may_take_the_place_of_most_rows_and_not_all() -> None:
    size = 6 << 20
    history = filled(size)
    lookup = read_lookup("SELECT k, SUM(n) AS v, COUNT(*) AS c FROM s [RANGE 500 ms] GROUP BY k", {"s": STREAM})
    for start in range(ROWS, 3 * ROWS, BATCH):
        take(history, start, BATCH)
        for _ in range(2):
            look_up(lookup, start + BATCH - 1, {0: history})
        assert history.size_bytes <= 1.1 * size
    assert "structures over 97 keys" in history.describe(lookup)
    assert history._page_bytes > size // 5


def test_keys_that_never_came_leave_nothing() -> None:
    history = filled(64 << 20)
    lookup = read_lookup("SELECT k, SUM(n) AS v, MAX(n) AS m FROM s [FROM 0] GROUP BY k", {"s": STREAM})
    sizes = []
    for start in range(0, 50_000, 10_000):
        asked = [f"unknown{number}" for number in range(start, start + 10_000)] + ["k1"]
        keys = pa.RecordBatch.from_arrays([pa.array(asked)], names=["k0"])
        found = look_up_each(lookup, ROWS - 1, {0: history}, keys, None)
        assert found.column("v").null_count == found.column("m").null_count == 10_000
        assert int(found.column("v")[10_000].as_py()) == sum(n % 1000 for n in range(1, ROWS, 97))
        sizes.append(history.size_bytes)
    assert sizes[0] == sizes[-1]
    one = read_lookup("SELECT COUNT(*) AS c FROM s [FROM 0] WHERE k = 'later'", {"s": STREAM})
    for _ in range(3):
        assert look_up(one, ROWS - 1, {0: history}).to_pylist() == [{"c": 0}]
    columns = [pa.array([ROWS]), pa.array(["later"]), pa.array([1])]
    history.take(pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema), ROWS)
    assert look_up(one, ROWS, {0: history}).to_pylist() == [{"c": 1}]


def test_a_structure_that_is_half_made_ages_too() -> None:
    history = PartitionHistory(STREAM, 0, Retain(2 * FEW, 2**40))
    take(history, 0, 2 * BATCH)
    lookup = read_lookup("SELECT k, SUM(n) AS v FROM s [FROM 0] GROUP BY k", {"s": STREAM})
    for _ in range(2):
        history.index(lookup, WindowExtent(DAWN, 2 * BATCH))
    (making,) = history.makings
    take(history, 2 * BATCH, 4 * PATIENCE * FEW)
    assert not history.makings
    assert making.is_given_up
    assert history.adopt(making)


def test_what_only_structures_can_answer_says_so_where_they_do_not_fit() -> None:
    history = filled(2 << 20)
    asked = pa.RecordBatch.from_arrays([pa.array(["k1"])], names=["k0"])
    lookup = read_lookup("SELECT k, SUM(n) AS v, VARIANCE(n) AS w FROM s [RANGE 9 ms] GROUP BY k", {"s": STREAM})
    history.keep(Retain(2**60, 200_000))
    with pytest.raises(TooLargeError, match="do not fit into what s may keep"):
        look_up_each(lookup, ROWS - 1, {0: history}, asked, None)
