"""A subscription that is broken off and resumed anywhere says the same as one that was never disturbed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.results import encoding
from services.results.cursor import Cursor, TokenError, read_token
from services.results.encoding import Encoding
from services.results.journal import Journal
from services.results.rendition import Renditions
from services.results.selection import Selection
from services.results.update_stream import UpdateStream
from stairwise.errors import GoneError, LimitError
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark
from tests.unit.results.small_reports import ListedHistory, Topic, counts, feed_over, query_of, released, taken

EMITS = ("RSTREAM", "ISTREAM", "DSTREAM", "CHANGES")
Line = tuple[object, ...]


class World:
    """A topic and a journal that holds the last ``cached`` reports of it."""

    def __init__(
        self,
        registered: Registered,
        answers: list[list[str]],
        *,
        cached: int = 1000,
        end: bool = True,
        page: int = 1000,
    ) -> None:
        self.registered = registered
        self.topic = Topic(registered)
        for i, answer in enumerate(answers):
            self.topic.report(10 * (i + 1), [(key, len(answer)) for key in answer])
        if end:
            self.topic.end()
        self.journal = Journal()
        self.history = ListedHistory(self.topic, reports=page)
        for report in released(self.topic.messages):
            self.journal.append(report)
        self.forget(cached)
        self.renditions = Renditions()

    def forget(self, cached: int) -> None:
        """Keep so many reports in the journal."""
        log = self.journal._log(self.registered.signature)
        while len(log.entries) > cached:
            self.journal._evict(log)

    async def messages(self, cursor: Cursor, **kind: Any) -> AsyncIterator[pb.SubscribeResponse]:
        feed = feed_over(self.journal, self.history, self.registered.signature)
        how = kind.get("encoding", Encoding.VALUES), kind.get("selection", Selection())
        with self.renditions.use(self.registered, *how) as rendition:
            async for sending in UpdateStream(rendition, cursor, feed).messages():
                response = pb.SubscribeResponse.FromString(sending.message)
                assert response.token == sending.token
                yield response

    def subscribe(self, cursor: Cursor, **kind: Any) -> list[pb.SubscribeResponse]:
        return asyncio.run(taken(self.messages(cursor, **kind)))

    def resume(self, token: bytes, **kind: Any) -> list[pb.SubscribeResponse]:
        version, cursor = read_token(token, self.registered.query.name)
        assert version == self.registered.version
        return self.subscribe(cursor, **kind)


def lines(responses: list[pb.SubscribeResponse]) -> list[Line]:
    """What a subscriber has learned, however it was cut into messages."""
    said: list[Line] = []
    for response in responses:
        match response.WhichOneof("message"):
            case "update":
                update = response.update
                for change in update.changes:
                    values = [v.string or v.integer for v in change.row.values]
                    said.append((update.time_ms, change.diff, *values, update.snapshot))
            case "progress":
                said.append((response.progress.time_ms, "complete"))
            case "end":
                said.append((pb.End.Reason.Name(response.end.reason),))
    return said


answers = st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6), min_size=1, max_size=6)


@pytest.mark.parametrize("emit", EMITS)
def test_a_whole_subscription(emit: str) -> None:
    world = World(counts(emit), [["a"], ["a"], []])
    said = lines(world.subscribe(Cursor()))
    inserted, deleted = (10, 1, "a", 1, False), (30, -1, "a", 1, False)
    rows = {
        "RSTREAM": {10: [inserted], 20: [(20, 1, "a", 1, False)], 30: []},
        "ISTREAM": {10: [inserted], 20: [], 30: []},
        "DSTREAM": {10: [], 20: [], 30: [deleted]},
        "CHANGES": {10: [inserted], 20: [], 30: [deleted]},
    }[emit]
    expected = [line for time, at in rows.items() for line in [*at, (time, "complete")]]
    assert said == [*expected, ("REASON_SEALED",)]


@given(
    emit=st.sampled_from(EMITS),
    answers=answers,
    cached=st.integers(0, 7),
    chunk=st.sampled_from([1, 30, 10_000]),
    page=st.sampled_from([1, 2, 1000]),
)
def test_resuming_from_every_token_goes_on_without_gap_or_repeat(
    emit: str, answers: list[list[str]], cached: int, chunk: int, page: int
) -> None:
    world = World(counts(emit), answers, cached=cached, page=page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", chunk)
        whole = world.subscribe(Cursor(snapshot=emit == "CHANGES"))
        for i, response in enumerate(whole):
            rest = world.resume(response.token)
            assert rest[0].WhichOneof("message") == "header"
            expected = lines(whole[i + 1 :]) or [("REASON_SEALED",)]  # after the end there is only the end
            assert lines(rest) == expected


LEVELS = "SELECT k, COUNT(*) AS n FROM t [RANGES 40 ms, 20 ms SLIDES 20 ms, 10 ms] GROUP BY k EMIT CHANGES"


@given(
    answers=answers,
    cached=st.integers(0, 7),
    begin=st.integers(0, 6),
    chunk=st.sampled_from([1, 10_000]),
    broken=st.integers(0, 30),
)
def test_the_changes_of_a_window_with_levels_add_up_wherever_a_subscription_begins_and_resumes(
    answers: list[list[str]], cached: int, begin: int, chunk: int, broken: int
) -> None:
    registered = query_of(LEVELS)
    world = World(registered, [], end=False)
    last: dict[int, list[str]] = {}
    for number, answer in enumerate(answers, 1):
        due = [0, 1] if number % 2 == 0 else [0]
        last |= {level: [f"{key}{level}" for key in answer] for level in due}
        world.topic.report(10 * number, [(level, key, 1) for level in due for key in last[level]])
    world.topic.end()
    for report in released(world.topic.messages):
        world.journal.append(report)
    world.forget(cached)
    start = Cursor((10 * min(begin, len(answers)), 0), snapshot=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", chunk)
        whole = world.subscribe(start)
        came = whole[: broken % len(whole) + 1]
        said = lines([*came, *world.resume(came[-1].token)])
    counted: Counter[tuple[object, ...]] = Counter()
    for line in said:
        if len(line) > 3:
            counted[line[2:4]] += line[1]  # type: ignore[assignment, operator]
    assert +counted == Counter((level, key) for level, keys in last.items() for key in keys)
    assert not -counted


@given(answers=answers, cached=st.integers(0, 7), time=st.integers(0, 80), emit=st.sampled_from(EMITS))
def test_beginning_at_a_time_shows_what_the_whole_subscription_shows_from_there(
    answers: list[list[str]], cached: int, time: int, emit: str
) -> None:
    world = World(counts(emit), answers, cached=cached)
    whole = lines(world.subscribe(Cursor()))
    there = lines(world.subscribe(Cursor((time, 0))))
    assert there == [line for line in whole if not isinstance(line[0], int) or line[0] >= time]


def test_changes_from_a_time_on_begin_with_the_whole_answer_marked_as_a_snapshot() -> None:
    world = World(counts("CHANGES"), [["a"], ["a", "b"], ["b", "c"]])
    said = lines(world.subscribe(Cursor((20, 0), snapshot=True)))
    assert said == [
        (20, 1, "a", 2, True),
        (20, 1, "b", 2, True),
        (20, "complete"),
        (30, -1, "a", 2, False),
        (30, 1, "c", 2, False),
        (30, "complete"),
        ("REASON_SEALED",),
    ]


def test_a_recent_position_is_read_from_the_journal_alone() -> None:
    world = World(counts(), [["a"]] * 5, cached=4)
    world.subscribe(Cursor((30, 0), complete=True))
    assert world.history.reads == []


def test_an_old_position_is_read_from_its_offset_and_not_from_the_beginning() -> None:
    world = World(counts(), [["a"]] * 6, cached=2)
    whole = world.subscribe(Cursor())
    token = next(r.token for r in whole if r.progress.time_ms == 30)
    world.history.reads.clear()
    world.resume(token)
    assert world.history.reads == [2]


def test_an_offset_that_leads_astray_is_found_out() -> None:
    world = World(counts(), [["a"]] * 6, cached=2)
    said = lines(world.subscribe(Cursor((20, 0), complete=True, offset=4)))
    assert [line[0] for line in said if line[1:] == ("complete",)] == [30, 40, 50, 60]


def test_a_position_that_retention_has_taken_is_refused_and_names_the_earliest() -> None:
    world = World(counts(), [["a"]] * 6, cached=2)
    world.history.retained_from = 3
    with pytest.raises(GoneError, match="the earliest that is there has time 40"):
        world.subscribe(Cursor((20, 0), complete=True))


def test_earliest_begins_with_what_retention_has_left() -> None:
    world = World(counts(), [["a"]] * 6, cached=2)
    world.history.retained_from = 3
    assert lines(world.subscribe(Cursor()))[1] == (40, "complete")


def test_earliest_begins_with_the_journal_where_kafka_has_nothing_older() -> None:
    world = World(counts(), [["a"]] * 6, cached=3)
    world.history.retained_from = 99
    assert lines(world.subscribe(Cursor()))[1] == (50, "complete")


def test_a_dropped_query_ends_as_dropped() -> None:
    world = World(counts(), [["a"]], end=False)
    for report in released([*world.topic.messages, world.topic.end(Mark.LEFT)])[1:]:
        world.journal.append(report)
    assert lines(world.subscribe(Cursor()))[-1] == ("REASON_DROPPED",)


@pytest.mark.parametrize("emit", EMITS)
def test_a_report_that_was_too_large_ends_the_subscription_with_what_to_do(emit: str) -> None:
    world = World(counts(emit), [["a"]], end=False)
    world.topic.oversized(20)
    world.topic.report(30, [("b", 1)])
    world.topic.end()
    for report in released(world.topic.messages)[1:]:
        world.journal.append(report)
    with pytest.raises(LimitError, match="at time 20 is larger than operators may publish") as refused:
        world.subscribe(Cursor())
    assert "from a later time, 21 or after" in refused.value.hint
    later = lines(world.subscribe(Cursor((21, 0), snapshot=emit == "CHANGES")))
    assert [line[0] for line in later if line[1:] == ("complete",)] == [30]


def test_messages_come_as_reports_do() -> None:
    async def scenario() -> None:
        world = World(counts(), [["a"]], end=False)
        messages = world.messages(Cursor())
        assert lines(await taken(messages, 3)) == [(10, 1, "a", 1, False), (10, "complete")]
        waiting = asyncio.create_task(taken(messages, 2))
        await asyncio.sleep(0)
        world.topic.report(20, [("b", 1)])
        world.journal.extend(released(world.topic.messages)[-1:])
        assert lines(await waiting) == [(20, 1, "b", 1, False), (20, "complete")]

    asyncio.run(scenario())


@given(st.binary(max_size=40))
def test_bytes_that_are_no_token_are_refused(token: bytes) -> None:
    with pytest.raises(TokenError):
        read_token(token, "some query that no random bytes name")


def test_a_token_of_another_query_is_refused_by_name() -> None:
    with pytest.raises(TokenError, match="one of query 'q', not of 'p'"):
        read_token(Cursor().token(counts()), "p")


@given(
    st.builds(
        Cursor,
        st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**40)),
        st.booleans(),
        st.integers(0, 2**40),
        st.booleans(),
        st.none() | st.integers(0, 2**40),
    )
)
def test_a_token_holds_the_whole_cursor(cursor: Cursor) -> None:
    assert read_token(cursor.token(counts()), "q") == (1, cursor)
