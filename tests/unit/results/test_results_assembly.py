"""Repeats go, shards come together, reports leave in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.results.assembly import END, Assembly
from stairwise.schema import DAWN
from stairwise.wire.reports import Mark
from tests.unit.results.small_reports import Topic, counts, released


def positions(topic: Topic) -> list[tuple[int, int]]:
    return [report.position for report in released(topic.messages)]


def test_a_report_of_one_shard_is_released_at_once() -> None:
    topic = Topic(counts())
    topic.report(10, [("a", 1)])
    assert positions(topic) == [(10, 0)]


def test_a_report_waits_for_all_of_its_shards_and_has_the_rows_of_all() -> None:
    topic = Topic(counts(), shards=3)
    topic.report(10, [("c", 3)], shard=2)
    topic.report(10, [("a", 1)], shard=0)
    assert positions(topic) == []
    topic.report(10, [], shard=1)
    (report,) = released(topic.messages)
    assert report.report().rows.to_pydict() == {"key0": ["a", "c"], "agg0": [1, 3]}


def test_reports_of_a_fast_shard_wait_and_leave_in_order() -> None:
    topic = Topic(counts(), shards=2)
    for time in (10, 20, 30):
        topic.report(time, shard=0)
    topic.report(10, shard=1)
    topic.report(20, shard=1)
    assert positions(topic) == [(10, 0), (20, 0)]


def test_reports_of_one_time_are_told_apart_by_their_ordinal() -> None:
    topic = Topic(counts())
    topic.report(10, ordinal=0)
    topic.report(10, ordinal=1)
    topic.report(10, ordinal=1)
    assert positions(topic) == [(10, 0), (10, 1)]


def test_a_replayed_batch_is_dropped_and_counted() -> None:
    topic = Topic(counts(), shards=2)
    first = [topic.report(time, shard=shard) for time in (10, 20) for shard in (0, 1)]
    for message in first:
        topic.again(message)
    topic.report(30, shard=0)
    topic.report(30, shard=1)
    assembly = Assembly()
    seen = [report.position for message in topic.messages for report in assembly.take(message)]
    assert seen == [(10, 0), (20, 0), (30, 0)]
    assert assembly.repeats == 4


def test_where_one_shard_has_too_much_the_report_counts_as_too_large() -> None:
    topic = Topic(counts(), shards=2)
    topic.report(10, shard=0)
    topic.oversized(10, shard=1)
    topic.report(20, shard=0)
    topic.report(20, shard=1)
    assert [(r.position[0], r.mark) for r in released(topic.messages)] == [(10, Mark.OVERSIZED), (20, Mark.REPORT)]


def test_the_end_comes_once_after_every_shard_has_said_it() -> None:
    topic = Topic(counts(), shards=2)
    topic.report(10, shard=0)
    end = topic.end(shard=0)
    topic.again(end)
    topic.report(10, shard=1)
    assert positions(topic) == [(10, 0)]
    topic.end(shard=1)
    topic.again(end)
    last = released(topic.messages)
    assert [r.position for r in last] == [(10, 0), END]
    assert last[-1].mark is Mark.SEALED


def test_a_query_that_was_dropped_ends_as_left() -> None:
    topic = Topic(counts())
    topic.end(Mark.LEFT)
    assert [r.mark for r in released(topic.messages)] == [Mark.LEFT]


def test_a_report_whose_other_shards_fell_to_retention_is_passed_over() -> None:
    topic = Topic(counts(), shards=2)
    topic.report(10, shard=1)  # shard 0 wrote 10 before the earliest retained offset
    topic.report(20, shard=0)
    topic.report(20, shard=1)
    assert positions(topic) == [(20, 0)]


def test_the_offset_of_a_report_is_that_of_its_first_message() -> None:
    topic = Topic(counts(), shards=2)
    topic.report(10, shard=1)
    topic.report(10, shard=0)
    topic.report(20, shard=1)
    topic.report(20, shard=0)
    assert [report.offset for report in released(topic.messages)] == [0, 2]


@given(st.data())
def test_reading_from_the_offset_of_any_report_finds_it_and_all_that_follow(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 3), "shards")
    topic = Topic(counts(), shards)
    written: list[list] = [[] for _ in range(shards)]
    for _ in range(data.draw(st.integers(1, 30), "steps")):
        shard = data.draw(st.integers(0, shards - 1), "shard")
        mine = written[shard]
        if mine and data.draw(st.integers(0, 3), "replay") == 0:
            for message in mine[data.draw(st.integers(0, len(mine) - 1), "from") :]:
                topic.again(message)
        else:
            mine.append(topic.report(10 * (len(mine) + 1), [(f"s{shard}", len(mine))], shard=shard))
    every = released(topic.messages)
    assert [r.position[0] for r in every] == [10 * (i + 1) for i in range(min(map(len, written)))]
    for i, report in enumerate(every):
        again = released([m for m in topic.messages if m.offset >= report.offset])
        tail = [r for r in again if r.position >= report.position]
        assert [r.position for r in tail] == [r.position for r in every[i:]]
        assert [r.report().rows for r in tail] == [r.report().rows for r in every[i:]]


def test_a_failure_ends_a_signature_after_the_reports_that_all_shards_have_made() -> None:
    topic = Topic(counts(), shards=2)
    topic.report(10, shard=0)
    topic.report(20, shard=0)
    topic.failed(20, shard=0)
    topic.report(10, shard=1)
    assert positions(topic) == [(10, 0)]
    topic.report(20, shard=1)
    assert positions(topic) == [(10, 0), (20, 0), END]
    topic.report(30, shard=1)
    topic.failed(20, shard=0)
    *_, end = released(topic.messages)
    assert end.mark is Mark.FAILED
    assert [message.headers.shard for message in end.messages] == [0]


def test_a_shard_that_fails_before_its_first_report_ends_the_signature() -> None:
    topic = Topic(counts())
    topic.failed(DAWN)
    assert [(report.position, report.mark) for report in released(topic.messages)] == [(END, Mark.FAILED)]
