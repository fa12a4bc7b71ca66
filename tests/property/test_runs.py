"""Stretches in which nothing changes are passed over, published and read as runs, and nobody can tell from the lines.

Here every stretch of two report times is a run, and a micro-batch has time for one part of each signature's reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.operators import pacing
from services.operators.shard import Shard, ShardReport
from services.operators.stage1 import parcels_of, runs
from services.results.alone_feed import AloneFeed
from services.results.assembly import END
from services.results.journal import FIRST, Journal
from services.results.moved_report import whole_report
from services.results.query_feed import QueryFeed
from services.results.report_message import ReportMessage
from stairwise.reports import runs as quiet
from stairwise.reports.contract import Position
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK
from stairwise.state.store import MemoryStore
from stairwise.windows.schedule import Grid, count_due, grid_blocks
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import LifeRecord, Mark, encode_report
from tests.oracle import evaluate
from tests.oracle import run as oracle_lines
from tests.plans import as_script, plan_log
from tests.property.generate import LEAPS, Case, cases
from tests.property.test_shard import (
    DECLARED,
    DROPPED,
    FEWER,
    PARTITIONS,
    SCRIPTS,
    Written,
    first_watermark,
    oracle_rows,
    reached_before,
)
from tests.unit.local.lines import engine_lines
from tests.unit.results.small_reports import ListedHistory, Topic, feed_over, released
from tests.unit.results.test_query_feed import Known

MORE = (
    "CREATE QUERY landmark AS SELECT k, COUNT(*) AS n FROM s [FROM 0 SLIDE 3 SECONDS] GROUP BY k EMIT CHANGES;"
    "CREATE QUERY bounded AS SELECT COUNT(*) AS n, SUM(v) AS t FROM s [FROM 10000 UNTIL 90000 SLIDE 2 SECONDS];"
    "CREATE QUERY slope AS SELECT REGR_INTERCEPT(v) AS i FROM s [FROM 0 SLIDE 5 SECONDS];"
    "CREATE QUERY newest AS SELECT k, v FROM s [PARTITION BY k ROWS 1 SLIDE 3 SECONDS] EMIT RSTREAM;"
    "CREATE QUERY either AS SELECT k FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] EXCEPT"
    " SELECT k FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS LAG 4 SECONDS];"
    "CREATE QUERY levels AS SELECT COUNT(*) AS n FROM s [RANGES 24 SECONDS, 6 SECONDS SLIDES 12 SECONDS, 3 SECONDS]"
    " EMIT CHANGES;"
    "CREATE QUERY all_levels AS SELECT COUNT(*) AS n FROM s [RANGES 24 SECONDS, 6 SECONDS SLIDES 12 SECONDS, 3 SECONDS]"
)
PLANS: PlanLog = plan_log(SCRIPTS[0] + ";" + MORE, *SCRIPTS[1:])


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Every stretch is a run, and every part of the way is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, "LEAST", 1)
        patch.setattr(pacing, "PART_REPORTS", 3)
        patch.setattr(pacing, "PART_ROWS", 4)
        yield


@given(cases(rows=12, steps=LEAPS), st.randoms(use_true_random=False))
def test_the_local_engine_leaves_out_what_does_not_change(case: Case, chance: Any) -> None:
    expected = oracle_lines(case.script, case.messages)
    assert engine_lines(case.script, case.messages, chance=chance, remake=True) == expected
    assert engine_lines(case.script, case.messages, chance=chance, sharing=False) == expected


@st.composite
def leaping(draw: st.DrawFn) -> list[Written]:
    """Partitions whose rows lie close together here and far apart there."""
    row = st.tuples(
        st.builds(lambda far, near: 150_000 * far + near, st.integers(0, 2), st.integers(0, 20_000)),
        st.sampled_from(["x", "y", None]),
        st.one_of(st.none(), st.integers(-5, 5)),
    )
    written = []
    for number in range(PARTITIONS):
        versions = sorted(draw(st.lists(st.integers(1, len(SCRIPTS)), min_size=1, max_size=5)))
        batches = [(version, sorted(draw(st.lists(row, max_size=5)), key=lambda r: r[0])) for version in versions]
        written.append(Written(number, batches))
    return written


@settings(parent=FEWER, max_examples=max(4, FEWER.max_examples // 2))
@given(leaping(), st.sampled_from([1, 3]), st.randoms(use_true_random=False))
def test_subscribers_see_the_oracles_lines_through_runs(written: list[Written], shards: int, chance: Any) -> None:
    queues = [w.messages() for w in written]
    messages, lives = publish([m for queue in queues for m in queue], shards, chance)
    rows = {"s": [row for queue in queues for message in queue for row in oracle_rows(message)]}
    for registered in PLANS.registered("s", 0, len(SCRIPTS)):
        after = max(first_watermark(queue, registered.version) for queue in queues)
        horizon = reached_before(queues, registered.version, after)
        if registered.shared is not None:
            horizon = lives[registered.identity].horizon
        dropped = DROPPED.get(registered.identity)
        until = DUSK if dropped is None else min(first_watermark(queue, dropped) for queue in queues)
        told = evaluate(as_script(DECLARED, registered.query), rows, after=after, horizon=horizon)
        expected = [line for line in told if line["time"] <= until]
        feed = feed_of(registered, messages, lives)
        assert read(feed, registered) == expected
        middle = (chance.choice([line["time"] for line in expected] or [0]) + chance.choice([0, 1]), 0)
        assert read(feed, registered, middle) == [line for line in expected if line["time"] >= middle[0]]


def publish(messages: Sequence[Any], shards: int, chance: Any) -> tuple[list[ReportMessage], dict[str, LifeRecord]]:
    """What the shards write, in micro-batches that are cut by chance, some of them written twice."""
    topic: list[ReportMessage] = []
    lives: dict[str, LifeRecord] = {}
    stores = [MemoryStore() for _ in range(shards)]
    taken: list[Any] = []

    def write(outgoing: Sequence[ShardReport]) -> None:
        for out in outgoing:
            value = b"" if out.report is None else encode_report(out.report)
            topic.append(ReportMessage(out.headers, value, len(topic)))
            lives.update(out.lives)

    for i, message in enumerate(messages):
        taken.append(message)
        if i < len(messages) - 1 and chance.random() < 0.5:
            continue
        parcels = [found for together in runs(taken) for found in parcels_of(together, PLANS, shards)]
        taken = []
        for number, store in enumerate(stores):
            shard = Shard(number, shards, store)
            for to, parcel in parcels:
                if to == number:
                    shard.take(parcel, PLANS)
            write(outgoing := list(shard.advance(PLANS, chance.choice([0.0, float("inf")]))))
            if chance.random() < 0.2:
                write(outgoing)
            shard.flush()
            while i == len(messages) - 1 and shard.is_behind:
                write(list(shard.advance(PLANS, 0.0)))
    return topic, lives


def feed_of(
    registered: Registered, messages: Sequence[ReportMessage], lives: dict[str, LifeRecord]
) -> AloneFeed | QueryFeed:
    known, journal = Known(PLANS, lives), Journal()
    mine = [replace(m, offset=i) for i, m in enumerate(messages) if m.headers.signature == registered.signature]
    journal.extend(released(mine))
    feed = feed_over(journal, ListedHistory(Topic(registered)), registered.signature)
    return AloneFeed(feed, registered.query) if registered.shared is None else QueryFeed(feed, registered, known, known)


def read(feed: AloneFeed | QueryFeed, registered: Registered, at: Position = FIRST) -> list[dict[str, Any]]:
    """The lines from a position on, as one who has seen all before it gets them."""

    async def lines() -> list[dict[str, Any]]:
        expansion, found = Expansion(registered.query), []
        back = max(at[0] - 30_000, DAWN)  # as far back as levels are compared
        async for report in feed.reports((back, 0) if at > FIRST else at, before=at > FIRST, patience=0.001):
            if report is None or report.position == END:
                break
            if report.mark is Mark.REPORT:
                shown = expansion.expand(await whole_report(report, registered.query))
                found += line_dicts(registered.query.name, shown) if report.position >= at else []
        return found

    return asyncio.run(lines())


GRIDS = st.lists(st.builds(Grid, st.integers(1, 12), st.integers(0, 11)), min_size=1, max_size=4)


@given(GRIDS, st.integers(-50, 50), st.integers(0, 200))
def test_report_times_are_counted_without_going_through_them(grids: list[Grid], after: int, length: int) -> None:
    times = [t for block in grid_blocks(grids, after, after + length) for t in block.tolist()]
    assert count_due(grids, after, after + length) == len(times)
    assert np.all(np.diff(times) > 0)
