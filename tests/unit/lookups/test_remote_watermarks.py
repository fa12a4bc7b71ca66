"""What others told of their partitions stays true, and is enough for keys that are at home here."""

from __future__ import annotations

import pyarrow as pa
import pytest

from services.lookups.holdings import Holdings
from services.lookups.lookup_steps import KeyedLookup, StepAnswer
from services.lookups.remote_watermarks import RemoteWatermarks
from stairwise.lookups.statement import read_lookup
from stairwise.schema import DAWN, DUSK, Column, Stream, Type
from stairwise.streams.partition import partition_of
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows

COLUMNS = (Column("ts", Type.TIMESTAMP, False), Column("k", Type.STRING), Column("n", Type.BIGINT))
STREAM = Stream("s", COLUMNS, timestamp_by="ts", partition_by="k", partitions=2)
HERE, ELSEWHERE = (next(f"k{n}" for n in range(99) if partition_of(f"k{n}", 2) == part) for part in (0, 1))


def asked(rest: str) -> list[KeyedLookup]:
    return [KeyedLookup(read_lookup(f"SELECT COUNT(*) AS n FROM s [RANGE 5s] {rest}", {"s": STREAM}))]


OURS = asked(f"WHERE k = '{HERE}'")


def take(holdings: Holdings, offset: int, *rows: tuple[int, str], watermark: int, sealed: bool = False) -> None:
    key = (topics.sequenced(STREAM), 0)
    partition = holdings.get(key)
    assert partition is not None
    partition.target = 0
    batch = pa.RecordBatch.from_pylist([{"ts": ts, "k": k} for ts, k in rows], schema=STREAM.arrow_schema)
    highest = max((ts for ts, _ in rows), default=DAWN)
    headers = BatchHeaders(1, partition.rows, len(rows), watermark, DAWN, DAWN, highest, sealed=sealed)
    partition.take(key, offset, headers, encode_rows(batch))


@pytest.fixture
def holdings() -> Holdings:
    """Partition 0 of two, up to 20."""
    holdings = Holdings()
    holdings.assign({(topics.sequenced(STREAM), 0): STREAM})
    take(holdings, 0, (10, HERE), (21, HERE), watermark=20)
    return holdings


def test_nothing_is_known_before_anything_was_told(holdings: Holdings) -> None:
    assert RemoteWatermarks(holdings).instant(OURS) is None


@pytest.mark.parametrize(("told", "at"), [(15, 15), (99, 20), (DAWN, None)])
def test_time_goes_as_far_as_all_were_heard_of(holdings: Holdings, told: int, at: int | None) -> None:
    remote = RemoteWatermarks(holdings)
    remote.hear(STREAM, [1], StepAnswer(told, 100, tidy=True))
    assert remote.instant(OURS) == at


def test_a_sealed_stream_has_ended_with_its_last_row(holdings: Holdings) -> None:
    remote = RemoteWatermarks(holdings)
    remote.hear(STREAM, [1], StepAnswer(DUSK, 40, tidy=True))
    take(holdings, 1, watermark=20, sealed=True)
    assert remote.instant(OURS) == 40


def test_only_tidy_partitions_can_be_passed_over(holdings: Holdings) -> None:
    remote = RemoteWatermarks(holdings)
    remote.hear(STREAM, [1], StepAnswer(15, 100, tidy=True))
    remote.hear(STREAM, [1], StepAnswer(16, 100, tidy=False))
    assert remote.instant(OURS) is None


@pytest.mark.parametrize(
    "rest", [f"WHERE k = '{ELSEWHERE}'", f"WHERE k IN ('{HERE}', '{ELSEWHERE}')", "WHERE n = 1", ""]
)
def test_what_may_be_elsewhere_waits(holdings: Holdings, rest: str) -> None:
    remote = RemoteWatermarks(holdings)
    remote.hear(STREAM, [1], StepAnswer(15, 100, tidy=True))
    assert remote.instant(asked(rest)) is None


def test_a_partition_is_tidy_until_a_row_lies_astray(holdings: Holdings) -> None:
    partition = holdings.get((topics.sequenced(STREAM), 0))
    assert partition is not None
    assert partition.history.is_tidy
    take(holdings, 1, (30, HERE), (31, ELSEWHERE), watermark=30)
    take(holdings, 2, (40, HERE), watermark=39)
    assert not partition.history.is_tidy


def test_a_partition_whose_beginning_was_deleted_is_not_known_to_be_tidy() -> None:
    holdings = Holdings()
    key = (topics.sequenced(STREAM), 0)
    holdings.assign({key: STREAM})
    partition = holdings.get(key)
    assert partition is not None
    partition.take(key, 7, BatchHeaders(1, 500, 0, 20, 10), b"")
    assert not partition.history.is_tidy
