"""Which watermarks of idle partitions are worth a mark."""

from __future__ import annotations

import pytest

from services.ingest.beats import UNREAD, beat_of
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.schema import Column, Stream, Type
from stairwise.wire.plans import PlanCatalogue, Registered

STREAM = Stream("s", (Column("ts", Type.TIMESTAMP), Column("n", Type.BIGINT)), timestamp_by="ts")
OTHER = Stream("o", STREAM.columns, timestamp_by="ts")


def catalogue(*selects: str) -> PlanCatalogue:
    streams = {"s": STREAM, "o": OTHER}
    queries = {}
    for number, text in enumerate(selects):
        (statement,) = parse_script(text)
        queries[f"q{number}"] = Registered(resolve_query(f"q{number}", statement, streams), 1)  # type: ignore[arg-type]
    return PlanCatalogue(1, streams, queries=queries)


def test_a_mark_is_written_when_a_report_becomes_due() -> None:
    beat = beat_of(STREAM, catalogue("SELECT COUNT(*) FROM s [RANGE 1 MINUTE SLIDE 250 ms]"))
    assert beat.moves(10_000, 10_250)
    assert not beat.moves(10_000, 10_249)
    assert beat.moves(10_249, 10_251)
    assert not beat.by_row


def test_an_offset_counts_and_lookups_see_every_granule() -> None:
    beat = beat_of(STREAM, catalogue("SELECT COUNT(*) FROM s [TUMBLE 10 SECONDS OFFSET 1500 ms]"))
    assert [t for t in range(9_900, 12_100, 100) if beat.moves(t - 1, t)] == [10_000, 11_000, 11_500, 12_000]


@pytest.mark.parametrize("select", ["SELECT n FROM s", "SELECT n FROM s [ROWS 10]"])
def test_where_rows_make_reports_every_mark_may_make_one(select: str) -> None:
    assert beat_of(STREAM, catalogue(select)).by_row


def test_the_windows_of_other_streams_count_where_they_are_joined() -> None:
    beat = beat_of(
        STREAM, catalogue("SELECT COUNT(*) FROM s [TUMBLE 10 SECONDS] a JOIN o [RANGE 1s SLIDE 100 ms] b ON a.n = b.n")
    )
    assert beat.moves(10_001, 10_100)


def test_a_stream_that_no_query_reads_has_few_marks() -> None:
    beat = beat_of(STREAM, catalogue("SELECT COUNT(*) FROM o [TUMBLE 1 SECOND]"))
    assert not beat.moves(0, UNREAD - 1)
    assert beat.moves(UNREAD - 1, UNREAD)
