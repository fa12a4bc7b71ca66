"""Completion offers what the grammar accepts at the cursor, and the names that there are."""

from __future__ import annotations

import pytest

from stairwise.cql.completion import Known, completions

KNOWN = Known({"trades": ["ts", "ticker", "qty"], "my quotes": ["ts", "bid"]}, ["volumes", "select"])


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (
            "",
            ["ALTER", "CREATE", "DESCRIBE", "DROP", "EXPLAIN", "GRANT", "RESTART", "REVOKE", "SEAL", "SELECT", "SHOW"],
        ),
        ("se", ["seal", "select"]),
        ("SELECT 1 FROM trades [NOW]; SE", ["SEAL", "SELECT"]),
        ("SHOW ", ["GRANTS", "QUERIES", "STREAMS", "TABLES"]),
        ("DESCRIBE v", ["volumes"]),
        ("SEAL STREAM ", ["trades", '"my quotes"']),
        ("ALTER STREAM ", ["trades", '"my quotes"']),
        ("ALTER STREAM trades SET ", ["IDLE", "LATENESS", "RETAIN"]),
        ("ALTER STREAM trades SET IDLE AFTER ", ["DEFAULT"]),
        ("DROP TABLE ", ["trades", '"my quotes"']),
        ("SELECT COUNT(*) FR", ["FROM"]),
        ("SELECT COUNT(*) FROM t", ["trades"]),
        ("SELECT COUNT(*) FROM trades [NOW], ", ["trades", '"my quotes"']),
        ("SELECT COUNT(*) FROM trades [RANGE 1 ", ["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]),
        ("SELECT COUNT(*) FROM trades [RANGE 1 SECOND ", ["LAG", "LEFT", "OFFSET", "SLIDE"]),
        ("SELECT t", ["ticker", "ts", "top", "to_timestamp", "trim", "true"]),
        ("SELECT COUNT(*) FROM trades [NOW] WHERE b", []),
        ('SELECT COUNT(*) FROM "my quotes" [NOW] WHERE b', ["bid"]),
        ("DROP QUERY v", ["volumes"]),
        ("RESTART QUERY v", ["volumes"]),
        ("EXPLAIN ", ["volumes", '"select"', "ANALYZE", "SELECT"]),
        ("CREATE STREAM s (a B", ["BIGINT", "BOOLEAN"]),
        ("CREATE STREAM s (a BIGINT) TIMESTAMP ", ["BY"]),
        ("SELECT 1 FROM trades [NOW] EMIT ", ["CHANGES", "DSTREAM", "ISTREAM", "RSTREAM"]),
        ("SELECT 'FR", []),
        ("SELECT 1 -- FR", []),
        ("this is no statement FR", []),
    ],
)
def test_what_is_offered(typed: str, offered: list[str]) -> None:
    assert completions(typed, KNOWN) == offered


def test_an_expression_can_begin_with_a_column_or_a_function() -> None:
    offered = completions("SELECT ticker, ", KNOWN)
    assert {"qty", "bid", "COUNT", "CASE"} <= set(offered)
    assert not {"trades", "volumes", "FROM"} & set(offered)
