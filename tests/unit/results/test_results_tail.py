"""A service that began in the middle of the topic says the same as one that has read all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from services.results.assembly import END, Assembly, Released
from services.results.feed import Feed
from services.results.journal import FIRST, Journal
from services.results.report_message import ReportMessage
from stairwise.reports.contract import Position
from tests.unit.results.small_reports import ListedHistory, Topic, counts, released


@dataclass
class Follower:
    """Reads a topic from an offset on, as the thread does, a few messages at a time."""

    topic: Topic
    journal: Journal
    at: int
    assembly: Assembly = field(default_factory=Assembly)

    def follow(self, upto: int) -> None:
        messages = self.topic.messages[self.at : upto]
        self.journal.extend([report for message in messages for report in self.assembly.take(message)])
        self.at = max(self.at, upto)


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    """Two shards that are not in step, micro-batches that are written again, and an end."""
    shards = draw(st.integers(1, 2))
    topic = Topic(counts(), shards)
    written: list[list[ReportMessage]] = [[] for _ in range(shards)]
    count = draw(st.integers(1, 8))
    while any(len(mine) < count for mine in written):
        shard = draw(st.sampled_from([s for s in range(shards) if len(written[s]) < count]))
        mine = written[shard]
        if mine and draw(st.integers(0, 4)) == 0:
            for message in mine[draw(st.integers(0, len(mine) - 1)) :]:
                topic.again(message)
        mine.append(topic.report(10 * (len(mine) + 1), [(f"s{shard}", len(mine))], shard=shard))
    for shard in range(shards):
        topic.end(shard=shard)
    return topic


async def fed(feed: Feed, at: Position, before: bool, offset: int | None) -> list[Released]:
    found = []
    async for report in feed.reports(at, before=before, offset=offset):
        if report is not None:
            found.append(report)
            if report.position == END:
                break
    return found


@given(st.data())
def test_a_feed_gives_every_report_once_wherever_the_follower_began(data: st.DataObject) -> None:
    topic = data.draw(topics(), "topic")
    every = released(topic.messages)
    length = len(topic.messages)
    begin = data.draw(st.integers(0, length), "the follower begins")
    ready = data.draw(st.integers(begin, length), "caught up")
    steps = sorted(data.draw(st.lists(st.integers(ready, length), max_size=4), "steps"))
    most = data.draw(st.sampled_from([1, 2_000, 1 << 20]), "bytes")
    page = data.draw(st.sampled_from([1, 2, 1000]), "page")
    known = data.draw(st.none() | st.sampled_from(every), "token")
    at = known.position if known is not None else (data.draw(st.integers(0, 100), "time"), 0)
    before = data.draw(st.booleans(), "before")
    offset = known.offset if known is not None and data.draw(st.booleans(), "hint") else None

    async def scenario() -> list[Released]:
        journal = Journal(per_signature=most)
        journal.holds_all_of = lambda _: begin == 0
        follower = Follower(topic, journal, begin)
        follower.follow(ready)
        history = ListedHistory(topic, reports=page)
        reading = asyncio.create_task(fed(Feed(journal, history, topic.registered.signature), at, before, offset))
        for step in [*steps, length]:
            await asyncio.sleep(0)
            follower.follow(step)
        return await asyncio.wait_for(reading, 30)

    expected = [r for r in every if r.position >= at]
    found = positions(asyncio.run(scenario()))
    assert found == positions(every)[len(every) - len(found) :]  # no gap, no repeat
    if before:  # the last one before, as it was when the feed began: others before may have followed
        assert len(found) > len(expected) or len(expected) == len(every)
    else:
        assert len(found) == len(expected)


@given(topic=topics(), begin=st.integers(0, 40), time=st.integers(0, 100), page=st.sampled_from([1, 1000]))
def test_the_last_report_before_a_time_is_found_wherever_the_follower_began(
    topic: Topic, begin: int, time: int, page: int
) -> None:
    begin = min(begin, len(topic.messages))

    async def scenario(until: Position) -> Released | None:
        journal = Journal()
        journal.holds_all_of = lambda _: begin == 0
        Follower(topic, journal, begin).follow(len(topic.messages))
        return await Feed(journal, ListedHistory(topic, reports=page), topic.registered.signature).last_before(until)

    for until in ((time, 0), END):
        expected = [r.position for r in released(topic.messages) if r.position < until][-1:]
        found = asyncio.run(scenario(until))
        assert ([found.position] if found is not None else []) == expected


def test_a_query_without_reports_is_looked_for_once() -> None:
    topic, journal = Topic(counts()), Journal()
    journal.holds_all_of = lambda _: False
    history = ListedHistory(topic)
    feed = Feed(journal, history, topic.registered.signature)
    assert asyncio.run(feed.last_before(END)) is None
    assert journal.covers(topic.registered.signature, FIRST)
    history.reads.clear()
    assert asyncio.run(feed.last_before(END)) is None
    assert history.reads == []


def positions(reports: Sequence[Released]) -> list[Position]:
    return [report.position for report in reports]
