"""Subscribers see the oracle's lines out of reports that say what moved, wherever they begin, resume or ask.

Shards write such reports with few keyframes between them, some of them twice; the journal holds hardly any.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.results.alone_feed import AloneFeed
from services.results.cursor import Cursor, read_token
from services.results.encoding import Encoding
from services.results.feed import Feed
from services.results.journal import Journal
from services.results.rendition import Renditions
from services.results.report_message import ReportMessage
from services.results.selection import Selection
from services.results.snapshots import Snapshots, last_report
from services.results.update_stream import UpdateStream
from stairwise.algebra.query import Emit
from stairwise.client.receiver import Receiver
from stairwise.client.update import Update
from stairwise.reports import query_reports
from stairwise.reports.lines import line_dicts
from stairwise.state.store import MemoryStore
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import PlanLog
from stairwise.wire.reports import encode_report
from tests.oracle import run as oracle_lines
from tests.plans import plan_log
from tests.shard_lines import written
from tests.unit.results.small_reports import ListedHistory, Topic, released

QUERIES = {
    "selection": "SELECT k, v FROM s [RANGE 12 SECONDS SLIDE 3 SECONDS LAG 1 SECOND] WHERE v > -2",
    "union": "SELECT k FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] UNION ALL"
    " SELECT k FROM s [RANGE 9 SECONDS SLIDE 5 SECONDS]",
    "beyond": "SELECT k FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS] EXCEPT SELECT k FROM s [ROWS 3 SLIDE 5 SECONDS]",
    "last": "SELECT k, v FROM s [PARTITION BY k ROWS 2 SLIDE 4 SECONDS]",
    "counted": "SELECT k, v FROM s [ROWS 5 SLIDE 3]",
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [ROWS 7 SLIDE 4 SECONDS] GROUP BY k HAVING COUNT(*) > 1",
    "pairs": "SELECT x.k, COUNT(*) AS n FROM s [RANGE 8 SECONDS SLIDE 2 SECONDS] x"
    " JOIN s [RANGE 6 SECONDS SLIDE 3 SECONDS] y ON x.k = y.k GROUP BY x.k",
}
STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts LATENESS 2 SECONDS"
ENDS = frozenset({"selection", "union"})
"""Queries whose rows tell when they end."""

Line = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def few_keyframes() -> Iterator[None]:
    """A report without rows is as short as one row, so that keyframes are as rare for a few rows as for many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_reports, "MESSAGE", 1)
        yield


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries(
        {
            "ts": st.builds(lambda far, near: 150_000 * far + near, st.integers(0, 1), st.integers(0, 40_000)),
            "k": st.sampled_from(["x", "y", None]),
            "v": st.one_of(st.none(), st.integers(-3, 5)),
        }
    )
    return sorted(draw(st.lists(row, max_size=40)), key=lambda found: found["ts"])


@settings(max_examples=max(5, settings().max_examples // 2))
@given(
    name=st.sampled_from(sorted(QUERIES)),
    rows=rows(),
    emit=st.sampled_from(["CHANGES", "ISTREAM", "DSTREAM", "RSTREAM"]),
    chance=st.randoms(use_true_random=False),
)
def test_lines_are_the_oracles_from_any_position(name: str, rows: list[Line], emit: str, chance: random.Random) -> None:
    script = f"{STREAM}; CREATE QUERY q AS {QUERIES[name]} EMIT {emit}"
    plans = plan_log(script, partitions=1)
    topic = _published(plans, {"s": rows}, chance)
    expected = oracle_lines(script, {"s": rows})
    asyncio.run(_read_everywhere(topic, expected, chance, ends=name in ENDS))


async def _read_everywhere(topic: Topic, expected: list[Line], chance: random.Random, *, ends: bool) -> None:
    registered = topic.registered
    emit, times = registered.query.emit, sorted({m.headers.time for m in topic.messages if m.value})
    reader = _Reader(topic, chance)
    updates = [update async for update in reader.updates(Cursor(snapshot=emit is Emit.CHANGES))]
    assert _lines(updates) == expected
    for cut in sorted(chance.sample(range(len(updates)), min(3, len(updates)))):
        version, cursor = read_token(updates[cut].token, "q")
        assert version == registered.version
        resumed = [update async for update in _Reader(topic, chance).updates(cursor)]
        assert _lines(resumed) == _lines(updates[cut + 1 :]), "resumed from a token"
        begun = Cursor((updates[cut].time, 0), snapshot=emit is Emit.CHANGES)
        later = [update async for update in _Reader(topic, chance).updates(begun)]
        first = next(u for u in updates if u.time == updates[cut].time)
        following = [u for u in updates if u.time >= first.time][1:]
        assert _lines(later[1:]) == _lines(following), "begun at a time"
        if emit is Emit.CHANGES:
            assert later[0].snapshot == bool(later[0].changes)
            assert _added_up(later[:1]) == _added_up(updates[: updates.index(first) + 1])
    for time in chance.sample(times, min(3, len(times))):
        if emit is Emit.CHANGES:
            until = [u for u in updates if u.time <= time]
            assert await reader.snapshot(time) == sum(_added_up(until).values())
    if ends and emit is Emit.CHANGES:
        await _keep_by_ends(topic, updates, chance)


async def _keep_by_ends(topic: Topic, updates: list[Update], chance: random.Random) -> None:
    """A cache that lets rows go by their ends is the answer at every report."""
    cache: list[tuple[int, str]] = []
    start = Cursor(snapshot=True)
    async for update in _Reader(topic, chance).updates(start, lifetimes=True):
        assert all(change.diff == 1 and change.until is not None for change in update.changes)
        cache = [(until, row) for until, row in cache if until > update.time]
        cache += [(change.until, repr(change.row)) for change in update.changes if change.until is not None]
        stands = _added_up([u for u in updates if u.time <= update.time])
        assert sorted(row for _, row in cache) == sorted(row for row, n in stands.items() for _ in range(n))


def _published(plans: PlanLog, messages: Any, chance: random.Random) -> Topic:
    """The messages of the only query, in micro-batches that are cut by chance, some of them written twice."""
    (registered,) = plans.newest.queries.values()
    topic, store = Topic(registered), MemoryStore()
    for outgoing in written(plans, messages, chance, store):
        for out in outgoing * chance.choice([1, 1, 2]):
            value = b"" if out.report is None else encode_report(out.report)
            topic.messages.append(ReportMessage(out.headers, value, len(topic.messages)))
    return topic


class _Reader:
    """A replica of the service that holds little."""

    def __init__(self, topic: Topic, chance: random.Random) -> None:
        self._registered = topic.registered
        self._encoding = chance.choice(list(Encoding))
        journal = Journal(per_signature=chance.choice([1, 2000, 1 << 20]))
        journal.holds_all_of = lambda _: False
        begin = chance.randint(0, len(topic.messages))
        journal.extend(released(topic.messages[begin:]))
        history = ListedHistory(topic, reports=chance.choice([3, 1000]))
        self._feed = AloneFeed(Feed(journal, history, self._registered.signature), self._registered.query)
        self._renditions = Renditions()

    async def updates(self, cursor: Cursor, *, lifetimes: bool = False) -> AsyncIterator[Update]:
        receiver = Receiver("q", "latest", None, "arrow" if self._encoding is Encoding.ARROW else "values")
        selection = Selection(lifetimes=lifetimes)
        with self._renditions.use(self._registered, self._encoding, selection) as rendition:
            async for sending in UpdateStream(rendition, replace(cursor, filter=b""), self._feed).messages():
                update = receiver.take(pb.SubscribeResponse.FromString(sending.message))
                if update is not None:
                    yield update

    async def snapshot(self, time: int) -> int:
        """How many rows there are."""
        found = await last_report(self._registered, self._feed, time)
        page = await Snapshots().page(self._registered, found, Encoding.VALUES, Selection())
        return len(pb.SnapshotResponse.FromString(page).rows)


def _lines(updates: list[Update]) -> list[Line]:
    return [line for update in updates for line in line_dicts("q", update.emission())]


def _added_up(updates: list[Update]) -> dict[str, int]:
    """What stands after changes."""
    found: dict[str, int] = {}
    for change in (change for update in updates for change in update.changes):
        row = repr(change.row)
        found[row] = found.get(row, 0) + change.diff
    return {row: n for row, n in found.items() if n}
