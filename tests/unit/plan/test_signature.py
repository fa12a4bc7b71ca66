"""Which queries share."""

from __future__ import annotations

import pytest

from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.plan.signature import signature_of

BASE = "SELECT k, SUM(x) FROM s [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE x > 3 AND k = 'a' GROUP BY k"


def query(select: str) -> Query:
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE) TIMESTAMP BY ts;")
    catalogue.execute(f"CREATE QUERY q AS {select};")
    return catalogue.queries["q"]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT k, MAX(x) FROM s [RANGE 1 HOUR SLIDE 7 SECONDS] WHERE 'a' = k AND 3 < x GROUP BY k HAVING MAX(x) > 9",
        "SELECT k FROM s [TUMBLE 1 HOUR LAG 5 SECONDS] WHERE x > 3 AND k = 'a' GROUP BY k EMIT CHANGES",
        "SELECT k, AVG(x) FROM s [RANGES 4 SECONDS, 2 SECONDS SLIDES 2 SECONDS, 1 SECOND]"
        " WHERE NOT NOT (x > 3) AND k = 'a' GROUP BY k",
        "SELECT k, SUM(x) FROM s [RANGES 4 SECONDS, 2 SECONDS SLIDES 2 SECONDS, 1 SECOND WEIGHTED BY (1, 0.5)]"
        " WHERE x > 3 AND k = 'a' GROUP BY k",
    ],
)
def test_windows_aggregates_having_projection_and_spelling_do_not_keep_queries_apart(other: str) -> None:
    assert signature_of(query(other)) == signature_of(query(BASE)) is not None


KINDS = (
    ("SUM(x), MAX(x)", "COUNT(*), MIN(k)"),
    ("SUM(y), COUNT(*)", "AVG(y)"),
    ("STDDEV(x), SUM(y)", "VARIANCE(y)", "REGR_SLOPE(x)"),
    ("FIRST(x), SUM(x)", "APPROX_QUANTILE(y, 0.5)"),
    ("MEDIAN(x), SUM(x)", "QUANTILE(x, 0.9)"),
    ("MEDIAN(y)",),
    ("TOP(x, 3)", "FREQUENT(x, 0.5)"),
)


def test_queries_share_slices_with_those_whose_partials_are_of_their_kind() -> None:
    found = [
        {signature_of(query(f"SELECT k, {asked} FROM s [TUMBLE 1 MINUTE] GROUP BY k")) for asked in kind}
        for kind in KINDS
    ]
    assert [len(kind) for kind in found] == [1] * len(KINDS)
    assert len(set().union(*found)) == len(KINDS)


@pytest.mark.parametrize(
    "where",
    [
        "NOT (NOT k IN ('a') OR x <= 1 + 2)",
        "k IN ('a', 'a') AND x > 3 AND 1 = 1 AND NOT x <= 3",
        "(k = 'a' OR k = CASE WHEN TRUE THEN 'a' ELSE 'b' END) AND 3 < x",
    ],
)
def test_two_spellings_of_a_condition_are_one_signature(where: str) -> None:
    other = query(f"SELECT k, SUM(x) FROM s [TUMBLE 1 MINUTE] WHERE {where} GROUP BY k")
    assert signature_of(other) == signature_of(query(BASE))


def test_a_condition_that_every_row_meets_is_none() -> None:
    all_rows = query("SELECT k, SUM(x) FROM s [TUMBLE 1 MINUTE] WHERE 2 > 1 GROUP BY k")
    assert signature_of(all_rows) == signature_of(query("SELECT k, SUM(x) FROM s [TUMBLE 1 MINUTE] GROUP BY k"))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT k, SUM(x) FROM s [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE x > 4 AND k = 'a' GROUP BY k",
        "SELECT k, SUM(x) FROM s [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE x >= 3 AND k = 'a' GROUP BY k",
        "SELECT SUM(x) FROM s [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE x > 3 AND k = 'a'",
        "SELECT x, COUNT(*) FROM s [RANGE 10 SECONDS SLIDE 2 SECONDS] WHERE x > 3 AND k = 'a' GROUP BY x",
    ],
)
def test_other_filters_or_keys_are_another_signature(other: str) -> None:
    assert signature_of(query(other)) not in (None, signature_of(query(BASE)))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT k, SUM(x) FROM s [ROWS 10] WHERE x > 3 AND k = 'a' GROUP BY k",
        "SELECT k, SUM(x) FROM s [FROM 0] WHERE x > 3 AND k = 'a' GROUP BY k",
        "SELECT k, x FROM s [RANGE 10 SECONDS] WHERE x > 3 AND k = 'a'",
    ],
)
def test_other_windows_and_rows_without_groups_share_no_slices(other: str) -> None:
    assert signature_of(query(other)) is None
