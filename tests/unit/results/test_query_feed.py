"""A query of a shared signature sees its own reports, and its end where it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import grpc
import pyarrow as pa
import pytest

from services.operators.parcel import Parcel
from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage as Sequenced
from services.operators.stage1 import parcels_of
from services.results.assembly import END, Released
from services.results.journal import FIRST, Journal
from services.results.query_feed import QueryFeed
from services.results.report_message import ReportMessage
from services.results.update_stream import failed
from stairwise.platform.error_status import to_status
from stairwise.reports.contract import Life
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN
from stairwise.state.store import MemoryStore
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.failures import Failure
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import LifeRecord, Mark, encode_report
from tests.plans import plan_log
from tests.unit.results.small_reports import ListedHistory, Topic, feed_over, released

KINDS = {
    "sums": "SELECT k, SUM(v) AS s FROM t [{0}] GROUP BY k EMIT CHANGES",
    "values": "SELECT DISTINCT k FROM t [{0}] EMIT CHANGES",
    "pairs": "SELECT x.k, x.v, y.v AS w FROM t [{0}] x JOIN t [{0}] y ON x.k = y.k EMIT CHANGES",
}
"""What queries may share: each kind has one that reports often and leaves, and one that joins and reports seldom."""
SCRIPTS = (
    "CREATE STREAM t (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
    + ";".join(f"CREATE QUERY often_{kind} AS " + select.format("TUMBLE 10 ms") for kind, select in KINDS.items()),
    ";".join(
        f"CREATE QUERY seldom_{kind} AS " + select.format("RANGE 40 ms SLIDE 20 ms") for kind, select in KINDS.items()
    ),
    ";".join(f"DROP QUERY often_{kind}" for kind in KINDS),
)
each_kind = pytest.mark.parametrize("kind", KINDS)
TIMES = ([1, 12, 23], [34, 41, 55], [58, 66, 71, 85])
"""The rows' times under each version."""


class Known:
    """What the service knows of plans and lives, here from the beginning."""

    def __init__(self, plans: PlanLog, lives: dict[str, LifeRecord]) -> None:
        self.plans, self.lives = plans, lives

    async def upto(self, version: int) -> PlanLog:
        return self.plans

    async def find(self, registered: Registered) -> Life:
        life = self.lives[registered.identity]
        return Life(life.after, horizon=life.horizon)


def written(
    shards: int, every: Sequence[list[int]] = TIMES, *, sealed: bool = False
) -> tuple[PlanLog, list[ReportMessage], dict[str, LifeRecord]]:
    """What the shards write for the rows."""
    plans = plan_log(*SCRIPTS)
    lives: dict[str, LifeRecord] = {}
    messages: list[ReportMessage] = []
    running = [Shard(n, shards, MemoryStore()) for n in range(shards)]
    sequence, watermark = 0, DAWN
    for version, times in enumerate(every, 1):
        columns = [pa.array(times), pa.array(["a" if t % 2 else "b" for t in times]), pa.array(times)]
        rows = pa.RecordBatch.from_arrays(columns, schema=plans.at(1).streams["t"].arrow_schema)
        ends = sealed and version == len(every)
        headers = BatchHeaders(version, sequence, len(times), times[-1] - 1, watermark, times[0], times[-1], ends)
        sequence, watermark = sequence + len(times), times[-1] - 1
        message = Sequenced("s.t.1", 0, version, encode_rows(rows), headers)
        for number, parcel in parcels_of([message], plans, shards):
            running[number].take(Parcel.decode(parcel.encode()), plans)
            for out in running[number].advance(plans):
                value = b"" if out.report is None else encode_report(out.report)
                messages.append(ReportMessage(out.headers, value, len(messages)))
                lives |= out.lives
    return plans, messages, lives


def own_feed(name: str, version: int, shards: int = 2, oversized: Sequence[int] = ()) -> QueryFeed:
    plans, messages, lives = written(shards)
    messages = [m if m.headers.time not in oversized else _oversized(m) for m in messages]
    return feed_of(name, version, plans, messages, lives)


def feed_of(
    name: str, version: int, plans: PlanLog, messages: Sequence[ReportMessage], lives: dict[str, LifeRecord]
) -> QueryFeed:
    registered = plans.at(version).queries[name]
    known, journal = Known(plans, lives), Journal()
    journal.extend(released(messages))
    feed = feed_over(journal, ListedHistory(Topic(registered)), registered.signature)
    return QueryFeed(feed, registered, known, known)


def _oversized(message: ReportMessage) -> ReportMessage:
    return replace(message, headers=replace(message.headers, mark=Mark.OVERSIZED), value=b"")


def read(feed: QueryFeed, at: tuple[int, int] = FIRST, *, before: bool = False) -> list[Released]:
    async def all_of_them() -> list[Released]:
        found = []
        async for report in feed.reports(at, before=before, patience=0.01):
            if report is None:
                break
            found.append(report)
        return found

    return asyncio.run(all_of_them())


def times(reports: Sequence[Released]) -> list[int]:
    return [r.position[0] for r in reports if r.mark is Mark.REPORT]


@each_kind
def test_a_query_sees_the_reports_that_are_its_own_and_its_end(kind: str) -> None:
    reports = read(own_feed(f"often_{kind}", 1))
    assert times(reports) == [10, 20, 30, 40, 50]
    assert [r.mark for r in reports if r.mark is not Mark.REPORT] == [Mark.LEFT]
    assert reports[-1].position == END


@each_kind
def test_a_query_that_joins_late_begins_after_the_highest_watermark_and_sees_down_to_its_horizon(kind: str) -> None:
    reports = read(own_feed(f"seldom_{kind}", 2))
    assert times(reports) == [40, 60, 80]
    # What the other query still needed when it joined at 22; a join keeps rows for one more slide.
    assert reports[0].horizon == (2 if kind == "pairs" else 20)
    query = plan_log(*SCRIPTS).at(2).queries[f"seldom_{kind}"].query
    expansion = Expansion(query)
    lines = [line for r in reports for line in line_dicts("seldom", expansion.expand(r.report()))]
    assert {(line["time"], line["diff"]) for line in lines} >= {(40, 1)}


@each_kind
def test_a_report_that_was_too_large_is_told_to_the_queries_that_were_due(kind: str) -> None:
    often = read(own_feed(f"often_{kind}", 1, oversized=[40, 50]))
    seldom = read(own_feed(f"seldom_{kind}", 2, oversized=[40, 50]))
    assert [r.position[0] for r in often if r.mark is Mark.OVERSIZED] == [40, 50]
    assert [r.position[0] for r in seldom if r.mark is Mark.OVERSIZED] == [40]
    assert times(often) == [10, 20, 30]
    assert times(seldom) == [60, 80]


@each_kind
def test_rows_of_all_shards_come_together(kind: str) -> None:
    alone, shared = (read(own_feed(f"often_{kind}", 1, shards)) for shards in (1, 3))
    assert times(alone) == times(shared)
    for one, other in zip(alone, shared, strict=True):
        if one.mark is Mark.REPORT:
            rows = [sorted(r.report().rows.to_pylist(), key=repr) for r in (one, other)]
            assert rows[0] == rows[1]


@each_kind
def test_reading_can_begin_with_the_report_before(kind: str) -> None:
    reports = read(own_feed(f"seldom_{kind}", 2), (61, 0), before=True)
    assert times(reports) == [60, 80]


@each_kind
def test_the_last_report_before_a_position_is_the_query_s_own(kind: str) -> None:
    feed = own_feed(f"seldom_{kind}", 2)
    last = asyncio.run(feed.last_before((79, 0)))
    assert last is not None
    assert last.position == (60, 0)
    assert asyncio.run(feed.last_before((39, 0))) is None
    last = asyncio.run(feed.last_before(END))
    assert last is not None
    assert last.position == (80, 0)


@each_kind
def test_the_last_report_of_a_sealed_stream_is_found_though_others_report_after_it(kind: str) -> None:
    feed = feed_of(f"often_{kind}", 1, *written(1, ([1, 12, 23], [34, 41, 45]), sealed=True))
    assert times(read(feed)) == [10, 20, 30, 40, 50]
    last = asyncio.run(feed.last_before(END))
    assert last is not None
    assert last.position == (50, 0)


@each_kind
def test_a_run_that_was_too_large_is_told_wherever_a_reader_begins(kind: str) -> None:
    plans, messages, lives = written(1, ([1, 12], [34, 9_000], [9_010, 9_020]))
    runs = [m for m in messages if m.headers.until is not None]
    assert len(runs) == len(KINDS)
    large = [_oversized(m) if m in runs else m for m in messages]
    for at in (FIRST, (5_000, 0)):
        reports = read(feed_of(f"often_{kind}", 1, plans, large, lives), at)
        assert sum(r.mark is Mark.OVERSIZED for r in reports) == 1
        assert all(r.position >= at for r in reports)


@each_kind
def test_a_query_ends_with_the_failure_of_its_signature(kind: str) -> None:
    plans, messages, lives = written(1)
    signature = plans.at(1).queries[f"often_{kind}"].signature
    upto = next(i for i, m in enumerate(messages) if m.headers.signature == signature and m.headers.time == 30)
    last = messages[upto]
    failure = Failure(signature, "too large", 30)
    headers = replace(last.headers, mark=Mark.FAILED)
    before = [*messages[: upto + 1], ReportMessage(headers, failure.encode(), len(messages))]
    reports = read(feed_of(f"often_{kind}", 1, plans, before, lives))
    assert times(reports) == [10, 20, 30]
    assert (reports[-1].mark, reports[-1].position) == (Mark.FAILED, END)
    error = failed(plans.at(1).queries[f"often_{kind}"].query, reports[-1], b"token")
    assert to_status(error).code == grpc.StatusCode.FAILED_PRECONDITION
    assert "too large" in error.message
    assert error.token == b"token"
