"""What a worker holds of its partitions: taken once, in order, and ready only when caught up."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from services.lookups.holdings import GapError, Holdings, Partition
from stairwise.lookups.gather import look_up
from stairwise.lookups.partition_history import PAGE, Retain
from stairwise.lookups.partition_parts import OutOfReachError
from stairwise.lookups.statement import read_lookup
from stairwise.schema import DAWN, Column, Stream, Type
from stairwise.wire.batches import BatchHeaders, encode_rows

TRADES = Stream("trades", (Column("ts", Type.TIMESTAMP), Column("qty", Type.BIGINT)), timestamp_by="ts")
QUOTES = Stream("quotes", (Column("ts", Type.TIMESTAMP),), timestamp_by="ts")
KEY = ("s.trades.1", 0)


def headers(sequence: int, rows: int, watermark: int) -> BatchHeaders:
    return BatchHeaders(version=1, sequence=sequence, rows=rows, watermark=watermark, previous=DAWN)


def value(rows: int) -> bytes:
    columns = [pa.array(range(rows), pa.int64()), pa.array(range(rows), pa.int64())]
    return encode_rows(pa.RecordBatch.from_arrays(columns, schema=TRADES.arrow_schema))


def test_a_batch_counts_its_rows_and_moves_the_watermark() -> None:
    partition = Partition(TRADES, 0)
    assert partition.take(KEY, 4, headers(0, 3, 20), value(3))
    assert (partition.rows, partition.watermark, partition.next_offset) == (3, 20, 5)


def test_an_empty_batch_moves_the_watermark_alone() -> None:
    partition = Partition(TRADES, 0)
    partition.take(KEY, 0, headers(0, 3, 20), value(3))
    assert partition.take(KEY, 2, headers(3, 0, 50), b"")
    assert (partition.rows, partition.watermark) == (3, 50)


def test_a_batch_that_comes_again_is_passed_over() -> None:
    partition = Partition(TRADES, 0)
    partition.take(KEY, 0, headers(0, 3, 20), value(3))
    partition.take(KEY, 2, headers(3, 1, 30), value(1))
    assert not partition.take(KEY, 0, headers(0, 3, 20), value(3))
    assert not partition.take(KEY, 2, headers(3, 1, 30), value(1))
    assert (partition.rows, partition.watermark) == (4, 30)


def test_history_that_was_deleted_before_the_first_batch_is_no_gap() -> None:
    partition = Partition(TRADES, 0)
    assert partition.take(KEY, 700, headers(9_000, 2, 20), value(2))
    assert partition.rows == 2


def test_missing_rows_between_two_batches_are_an_error_and_not_an_answer() -> None:
    partition = Partition(TRADES, 0)
    partition.take(KEY, 0, headers(0, 3, 20), value(3))
    with pytest.raises(GapError, match=r"s\.trades\.1 partition 0 goes from row 3 to row 5"):
        partition.take(KEY, 9, headers(5, 1, 30), value(1))
    assert (partition.rows, partition.next_offset) == (3, 1)


def test_a_partition_is_ready_when_it_has_passed_what_was_there() -> None:
    partition = Partition(TRADES, 0)
    assert not partition.is_ready  # nobody knows yet what is there
    partition.target = 2
    partition.take(KEY, 0, headers(0, 1, 10), value(1))
    assert not partition.is_ready
    partition.take(KEY, 2, headers(1, 1, 20), value(1))
    assert partition.is_ready


def test_an_empty_partition_is_ready_at_once() -> None:
    assert Partition(TRADES, 0, target=-1).is_ready


def test_a_rebalance_keeps_frees_and_adds_partitions() -> None:
    holdings = Holdings()
    holdings.assign({("s.trades.1", 0): TRADES, ("s.trades.1", 1): TRADES})
    kept = holdings.get(("s.trades.1", 1))
    assert kept is not None
    kept.take(("s.trades.1", 1), 0, headers(0, 3, 20), value(3))
    kept.target = 0

    holdings.assign({("s.trades.1", 1): TRADES, ("s.quotes.1", 0): QUOTES})
    assert holdings.get(("s.trades.1", 0)) is None
    assert holdings.get(("s.trades.1", 1)) is kept
    assert list(holdings.without_target()) == [("s.quotes.1", 0)]
    assert not holdings.are_ready

    holdings.assign({("s.trades.1", 0): TRADES, ("s.trades.1", 1): TRADES})
    back = holdings.get(("s.trades.1", 0))
    assert back is not None
    assert back.rows == 0  # what was given away and comes back is read again


def test_a_worker_without_partitions_is_ready() -> None:
    assert Holdings().are_ready


def test_a_stream_that_says_how_much_to_retain_is_kept_so_and_others_as_the_service_is_set() -> None:
    settings = Retain(time=60_000, size=64 << 20)
    holdings = Holdings(settings)
    said = replace(TRADES, retain_time=5_000, retain_bytes=8 << 20, partitions=4)
    holdings.assign({("s.trades.1", 0): said, ("s.quotes.1", 0): QUOTES})
    retained = [partition.retain for _, partition in holdings]
    assert retained == [Retain(time=5_000, size=2 << 20), settings]
    altered = replace(said, retain_time=9_000, retain_bytes=None)
    holdings.redeclare({"s.trades.1": altered, "s.quotes.1": QUOTES})
    assert [partition.retain for _, partition in holdings] == [Retain(time=9_000, size=64 << 20), settings]


def test_a_window_that_reaches_back_to_what_was_deleted_is_an_error_and_never_a_wrong_answer() -> None:
    partition = Partition(replace(TRADES, partitions=1, lateness=5), 0)
    first = replace(headers(9_000, 3, 2), previous=-16)
    partition.take(KEY, 700, first, value(3))
    streams = {"trades": partition.stream}
    seen = read_lookup("SELECT COUNT(*) AS n FROM trades [FROM -9 UNTIL 9]", streams)
    assert look_up(seen, 2, {0: partition.history}).to_pylist() == [{"n": 3}]
    for window in ("FROM -10 UNTIL 9", "RANGE 60 SECONDS", "ROWS 4"):
        with pytest.raises(OutOfReachError):
            look_up(read_lookup(f"SELECT COUNT(*) AS n FROM trades [{window}]", streams), 2, {0: partition.history})


ROWS = PAGE + 1
"""Of a batch that is a page of its own, and is forgotten alone."""


def second(partition: Partition, number: int) -> None:
    """A batch of one second, and the number of both; asked at once, so that it is taken in."""
    time = 1_000 * number
    columns = [pa.array([time] * ROWS, pa.int64()), pa.array([1] * ROWS, pa.int64())]
    rows = encode_rows(pa.RecordBatch.from_arrays(columns, schema=TRADES.arrow_schema))
    headers = BatchHeaders(1, ROWS * number, ROWS, time - 1, time - 1_001, time, time)
    partition.take(KEY, number, headers, rows)
    assert partition.history.horizon < time


@pytest.mark.parametrize("ahead", [3, 59])
def test_what_is_retained_reaches_back_from_where_the_whole_stream_has_come(ahead: int) -> None:
    stream = replace(TRADES, partitions=2, retain_time=60_000)
    holdings = Holdings()
    holdings.assign({(KEY[0], 0): stream, (KEY[0], 1): stream})
    one, other = (partition for _, partition in holdings)
    for number in range(300):
        second(one, number)
        if number >= ahead:
            second(other, number - ahead)
    lookup = read_lookup("SELECT COUNT(*) AS n FROM trades [RANGE 60 SECONDS]", {"trades": stream})
    answer = look_up(lookup, other.watermark, {0: one.history, 1: other.history})
    assert answer.to_pylist() == [{"n": 120 * ROWS}]
    assert one.history.rows <= (60 + ahead + 1) * ROWS


def test_a_partition_far_ahead_keeps_twice_what_is_retained() -> None:
    stream = replace(TRADES, partitions=2, retain_time=60_000)
    holdings = Holdings()
    holdings.assign({(KEY[0], 0): stream, (KEY[0], 1): stream})
    one, _ = (partition for _, partition in holdings)
    for number in range(300):
        second(one, number)
    assert (120 - 1) * ROWS <= one.history.rows <= (120 + 1) * ROWS


def test_partitions_elsewhere_are_waited_for_as_far_as_lookups_tell() -> None:
    stream = replace(TRADES, partitions=2, retain_time=60_000)
    holdings = Holdings()
    holdings.assign({(KEY[0], 0): stream})
    ((_, here),) = holdings
    for number in range(300):
        holdings.hear(stream, 1_000 * (number - 20))
        second(here, number)
    assert (80 - 1) * ROWS <= here.history.rows <= (80 + 1) * ROWS
