"""What a shard knows of partitions that are sealed, and of its own state."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from stairwise.schema import DAWN
from stairwise.state.store import MemoryStore
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.reports import Mark, ReportHeaders
from tests.plans import plan_log

PLANS = plan_log(
    "CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
    "CREATE QUERY first AS SELECT COUNT(*) AS n FROM s [TUMBLE 1 SECOND]",
    "CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s [ROWS 4 SLIDE 2]",
)
STREAM = PLANS.newest.streams["s"]


class Partition:
    """What ingest writes to one partition."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._offset = self._rows = 0
        self._watermark = DAWN

    def batch(self, version: int, times: list[int], *, sealed: bool = False, traceparent: str = "") -> SequencedMessage:
        rows = pa.RecordBatch.from_pydict({"ts": times, "v": times}, schema=STREAM.arrow_schema)
        watermark = times[-1] - 1 if times else self._watermark
        bounds = (times[0], times[-1]) if times else (DAWN, DAWN)
        headers = BatchHeaders(version, self._rows, len(times), watermark, self._watermark, *bounds, sealed)
        message = SequencedMessage("s.s.1", self._number, self._offset, encode_rows(rows), headers, traceparent)
        self._offset, self._rows, self._watermark = self._offset + 1, self._rows + len(times), watermark
        return message

    def mark(self, version: int, watermark: int) -> SequencedMessage:
        """An empty batch that gives the partition a watermark."""
        headers = BatchHeaders(version, self._rows, 0, watermark, self._watermark)
        message = SequencedMessage("s.s.1", self._number, self._offset, b"", headers)
        self._offset, self._watermark = self._offset + 1, watermark
        return message


def test_rows_of_a_sealed_partition_count_before_a_query_that_joins_later() -> None:
    ended, going = Partition(0), Partition(1)
    messages = [ended.batch(1, [10, 20, 30], sealed=True), going.batch(1, [40, 50]), going.batch(2, [60, 70, 80, 90])]
    shard = Shard(0, 1, MemoryStore())
    for run in runs(messages):
        for _, parcel in parcels_of(run, PLANS, 1):
            shard.take(parcel, PLANS)
    signature = PLANS.newest.queries["counted"].signature
    said = [out for out in shard.advance(PLANS) if out.headers.signature == signature]
    # Five rows came before: the sixth and the eighth are the rows at 60 and 80.
    assert [out.headers.time for out in said if out.headers.mark is Mark.REPORT] == [60, 80]


def test_a_sealed_partition_says_how_high_its_rows_reach_whatever_lateness_is_now() -> None:
    """It was sealed while LATENESS was large, so its rows lie far above its watermark."""
    plans = plan_log(
        "CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2 LATENESS 10 SECONDS",
        "ALTER STREAM s SET LATENESS 0 SECONDS; CREATE QUERY first AS SELECT COUNT(*) AS n FROM s [TUMBLE 1 SECOND]",
        "DROP QUERY first",
    )
    ended, going = Partition(0), Partition(1)
    rows, seal = ended.batch(2, [10, 5_000]), ended.batch(2, [], sealed=True)
    rows = replace(rows, headers=replace(rows.headers, watermark=20, seen=DAWN))
    seal = replace(seal, headers=replace(seal.headers, watermark=20, previous=20, seen=5_000))
    shard = Shard(0, 1, MemoryStore())
    for run in runs([rows, seal, going.batch(2, [40]), going.batch(3, [])]):
        for _, parcel in parcels_of(run, plans, 1):
            shard.take(parcel, plans)
    assert [out.headers.mark for out in shard.advance(plans)] == [Mark.TURN, Mark.TURN]


def test_messages_that_follow_each_other_travel_together() -> None:
    one, other = Partition(0), Partition(1)
    messages = [one.batch(1, [10]), one.batch(1, []), one.batch(1, [20, 30], traceparent="a"), one.batch(2, [40])]
    messages += [other.batch(2, [50]), other.batch(2, [60], sealed=True)]
    together = list(runs(messages))
    assert [len(run) for run in together] == [3, 1, 2]
    ((_, parcel),) = parcels_of(together[0], PLANS, 1)
    assert parcel.headers == BatchHeaders(1, 0, 3, 29, DAWN, 10, 30)
    assert parcel.offset == 2
    assert [(context.lowest, context.traceparent) for context in parcel.contexts] == [(20, "a")]
    ((_, last),) = parcels_of(together[2], PLANS, 1)
    assert last.headers.sealed


def pages_after(queries: int, select: str) -> tuple[dict[bytes, int], int]:
    """The sizes of the pages of a shard with some queries, of which the first has the widest window, and how many
    reports it has made."""
    windows = [f"RANGE {60 - i} SECONDS SLIDE 2 SECONDS" for i in range(queries)]
    plans = plan_log(
        "CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
        + ";".join(f"CREATE QUERY q{i} AS " + select.format(window) for i, window in enumerate(windows))
    )
    store = MemoryStore()
    shard = Shard(0, 1, store)
    for partition in (Partition(0), Partition(1)):
        for _, parcel in parcels_of([partition.batch(1, list(range(0, 100_000, 50)))], plans, 1):
            shard.take(parcel, plans)
    reports = sum(out.headers.mark is Mark.REPORT for out in shard.advance(plans))
    shard.flush()
    return {key: len(page) for key, page in store.scan(b"q/")}, reports


@pytest.mark.parametrize(
    "select",
    [
        "SELECT DISTINCT v % 1000 AS k FROM s [{0}]",
        "SELECT x.v, y.v AS w FROM s [{0}] x JOIN s [RANGE 2 SECONDS SLIDE 2 SECONDS] y ON x.v = y.v",
    ],
)
def test_queries_of_one_signature_hold_one_state_and_publish_once(select: str) -> None:
    one, reports = pages_after(1, select)
    many, of_all = pages_after(30, select)
    assert of_all == reports
    assert many.keys() == one.keys()
    lives = 30 * 100
    assert sum(many.values()) < sum(one.values()) + lives


@pytest.mark.parametrize("rows", [1, 40_000, 70_000])
def test_a_run_is_bounded(rows: int) -> None:
    partition = Partition(0)
    messages = [partition.batch(1, [10 + i] * rows) for i in range(4)]
    together = list(runs(messages))
    assert [message for run in together for message in run] == messages
    assert all(len(run) == 1 or sum(m.headers.rows for m in run) <= 1 << 16 for run in together)


def test_a_leap_costs_a_few_reports_on_every_shard_also_where_none_of_its_rows_is() -> None:
    plans = plan_log(
        "CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
        "CREATE QUERY grouped AS SELECT v, COUNT(*) AS n FROM s [TUMBLE 1 SECOND] GROUP BY v;"
        "CREATE QUERY listed AS SELECT DISTINCT v FROM s [RANGE 1 MINUTE SLIDE 1 SECOND]"
    )
    late, early = Partition(0), Partition(1)
    messages = [late.batch(1, [1_700_000_000_000]), early.batch(1, [1_700_000_000], sealed=True)]
    said = {}
    for number in range(3):
        shard = Shard(number, 3, MemoryStore())
        for run in runs(messages):
            for to, parcel in parcels_of(run, plans, 3):
                if to == number:
                    shard.take(parcel, plans)
        said[number] = [out.headers for out in shard.advance(plans, 0.0)]
        assert not shard.is_behind
    assert all(sum(h.until is not None for h in headers) == 2 for headers in said.values())
    assert all(len(headers) < 100 for headers in said.values())


def test_a_leap_from_a_report_time_is_a_run_like_any_other() -> None:
    """Its reports were up to date, at an instant that is a report time itself, long after its rows had left."""
    both = Partition(0), Partition(1)
    shard = Shard(0, 1, MemoryStore())
    _advanced(shard, [partition.batch(1, [1_500]) for partition in both])
    assert _advanced(shard, [partition.mark(1, 100_000) for partition in both])[-1].end == (100_000, 0)
    leap = _advanced(shard, [partition.batch(1, [100_000_000]) for partition in both])
    assert leap[0].until is not None
    assert len(leap) < 10


def _advanced(shard: Shard, messages: list[SequencedMessage]) -> list[ReportHeaders]:
    for run in runs(messages):
        for _, parcel in parcels_of(run, PLANS, 1):
            shard.take(parcel, PLANS)
    return [out.headers for out in shard.advance(PLANS) if out.headers.mark is Mark.REPORT]


def test_a_shard_tells_what_each_signature_costs() -> None:
    shard = Shard(0, 1, MemoryStore())
    for run in runs([Partition(0).batch(1, [10, 20, 30]), Partition(1).batch(1, [40, 50])]):
        for _, parcel in parcels_of(run, PLANS, 1):
            shard.take(parcel, PLANS)
    made = [out for out in shard.advance(PLANS) if out.headers.mark is Mark.REPORT]
    shard.flush()
    told = shard.costs()
    assert told is not None
    assert sum(cost.reports for cost in told.costs.values()) == len(made)
    assert all(cost.rows == 5 and cost.cpu > 0 and cost.state > 0 for cost in told.costs.values())
    assert shard.costs() is None  # not again at once
