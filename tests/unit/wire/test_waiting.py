"""What a query waits for, as one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from services.ingest.partition_state import PartitionState
from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.schema import DAWN, DUSK
from stairwise.streams.sequence import Position
from stairwise.wire import topics
from stairwise.wire.stream_standing import PartitionStanding, Standing, StreamStanding, Written
from stairwise.wire.waiting import Cause, Waiting, duration, held_back, moment, waiting

NOON = 1_769_860_800_000
"""2026-01-31 12:00 UTC, the clock of all cases."""

VOLUMES = "SELECT ticker, COUNT(*) AS n FROM trades [TUMBLE 1 MINUTE] GROUP BY ticker"
HELD = PartitionStanding(version=3)


def at(seconds: float, **more: Any) -> PartitionStanding:
    """A partition whose time stands so many seconds after noon, all of it taken unless said otherwise."""
    mark = NOON + int(seconds * 1000)
    return PartitionStanding(**{"watermark": mark, "taken": mark, "version": 3, "rows": 1, "active": NOON, **more})


def query(select: str, options: str = "", partitions: int = 2) -> Query:
    catalogue = Catalogue()
    for stream in ("trades", "quotes"):
        declared = f"CREATE STREAM {stream} (ts TIMESTAMP, ticker STRING) TIMESTAMP BY ts"
        catalogue.execute(f"{declared} {options} PARTITIONS {partitions};")
    catalogue.execute("CREATE TABLE companies (ticker STRING, name STRING) KEY (ticker) PARTITIONS 1;")
    catalogue.execute(f"CREATE QUERY volumes AS {select};")
    return catalogue.queries["volumes"]


def told(
    *partitions: PartitionStanding,
    select: str = VOLUMES,
    options: str = "",
    joined: int | None = None,
    absent: str = "",
    failed: str = "",
    others: tuple[PartitionStanding, ...] = (),
    carried: bool = False,
) -> Waiting:
    asked = query(select, options, len(partitions))
    by_name = {"trades": partitions, "quotes": others or partitions, "companies": (at(0),)}
    streams = {topics.sequenced(s): StreamStanding(s, by_name[s.name], failed) for s in asked.streams}
    return waiting(asked, 3, Standing(NOON + 60_000, streams, frozenset({absent}), carried), joined)


def test_a_partition_without_a_row_is_named_with_what_would_help() -> None:
    answer = told(at(5), at(7), at(9), HELD)
    assert answer.sentence == (
        "volumes waits for trades partition 3: no row yet"
        " (ALTER STREAM trades SET IDLE AFTER 10 SECONDS would let time go on without it)"
    )
    assert (answer.cause, answer.stream, answer.partition) == (Cause.EMPTY_PARTITION, "trades", 3)


def test_several_empty_partitions_are_all_named_and_idle_after_is_not_advised_where_it_is_set() -> None:
    answer = told(HELD, at(7), HELD, HELD, options="IDLE AFTER 5 SECONDS")
    assert answer.sentence == "volumes waits for trades partitions 0, 2 and 3: no row yet"


def test_several_empty_partitions_would_all_be_left_behind() -> None:
    assert told(HELD, at(7), HELD).sentence.endswith("would let time go on without them)")


def test_a_stream_without_any_row() -> None:
    answer = told(HELD, HELD)
    assert (answer.cause, answer.sentence) == (Cause.NO_ROWS, "volumes waits for trades: no row yet")


def test_a_partition_behind_the_others_is_told_with_its_watermark_and_how_far() -> None:
    answer = told(at(50), at(90))
    assert answer.sentence == (
        "volumes waits for trades partition 0: its watermark 12:00:50 is 40 s behind the others,"
        " next report at 12:01:00 (ALTER STREAM trades SET IDLE AFTER 10 SECONDS would let time go on without it)"
    )
    assert (answer.cause, answer.watermark, answer.behind_ms) == (Cause.PARTITION_BEHIND, NOON + 50_000, 40_000)


def test_a_stream_behind_the_one_it_is_joined_with() -> None:
    select = "SELECT a.ticker FROM trades [TUMBLE 1 MINUTE] a JOIN quotes [TUMBLE 1 MINUTE] b ON a.ticker = b.ticker"
    answer = told(at(95), at(90), select=select, others=(at(40), at(50)))
    assert answer.sentence == (
        "volumes waits for quotes: its watermark 12:00:40 is 55 s behind the others, next report at 12:01:00"
    )


def test_ingest_behind() -> None:
    answer = told(at(50, unread=120_000), at(55))
    assert answer.sentence == "volumes waits for ingest: 120,000 messages of trades behind"
    assert (answer.cause, answer.behind) == (Cause.INGEST, 120_000)


def test_ingest_that_does_not_answer() -> None:
    answer = told(PartitionStanding(version=3, unread=1), HELD, absent="ingest")
    assert answer.sentence == "volumes waits for ingest, which does not answer: 1 message of trades behind"


def test_messages_of_a_partition_that_holds_nobody_back_are_not_what_is_waited_for() -> None:
    assert told(at(5), at(50, unread=10)).cause is Cause.EVENT_TIME


def test_operators_behind_with_a_report_that_is_due() -> None:
    late = at(70, taken=NOON + 10_000, untaken=14_402, untaken_since=NOON + 20_000)
    answer = told(late, at(70, untaken=1))
    assert answer.sentence == "volumes waits for operators: 14,403 batches behind, about 40 s"
    assert (answer.cause, answer.behind, answer.behind_ms) == (Cause.OPERATORS, 14_403, 40_000)
    assert answer.next_report == NOON + 60_000


def test_operators_that_carry_reports_over() -> None:
    answer = told(at(5), at(7), carried=True)
    assert answer.cause is Cause.OPERATORS
    assert "reports that were carried over" in answer.sentence
    assert told(at(5), HELD, carried=True).cause is Cause.EMPTY_PARTITION


def test_operators_that_do_not_answer() -> None:
    answer = told(at(70, taken=DAWN, untaken=1), at(70), absent="operators")
    assert answer.sentence == "volumes waits for operators, which does not answer: 1 batch behind"


def test_operators_behind_without_anything_due_are_not_what_is_waited_for() -> None:
    assert told(at(30, taken=NOON + 10_000, untaken=5), at(31)).cause is Cause.EVENT_TIME


def test_a_query_that_joined_late_is_told_its_first_report() -> None:
    answer = told(at(7), at(5), joined=NOON + 7_000)
    assert answer.sentence == (
        "volumes joined at 12:00:07, first report at 12:01:00 (the watermark of trades is 12:00:05)"
    )
    assert (answer.cause, answer.next_report) == (Cause.JOINED_LATE, NOON + 60_000)


def test_a_late_joiner_that_has_reported_waits_like_everybody() -> None:
    assert told(at(67), at(65), joined=NOON + 7_000).cause is Cause.EVENT_TIME


def test_event_time_that_has_not_come_so_far() -> None:
    answer = told(at(57), at(58), options="LATENESS 2 SECONDS")
    assert answer.sentence == (
        "volumes waits for event time: next report at 12:01:00, the watermark of trades is 12:00:57 (LATENESS 2 s),"
        " its last row came 1 min 0 s ago"
    )


def test_a_row_that_came_just_now_is_not_called_the_last() -> None:
    assert told(at(57, active=NOON + 59_000), at(58)).sentence.endswith("the watermark of trades is 12:00:57")


def test_a_window_that_slides_by_rows_waits_for_rows() -> None:
    answer = told(at(57, active=NOON + 59_000), select="SELECT COUNT(*) AS n FROM trades [ROWS 5]")
    assert answer.sentence == "volumes waits for rows, the watermark of trades is 12:00:57"


def test_a_stream_that_ingest_has_set_aside() -> None:
    answer = told(at(5), failed="no such column")
    assert answer.sentence == "volumes waits for trades, which ingest has set aside: no such column"


def test_a_sealed_stream_is_over_once_operators_have_taken_all() -> None:
    sealed = PartitionStanding(watermark=DUSK, taken=DUSK, version=2)
    assert told(sealed).sentence == "volumes is over: trades is sealed and every report was made"
    behind = PartitionStanding(watermark=DUSK, taken=NOON, version=2, untaken=3)
    assert told(behind).sentence == "volumes waits for operators: 3 batches behind"


def test_a_landmark_that_has_passed_is_over() -> None:
    answer = told(at(57), select=f"SELECT COUNT(*) AS n FROM trades [UNTIL {NOON + 10_000}]")
    assert answer.sentence == "volumes is over: its window has ended and every report was made"


def test_a_query_that_a_partition_has_not_taken_up() -> None:
    answer = told(at(5), at(5, version=2), absent="ingest")
    assert answer.sentence == (
        "volumes waits for ingest, which does not answer: trades partition 1 has not taken it up yet"
    )


def test_updates_of_a_table_that_are_not_read_are_waited_for() -> None:
    select = "SELECT t.ticker, c.name FROM trades [TUMBLE 1 MINUTE] t JOIN companies c ON t.ticker = c.ticker"
    asked = query(select, partitions=1)
    stands = [StreamStanding(s, (at(5, unread=4) if s.is_table else at(5),)) for s in asked.streams]
    streams = {topics.sequenced(each.stream): each for each in stands}
    assert waiting(asked, 3, Standing(NOON, streams)).sentence == (
        "volumes waits for ingest: 4 messages of companies behind"
    )


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        ((at(1), at(2)), ""),
        ((HELD, HELD), "no row yet"),
        ((at(1), HELD), "partition 1: no row yet"),
        ((PartitionStanding(unread=3), at(1)), "waits for ingest"),
        ((HELD, at(1, unread=3)), "partition 0: no row yet"),
        ((at(1), at(41)), "partition 0 is 40 s behind"),
        ((PartitionStanding(watermark=DUSK),), ""),
    ],
)
def test_what_holds_a_stream_s_time_back(partitions: tuple[PartitionStanding, ...], words: str) -> None:
    (stream,) = query(VOLUMES).streams
    assert held_back(StreamStanding(stream, partitions)) == words


def test_a_position_is_read_as_ingest_writes_it() -> None:
    state = PartitionState(2, Position(7, NOON), version=5, active=NOON + 1)
    assert Written.decode(state.encode()) == Written(2, 7, NOON, 5, False, NOON + 1)
    assert Written.decode(state.encode()).watermark(2_000) == state.position.watermark(2_000)
    assert Written.decode(PartitionState(1).encode()).watermark(0) == DAWN
    assert Written.decode(PartitionState(1, sealed=True).encode()).watermark(0) == DUSK


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 s"),
        (400, "0.4 s"),
        (42_999, "42 s"),
        (200_000, "3 min 20 s"),
        (18_720_000, "5 h 12 min"),
        (9 * 10**7, "1 d 1 h"),
    ],
)
def test_how_long(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


@pytest.mark.parametrize(
    ("instant", "words"),
    [
        (NOON + 7_000, "12:00:07"),
        (NOON - 1, "11:59:59.999"),
        (NOON + 86_400_000, "2026-02-01 12:00:00"),
        (10**17, str(10**17)),
    ],
)
def test_when(instant: int, words: str) -> None:
    assert moment(instant, NOON) == words
