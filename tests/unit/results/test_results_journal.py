"""The journal: reads by position, waits, forgets the oldest, and says when it has forgotten."""

from __future__ import annotations

import asyncio

import pytest

from services.results import journal as journal_module
from services.results.assembly import Released
from services.results.journal import FIRST, PAGE, Journal
from tests.unit.results.small_reports import Topic, counts, query_of, released

SIGNATURE = counts().signature


def reports(*times: int) -> list[Released]:
    topic = Topic(counts())
    for time in times:
        topic.report(time, [("a", time)])
    return released(topic.messages)


def filled(*times: int, per_signature: int = 1 << 20, in_all: int = 1 << 20) -> Journal:
    journal = Journal(per_signature, in_all)
    for report in reports(*times):
        journal.append(report)
    return journal


def times(found: list[Released] | None) -> list[int] | None:
    return None if found is None else [report.position[0] for report in found]


def test_reads_from_a_position_on() -> None:
    journal = filled(10, 20, 30)
    assert times(journal.read(SIGNATURE, (20, 0))) == [20, 30]
    assert times(journal.read(SIGNATURE, (20, 1))) == [30]
    assert times(journal.read(SIGNATURE, (31, 0))) == []


def test_before_gives_the_last_one_before_the_position_first() -> None:
    journal = filled(10, 20, 30)
    assert times(journal.read(SIGNATURE, (20, 0), before=True)) == [10, 20, 30]
    assert times(journal.read(SIGNATURE, (10, 0), before=True)) == [10, 20, 30]
    assert times(journal.read(SIGNATURE, (99, 0), before=True)) == [30]


def test_hands_out_a_page_at_a_time() -> None:
    journal = filled(*range(1, 100))
    assert times(journal.read(SIGNATURE, (0, 0))) == list(range(1, PAGE + 1))


def test_a_page_holds_no_more_than_its_bytes_but_at_least_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "PAGE_BYTES", 2 * reports(10)[0].size)
    assert times(filled(10, 20, 30).read(SIGNATURE, FIRST)) == [10, 20]
    monkeypatch.setattr(journal_module, "PAGE_BYTES", 1)
    assert times(filled(10, 20, 30).read(SIGNATURE, FIRST)) == [10]


def test_forgets_the_oldest_of_a_signature_but_never_its_last() -> None:
    one = reports(10)[0].size
    journal = filled(10, 20, 30, per_signature=2 * one)
    assert journal.read(SIGNATURE, (10, 0)) is None
    assert journal.read(SIGNATURE, (20, 0), before=True) is None
    assert times(journal.read(SIGNATURE, (20, 0))) == [20, 30]
    assert times(filled(10, 20, per_signature=1).read(SIGNATURE, (20, 0))) == [20]


def test_forgets_the_oldest_of_all_signatures_by_arrival() -> None:
    topics = [Topic(query_of("SELECT COUNT(*) AS n FROM t [ROWS 9 SLIDE 10 ms]", name)) for name in ("a", "b")]
    for topic in topics:
        topic.report(10, [(1,)])
    ((a,), (b,)) = (released(topic.messages) for topic in topics)
    journal = Journal(1 << 20, a.size + b.size - 1)
    journal.append(a)
    journal.append(b)
    assert journal.read("a@1", (10, 0)) is None
    assert times(journal.read("b@1", (10, 0))) == [10]
    assert journal.latest("a@1") == ((10, 0), 0)


def test_covers_what_follows_the_last_forgotten_report() -> None:
    one = reports(10)[0].size
    journal = filled(10, 20, 30, per_signature=2 * one)
    assert not journal.covers(SIGNATURE, (10, 0))
    assert journal.covers(SIGNATURE, (10, 1))
    assert journal.covers("nobody@1", (0, 0))


def test_a_reader_that_waits_gets_what_comes() -> None:
    async def scenario() -> list[Released] | None:
        journal = Journal()
        waiting = asyncio.create_task(journal.wait(SIGNATURE, 30))
        await asyncio.sleep(0)
        journal.extend(reports(10))
        assert await waiting
        return journal.read(SIGNATURE, FIRST)

    assert times(asyncio.run(scenario())) == [10]


def test_a_reader_that_is_no_longer_wanted_stops_waiting() -> None:
    async def scenario() -> bool:
        journal = Journal()
        waiting = asyncio.create_task(journal.wait(SIGNATURE, 30))
        await asyncio.sleep(0)
        journal.ring_all()
        return await waiting

    assert asyncio.run(scenario())


def test_a_wait_ends_when_nothing_comes() -> None:
    assert not asyncio.run(Journal().wait(SIGNATURE, 0.001))


def test_of_a_signature_that_began_before_the_tail_only_what_came_is_covered() -> None:
    journal = Journal()
    journal.holds_all_of = lambda _: False
    assert journal.read(SIGNATURE, FIRST) is None
    assert not journal.covers(SIGNATURE, (20, 0))
    journal.extend(reports(20, 30))
    assert journal.read(SIGNATURE, (10, 0)) is None
    assert times(journal.read(SIGNATURE, (20, 0))) == [20, 30]


def test_who_has_looked_at_kafka_vouches_for_what_follows() -> None:
    journal = Journal()
    journal.holds_all_of = lambda _: False
    journal.vouch(SIGNATURE, (10, 1))
    assert journal.read(SIGNATURE, (10, 1)) == []
    assert journal.read(SIGNATURE, (10, 1), before=True) is None
    journal.vouch(SIGNATURE, FIRST)
    assert not journal.covers(SIGNATURE, (10, 0))
