"""EXPLAIN: the annotated tree, the labels of its edges, the steps below it."""

from __future__ import annotations

from textwrap import dedent

from stairwise.plan.explain import explain
from tests.unit.cql.fuzz_statements import GOOD
from tests.unit.cql.market import query


def tree(text: str) -> str:
    return explain(query(text), {}).split("\napplied:")[0].split("\nrefused:")[0]


MOVES = "rows that enter and leave"


def drawn(text: str) -> str:
    return dedent(text).strip()


def test_a_grouped_query() -> None:
    text = """SELECT ticker, SUM(qty) AS volume FROM trades [RANGE 1m SLIDE 10s]
              WHERE price > 10 GROUP BY ticker HAVING COUNT(*) > 1"""
    assert tree(text) == drawn("""
        q1: EMIT RSTREAM
        Project ticker, agg0 AS volume                          WK
        └─ Select agg1 > 1                                      WK
           └─ Group agg0 = SUM(qty), agg1 = COUNT(*) BY ticker  WK         slices and stair
              └─ Window [RANGE 1 MINUTE SLIDE 10 SECONDS]       WKS
                 └─ Project ticker, qty                         monotonic
                    └─ Select price > 10.0                      monotonic
                       └─ Scan trades                           monotonic
    """)


def test_a_filter_is_drawn_in_its_canonical_form() -> None:
    text = """SELECT SUM(qty) FROM trades [RANGE 1m]
              WHERE NOT (price <= 2 * 5.0 OR ticker NOT IN ('b', 'a', 'b')) AND qty > 0"""
    assert "Select (price > 10.0) AND (qty > 0) AND (ticker IN ('a', 'b'))" in tree(text)


def test_a_join_qualifies_its_columns() -> None:
    text = """SELECT a.ticker, b.price AS quote, UPPER(a.ticker) FROM trades [RANGE 30s] a JOIN quotes [ROWS 9] b
              ON a.ticker = b.ticker WHERE b.level = 0"""
    assert tree(text) == drawn(f"""
        q1: EMIT CHANGES
        Project a.ticker, b.price AS quote, UPPER(a.ticker) AS UPPER(a.ticker)  STR
        └─ Join ON a.ticker = b.ticker                                          STR        {MOVES}
           ├─ Window [RANGE 30 SECONDS SLIDE 1 SECOND]                          WKS
           │  └─ Project a.ticker                                               monotonic
           │     └─ Scan trades AS a                                            monotonic
           └─ Select b.level = 0                                                WKS
              └─ Window [ROWS 9 SLIDE 1]                                        WKS
                 └─ Project b.ticker, b.price, b.level                          monotonic
                    └─ Scan quotes AS b                                         monotonic
    """)


def test_a_difference_counts_rows_that_enter_and_leave() -> None:
    text = (
        "SELECT ticker FROM trades [NOW] EXCEPT SELECT ticker FROM halted [NOW] UNION ALL SELECT word FROM words [NOW]"
    )
    lines = tree(text).splitlines()
    assert [line.split()[1:] for line in lines[1:2]] == [["STR", *["rows", "that", "enter", "and", "leave"]]]
    assert not any("rows that enter" in line for line in lines[2:])


def test_the_steps_are_listed_with_their_reasons() -> None:
    text = "SELECT DISTINCT ticker FROM trades [RANGE 5s LAG 1s] WHERE odd"
    lines = explain(query(text), {}).splitlines()
    applied, refused = lines.index("applied:"), lines.index("refused:")
    assert lines[applied + 1].startswith("  selection below the window (trades): a row is in this window by its time")
    assert lines[applied + 2] == "  projection below the window (trades): only ticker is needed above the window"
    assert refused == applied + 3
    assert lines[refused + 1].startswith("  duplicate elimination below the window (trades): the latest appearance")


def test_every_good_select_can_be_explained() -> None:
    for text in GOOD:
        if text.lstrip().startswith("SELECT"):
            assert explain(query(text), {}).startswith("q1: EMIT")
