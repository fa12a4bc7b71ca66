"""Reports that say what moved, beside those of before, without their keyframe, and where one is too large."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from services.operators.shard import ShardReport
from services.operators.stage2 import Bounds
from services.results.alone_feed import AloneFeed
from services.results.cursor import Cursor, read_token
from services.results.encoding import Encoding
from services.results.feed import Feed
from services.results.journal import Journal
from services.results.moved_report import whole_report
from services.results.rendition import Renditions
from services.results.report_message import ReportMessage
from services.results.selection import Selection, selection_of
from services.results.update_stream import UpdateStream
from stairwise.client.receiver import Receiver
from stairwise.client.update import Update
from stairwise.errors import GoneError
from stairwise.reports.contract import Position, Report
from stairwise.reports.expansion import report_schema
from stairwise.reports.standing_answer import DIFF, UNTIL
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark, ReportHeaders, encode_report
from tests.unit.results.small_reports import ListedHistory, Topic, query_of

RECENT = query_of("SELECT k, v FROM t [RANGE 20 ms SLIDE 10 ms] EMIT CHANGES")
BEYOND = query_of("SELECT k FROM t [RANGE 20 ms SLIDE 10 ms] EXCEPT SELECT k FROM t [NOW] EMIT CHANGES")
Moved = tuple[object, ...]


class MovingTopic(Topic):
    """A topic with reports that say what moved."""

    def __init__(self, registered: Registered, last: pa.Field) -> None:
        super().__init__(registered)
        self._last = last
        self._keyframe: Position = (0, 0)

    def moves(self, time: int, *moved: Moved, before: tuple[Moved, ...] | None = None) -> Report:
        """Rows with their end, or diff; a keyframe where it is said what stood before."""
        if before is not None:
            self._keyframe = (time, 0)
        stood = None if before is None else self._batch(before)
        report = Report(self.registered.signature, time, self._batch(moved), keyframe=self._keyframe, before=stood)
        headers = ReportHeaders(self.registered.signature, 0, 1, time).of(report)
        self.messages.append(ReportMessage(headers, encode_report(report), next(self._offsets)))
        return report

    def _batch(self, rows: tuple[Moved, ...]) -> pa.RecordBatch:
        schema = report_schema(self.registered.query).append(self._last)
        arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def feed(topic: Topic, retained_from: int = 0) -> AloneFeed:
    journal = Journal()
    journal.holds_all_of = lambda _: False
    history = ListedHistory(topic, retained_from)
    return AloneFeed(Feed(journal, history, topic.registered.signature), topic.registered.query)


def subscribe(topic: Topic, cursor: Cursor, retained_from: int = 0, selection: Selection | None = None) -> list[Update]:
    """All updates up to the end."""

    async def read() -> list[Update]:
        receiver, found = Receiver("q", "latest", None, "values"), []
        with Renditions().use(topic.registered, Encoding.VALUES, selection or Selection()) as rendition:
            async for sending in UpdateStream(rendition, cursor, feed(topic, retained_from)).messages():
                update = receiver.take(pb.SubscribeResponse.FromString(sending.message))
                found += [] if update is None else [update]
        return found

    return asyncio.run(read())


def shown(updates: list[Update]) -> list[tuple[int, list[Moved]]]:
    """Of each update its time, and of each change its diff, its values and its end."""
    return [(u.time, [(c.diff, *c.row.values(), c.until) for c in u.changes]) for u in updates]


def test_whole_answers_of_before_and_moves_are_read_one_after_the_other() -> None:
    topic = MovingTopic(RECENT, UNTIL)
    topic.report(10, [("a", 1), ("b", 2)])
    topic.report(20, [("b", 2), ("c", 3)])
    topic.moves(30, ("d", 4, 50), before=(("b", 2, 30), ("c", 3, 40)))
    topic.moves(40, ("c", 3, 60))
    topic.end()
    updates = subscribe(topic, Cursor(snapshot=True))
    assert shown(updates) == [
        (10, [(1, "a", 1, None), (1, "b", 2, None)]),
        (20, [(-1, "a", 1, None), (1, "c", 3, None)]),
        (30, [(-1, "b", 2, 30), (1, "d", 4, 50)]),
        (40, []),  # one c has ended, another has come
    ]
    for i, update in enumerate(updates):
        _, cursor = read_token(update.token, "q")
        assert shown(subscribe(topic, cursor)) == shown(updates[i + 1 :])


def test_who_lets_rows_go_by_their_ends_begins_where_these_are_told() -> None:
    topic = MovingTopic(RECENT, UNTIL)
    topic.report(10, [("a", 1), ("b", 2)])
    topic.moves(20, ("c", 3, 40), before=(("a", 1, 20), ("b", 2, 30)))
    topic.moves(30, ("b", 2, 50))
    topic.end()
    asked = selection_of(RECENT.query, [], lifetimes=True)
    assert asked.digest != selection_of(RECENT.query, []).digest
    updates = subscribe(topic, Cursor(snapshot=True), selection=asked)
    assert shown(updates) == [(20, [(1, "b", 2, 30), (1, "c", 3, 40)]), (30, [(1, "b", 2, 50)])]
    assert not selection_of(BEYOND.query, [], lifetimes=True).lifetimes, "its rows tell no ends"


def test_reading_begins_at_the_first_keyframe_that_is_retained() -> None:
    topic = MovingTopic(BEYOND, DIFF)
    topic.moves(10, ("a", 1), ("b", 1), before=())
    topic.moves(20, ("a", -1))
    topic.moves(30, ("c", 1))
    topic.moves(40, ("b", -1), before=(("b", 1), ("c", 1)))
    topic.end()
    everything = subscribe(topic, Cursor(snapshot=True))
    assert [update.time for update in everything] == [10, 20, 30, 40]
    late = subscribe(topic, Cursor(snapshot=True), retained_from=1)
    assert shown(late) == [(40, [(1, "c", None)])]
    _, cursor = read_token(everything[1].token, "q")
    with pytest.raises(GoneError, match="no longer retained"):
        subscribe(topic, cursor, retained_from=1)


def test_a_snapshot_of_any_time_is_put_together() -> None:
    topic = MovingTopic(RECENT, UNTIL)
    topic.moves(10, ("a", 1, 30), before=())
    topic.moves(20, ("b", 2, 40))
    topic.moves(30)
    topic.moves(40, ("c", 3, 60), before=(("b", 2, 40),))

    async def rows(time: int) -> list[dict[str, object]]:
        found = await feed(topic).last_before((time, 1))
        assert found is not None
        return (await whole_report(found, RECENT.query)).rows.to_pylist()

    answers = {10: ["a"], 20: ["a", "b"], 30: ["b"], 40: ["c"]}
    assert {time: [row["k"] for row in asyncio.run(rows(time))] for time in answers} == answers


def test_a_keyframe_that_only_a_replay_has_written_is_not_needed() -> None:
    topic = MovingTopic(RECENT, UNTIL)
    topic.moves(10, ("a", 1, 30), before=())
    topic.moves(20, ("b", 2, 40))
    topic.moves(20, ("b", 2, 40), before=(("a", 1, 30),))  # a repeat, which readers pass over
    topic.moves(30, ("c", 3, 50))
    topic.end()
    begun = subscribe(topic, Cursor((30, 0), snapshot=True))
    assert shown(begun) == [(30, [(1, "b", 2, 40), (1, "c", 3, 50)])]


def test_of_a_keyframe_that_is_too_large_what_moved_is_published() -> None:
    topic = MovingTopic(RECENT, UNTIL)
    report = topic.moves(10, ("a", 1, 30), before=tuple(("b", n, 20) for n in range(1000)))
    item = ShardReport(topic.messages[0].headers, report)
    assert Bounds(1 << 20, 1 << 20).within(item) is item
    small = Bounds(1_000, 1 << 20).within(item)
    assert small.headers.mark is Mark.REPORT
    assert small.report is not None
    assert small.report.before is None
    assert small.report.rows == report.rows
    assert Bounds(1, 1 << 20).within(item).headers.mark is Mark.OVERSIZED
