"""Like subscriptions share their bytes, and none sees another one's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from services.results import encoding, rendition
from services.results.cursor import Cursor
from services.results.encoding import Encoding
from services.results.rendition import Rendition, Renditions, Sending
from services.results.selection import Selection
from stairwise.errors import LimitError
from stairwise.reports.expansion import Expansion
from tests.unit.results.small_reports import Topic, counts, released


@pytest.fixture
def expanded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times of the reports that were expanded."""
    times: list[int] = []
    expand: Callable[..., object] = Expansion.expand
    monkeypatch.setattr(Expansion, "expand", lambda self, r: (times.append(r.time), expand(self, r))[1])
    return times


def reports(emit: str) -> tuple[Topic, list]:
    topic = Topic(counts(emit))
    for time, keys in ((10, "a"), (20, "ab"), (30, "b")):
        topic.report(time, [(key, 1) for key in keys])
    return topic, released(topic.messages)


async def read(rendition: Rendition, every: list, upto: int) -> list[Sending]:
    sent: list[Sending] = []
    for base, report in zip([None, *every], every[:upto], strict=False):
        sent += [sending async for sending in rendition.updates(report, base, Cursor())]
    return sent


@pytest.mark.parametrize("emit", ["RSTREAM", "CHANGES"])
def test_two_like_subscribers_cost_one_expansion_and_get_the_same_bytes(emit: str, expanded: list[int]) -> None:
    topic, every = reports(emit)

    async def scenario() -> None:
        renditions = Renditions()
        kind = topic.registered, Encoding.VALUES, Selection()
        with renditions.use(*kind) as one, renditions.use(*kind) as two:
            assert one is two
            first, second = await asyncio.gather(read(one, every, 3), read(two, every, 3))
            assert all(a is b for a, b in zip(first, second, strict=True))

    asyncio.run(scenario())
    assert expanded == [10, 20, 30]


@pytest.mark.parametrize("emit", ["RSTREAM", "ISTREAM", "DSTREAM", "CHANGES"])
def test_one_that_is_behind_gets_what_it_would_get_alone(emit: str) -> None:
    topic, every = reports(emit)

    async def scenario() -> None:
        kind = topic.registered, Encoding.ARROW, Selection()
        renditions = Renditions(kept_bytes=0)
        with Renditions().use(*kind) as alone, renditions.use(*kind) as ahead, renditions.use(*kind) as behind:
            expected = await read(alone, every, 3)
            assert await read(ahead, every, 3) == expected
            assert await read(behind, every, 3) == expected

    asyncio.run(scenario())


def test_another_filter_or_encoding_is_another_rendition() -> None:
    registered, renditions = counts(), Renditions()
    with (
        renditions.use(registered, Encoding.VALUES, Selection()) as one,
        renditions.use(registered, Encoding.ARROW, Selection()) as two,
        renditions.use(registered, Encoding.VALUES, Selection(digest=b"x")) as three,
    ):
        assert len({id(one), id(two), id(three)}) == 3


async def messages_of(updates: AsyncIterator[Sending]) -> list[bytes]:
    return [sending.message async for sending in updates]


@pytest.mark.parametrize("how", Encoding)
def test_a_huge_report_is_made_as_it_is_taken_and_says_the_same(how: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(counts())
    topic.report(10, [(f"key {n:06}", n) for n in range(2_000)])
    (report,) = released(topic.messages)
    monkeypatch.setattr(encoding, "CHUNK", 1_000)

    async def scenario() -> None:
        with Renditions().use(topic.registered, how, Selection()) as one:
            at_once = await messages_of(one.updates(report, None, Cursor()))
            monkeypatch.setattr(rendition, "HUGE", 1)
            monkeypatch.setattr(rendition, "AHEAD", 3)
            assert await messages_of(one.updates(report, None, Cursor())) == at_once
            assert len(at_once) > 20

    asyncio.run(scenario())


def test_huge_reports_beyond_what_memory_is_for_are_refused_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    topic, every = reports("RSTREAM")
    monkeypatch.setattr(rendition, "HUGE", 1)
    monkeypatch.setattr(rendition, "HUGE_IN_ALL", 1)

    async def scenario() -> None:
        renditions = Renditions()
        kind = topic.registered, Encoding.VALUES, Selection()
        with renditions.use(*kind) as one, renditions.use(*kind) as two:
            sending = one.updates(every[0], None, Cursor())
            await anext(sending)
            with pytest.raises(LimitError, match="no room") as refused:
                await messages_of(two.updates(every[0], None, Cursor()))
            assert "resume with the last token" in refused.value.hint
            assert await messages_of(sending)
            assert await messages_of(two.updates(every[0], None, Cursor()))

    asyncio.run(scenario())
