"""What a partition keeps while keys come and go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from stairwise.lookups import index_shelf, signature_index
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.gather import look_up
from stairwise.lookups.partition_history import LUMP, PartitionHistory, Retain
from stairwise.lookups.partition_parts import OutOfReachError
from stairwise.lookups.scan import finished
from stairwise.lookups.settled_rows import SettledRows
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type

STREAM = Stream(
    "s",
    (Column("ts", Type.TIMESTAMP, nullable=False), Column("k", Type.BIGINT)),
    timestamp_by="ts",
    partitions=1,
)
COUNTED = read_lookup("SELECT COUNT(*) AS n FROM s [RANGE 1s]", {"s": STREAM})


def test_keys_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_index, "_FEW_KEYS", 100)
    history = PartitionHistory(STREAM, 0, Retain(1_000, 2**40))
    lookup = read_lookup("SELECT k, COUNT(*) AS n FROM s [RANGE 500 ms] GROUP BY k HAVING COUNT(*) > 0", {"s": STREAM})
    sizes = []
    for start in range(0, 400_000, 1_000):
        times = np.arange(start, start + 1_000)
        rows = pa.RecordBatch.from_arrays([pa.array(times), pa.array(times // 2)], schema=STREAM.arrow_schema)
        history.take(rows, start + 999)
        assert look_up(lookup, start + 999, {0: history}).num_rows == 250
        sizes.append(history.size_bytes)
    assert max(sizes[200:]) <= 2 * max(sizes[:200])


def test_many_batches_of_text_are_counted_for_as_long_as_they_are_kept() -> None:
    stream = replace(STREAM, columns=(*STREAM.columns, Column("line", Type.STRING)))
    history = PartitionHistory(stream, 0, Retain(1_000, 2**40))
    for start in range(0, 200_000, 100):
        columns = [pa.array(range(start, start + 100)), pa.array([0] * 100), pa.array(["x" * 20] * 100)]
        history.take(pa.RecordBatch.from_arrays(columns, schema=stream.arrow_schema), start + 99)
    kept = finished(history.scan(COUNTED, WindowExtent(0, 200_000)).work()).column(0)[0].as_py()
    assert kept <= 3_100
    assert history.size_bytes <= kept * (8 + 8 + 24) + 2_000


def test_rows_that_nobody_asked_for_are_there_when_somebody_does() -> None:
    history = PartitionHistory(STREAM, 0, Retain(5_000, 2**40))
    lookup = read_lookup("SELECT COUNT(*) AS n FROM s [RANGE 500 ms]", {"s": STREAM})
    for start in range(0, 3 * LUMP, 1_000):
        times = pa.array(np.arange(start, start + 1_000))
        history.take(pa.RecordBatch.from_arrays([times, times], schema=STREAM.arrow_schema), start + 900)
        if start % 7_000 == 0:  # now and then, so that more or less lies there
            assert look_up(lookup, start + 900, {0: history}).to_pylist() == [{"n": min(500, start + 901)}]
    assert history.horizon > 0


def test_a_index_that_is_asked_stays_however_short_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given = 0

    def update(index: SignatureIndex, rows: SettledRows, first: int) -> None:
        nonlocal given
        given += len(rows)
        update_index(index, rows, first)

    update_index = SignatureIndex.update
    monkeypatch.setattr(SignatureIndex, "update", update)
    history, limit = PartitionHistory(STREAM, 0, Retain(2**40, 1 << 20)), 1 << 20
    lookup = read_lookup("SELECT k, SUM(k) AS n, COUNT(*) AS m FROM s [RANGE 500 ms] GROUP BY k", {"s": STREAM})
    end = 400_000
    for start in range(0, end, 1_000):
        times = np.arange(start, start + 1_000)
        history.take(
            pa.RecordBatch.from_arrays([pa.array(times), pa.array(times % 50)], schema=STREAM.arrow_schema), start + 999
        )
        assert look_up(lookup, start + 999, {0: history}).num_rows == 50
        assert history.size_bytes <= limit
    assert given < 2 * end
    assert history._page_bytes > limit // 10


def test_an_index_of_rows_is_no_filter() -> None:
    history = PartitionHistory(STREAM, 0, Retain())
    times = pa.array(np.arange(100))
    history.take(pa.RecordBatch.from_arrays([times, times], schema=STREAM.arrow_schema), 99)
    median = "SELECT k, MEDIAN(k) AS m FROM s [RANGE 10 ms]"
    for rest in ("WHERE k = 95 GROUP BY k", "GROUP BY k HAVING MAX(k) > 94 AND MAX(k) < 96"):
        for _ in range(3):  # from the rows, and then from an index where there is one
            lookup = read_lookup(f"{median} {rest}", {"s": STREAM})
            assert look_up(lookup, 99, {0: history}).to_pylist() == [{"k": 95, "m": 95.0}]


def test_signatures_that_were_asked_once_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_shelf, "MOST_USES", 20)
    history = PartitionHistory(STREAM, 0, Retain())
    for number in range(40):
        history.index(
            read_lookup(f"SELECT COUNT(*) FROM s [RANGE 1s] WHERE k > {number}", {"s": STREAM}), WindowExtent(0, 9)
        )
    assert len(history._shelf) == 20


def test_what_is_kept_shrinks_at_once_and_grows_from_then_on() -> None:
    history = PartitionHistory(STREAM, 0, Retain(100_000, 2**40))
    pieces = [np.arange(start, start + 5_000) for start in range(0, 30_000, 5_000)]

    def count(rear: int, at: int) -> object:
        text = f"SELECT COUNT(*) AS n FROM s [FROM {rear + 1} UNTIL {at}]"
        return look_up(read_lookup(text, {"s": STREAM}), at, {0: history}).to_pylist()[0]["n"]

    for times in pieces[:4]:
        history.take(pa.RecordBatch.from_arrays([pa.array(times)] * 2, schema=STREAM.arrow_schema), int(times[-1]))
    assert count(-1, 19_999) == 20_000
    history.keep(Retain(9_000, 2**40))
    assert history.horizon == 9_999
    assert count(9_999, 19_999) == 10_000
    with pytest.raises(OutOfReachError, match="kept from 10000 on"):
        count(9_998, 19_999)
    history.keep(Retain(100_000, 2**40))
    for times in pieces[4:]:
        history.take(pa.RecordBatch.from_arrays([pa.array(times)] * 2, schema=STREAM.arrow_schema), int(times[-1]))
    assert count(9_999, 29_999) == 20_000
    with pytest.raises(OutOfReachError, match="SET RETAIN"):
        count(-1, 29_999)
