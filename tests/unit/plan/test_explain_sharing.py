"""What EXPLAIN says of a query's place among the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stairwise.cql.script import Catalogue, Explained
from stairwise.operators.signature import JoinSignature
from stairwise.plan.explain import explain, horizon_line
from stairwise.plan.signature import published_signature_of
from stairwise.schema import DAWN
from tests.unit.cql.fuzz_statements import GOOD
from tests.unit.cql.market import query

SCRIPT = """
CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts;
CREATE QUERY fast AS SELECT ticker, SUM(qty) FROM trades [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY ticker;
CREATE QUERY slow AS SELECT ticker, MAX(qty) FROM trades [RANGE 40 SECONDS SLIDE 10 SECONDS] GROUP BY ticker;
CREATE QUERY apart AS SELECT ticker, SUM(qty) FROM trades [RANGE 40 SECONDS] WHERE qty > 1 GROUP BY ticker;
"""
LEVELS = "RANGES 40 SECONDS, 20 SECONDS SLIDES 20 SECONDS, 5 SECONDS"


def shared_part(statement: str, script: str = SCRIPT) -> list[str]:
    catalogue = Catalogue()
    catalogue.execute(script)
    (change,) = catalogue.execute(statement)
    assert isinstance(change, Explained)
    lines = explain(change.query, catalogue.queries).splitlines()
    return lines[next((i for i, line in enumerate(lines) if line.startswith("sharing:")), len(lines)) :]


def test_a_query_is_drawn_among_the_windows_of_its_signature() -> None:
    sharing, *drawing = shared_part("EXPLAIN fast")
    kept = "one slice store of whole numbers and extremes"
    assert sharing.startswith(f"sharing: 2 queries over trades, {kept} (trades.1:")
    assert drawing == [
        "group 1: 2 windows of 2 queries",
        " " * 20 + "───────────────━━━━━┫  RANGE 20 SECONDS  SLIDE 5 SECONDS   seed       ◀ fast",
        "──────────────────────────────━━━━━━━━━━┫  RANGE 40 SECONDS  SLIDE 10 SECONDS  enclosing",
        " " * 40 + "τ",
    ]


def test_a_select_that_is_not_started_is_drawn_where_it_would_go() -> None:
    drawing = shared_part("EXPLAIN SELECT ticker, COUNT(*) FROM trades [RANGE 20 SECONDS] GROUP BY ticker")
    assert [line.partition("RANGE")[2] for line in drawing if "◀" in line] == [
        " 20 SECONDS  SLIDE 1 SECOND    seed                        ◀ this query"
    ]


def test_every_level_of_a_window_is_marked_and_the_query_counts_once() -> None:
    drawing = shared_part(f"EXPLAIN SELECT ticker, COUNT(*) FROM trades [{LEVELS}] GROUP BY ticker")
    assert drawing[1] == "group 1: 3 windows of 3 queries"
    assert [line.rpartition("◀ ")[2] for line in drawing if "◀" in line] == [
        "this query level 0",
        "this query level 1",
    ]


def test_levels_that_do_not_nest_with_the_others_are_drawn_in_their_own_groups() -> None:
    uneven = "RANGES 49 SECONDS, 20 SECONDS SLIDES 7 SECONDS, 5 SECONDS"
    drawing = shared_part(f"EXPLAIN SELECT ticker, COUNT(*) FROM trades [{uneven}] GROUP BY ticker")
    assert sum(line.startswith("group ") for line in drawing) == 2
    assert sum("◀" in line for line in drawing) == 2


def test_distinct_queries_share_their_appearances() -> None:
    script = SCRIPT + "CREATE QUERY seen AS SELECT DISTINCT ticker FROM trades [RANGE 40 SECONDS SLIDE 10 SECONDS];"
    sharing, *drawing = shared_part("EXPLAIN SELECT DISTINCT ticker AS t FROM trades [TUMBLE 20 SECONDS]", script)
    assert sharing.startswith("sharing: 2 queries over trades, one log of appearances (trades.1:")
    assert drawing[0] == "group 1: 1 window of 1 query"
    alone, *_ = shared_part("EXPLAIN SELECT DISTINCT ticker FROM trades [TUMBLE 20 SECONDS LAG 1 SECOND]", script)
    assert alone.startswith("sharing: 1 query over trades, one log of appearances (trades.1:")


def test_joins_share_what_rows_find_unless_they_group() -> None:
    script = SCRIPT + (
        "CREATE QUERY pairs AS SELECT a.qty FROM trades [RANGE 9s] a JOIN trades [RANGE 5s] b ON a.ticker = b.ticker;"
    )
    joined = "FROM trades [RANGE 20s] a JOIN trades [NOW] b ON b.ticker = a.ticker"
    (sharing,) = shared_part(f"EXPLAIN SELECT a.qty + 1 AS q {joined}", script)
    assert sharing.startswith("sharing: 2 queries over trades, every row looks for its partners once (trades.1+tr")
    assert shared_part(f"EXPLAIN SELECT SUM(a.qty) {joined}", script) == []


def test_a_query_that_shares_nothing_has_no_group() -> None:
    assert shared_part("EXPLAIN SELECT ticker FROM trades [ROWS 10]") == []


def test_every_good_select_can_be_explained_among_all_the_others() -> None:
    texts = [text for text in GOOD if text.lstrip().startswith("SELECT")]
    queries = {f"q{i}": replace(query(text), name=f"q{i}") for i, text in enumerate(texts)}
    for name, each in queries.items():
        lines = explain(each, queries).splitlines()
        signature = published_signature_of(each)
        assert any(line.startswith("sharing: ") for line in lines) == (signature is not None)
        is_drawn = any(f"◀ {name}" in line for line in lines)
        assert is_drawn == (signature is not None and not isinstance(signature, JoinSignature))


@pytest.mark.parametrize(
    ("horizon", "words"),
    [
        (None, "horizon: not known, the query has not taken effect on every partition yet"),
        (DAWN, "horizon: none, it has seen its streams from their first row on"),
        (
            1_700_000_060_001,
            "horizon: 1700000060001 (2023-11-14 22:14:20.001+00:00), it joined late and sees rows above that",
        ),
    ],
)
def test_the_horizon_is_told_in_milliseconds_and_as_a_date(horizon: int | None, words: str) -> None:
    assert horizon_line(horizon) == words


JOINED = """
CREATE STREAM a (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;
"""


def joins(select: str) -> list[str]:
    catalogue = Catalogue()
    catalogue.execute(JOINED)
    (change,) = catalogue.execute(f"EXPLAIN SELECT {select}")
    assert isinstance(change, Explained)
    lines = explain(change.query, {}).splitlines()
    return [line for line in lines if line.startswith(("join: ", "  order: ", "  when: "))]


def test_a_join_says_by_what_when_and_in_which_order_partners_are_found() -> None:
    assert joins(
        "a.x FROM a [RANGE 9s] a, b [RANGE 5s] b, a [RANGE 2s] c WHERE a.k = b.k AND b.k = c.k AND a.x = b.x"
    ) == [
        "join: each row looks once for its partners, by a.k = b.k = c.k, a.x = b.x; "
        "with the other rows of its key where they are many",
        "  order: b, c, a by their windows; while it runs, by the rows and keys that these hold",
        "  when: at the report that shows what it joins with, or when 131,072 rows wait",
    ]


def test_a_join_without_an_equality_says_so() -> None:
    assert joins("a.x FROM a [RANGE 9s] a, b [RANGE 5s] b WHERE a.x < b.x") == [
        "join: each row looks once for its partners, among all that are near enough in time",
        "  when: at the report that shows what it joins with, or when 131,072 rows wait",
    ]


def test_a_join_of_row_windows_joins_what_moves_or_all_at_every_report() -> None:
    said = "join: what the windows hold is joined at every report, by a.k = b.k"
    assert joins("MAX(a.x) FROM a [ROWS 9] a, b [RANGE 5s] b WHERE a.k = b.k") == [said]
    said = "join: each row that enters or leaves is joined, by a.k = b.k"
    assert joins("a.x FROM a [ROWS 9] a, b [RANGE 5s] b WHERE a.k = b.k EMIT CHANGES") == [said]
    assert joins("a.x FROM a [ROWS 9 SLIDE 1s] a, b [RANGE 5s] b WHERE a.k = b.k") == [said]
    assert joins("a.x FROM a [RANGE 9s] a") == []
