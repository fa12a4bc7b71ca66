"""The oracle over whole scripts and raw messages."""

from __future__ import annotations

import pytest

from tests.oracle import read, run

TRADES = "CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts LATENESS 2 SECONDS;"


def trade(seconds: float, ticker: str = "A", qty: int = 1) -> dict[str, object]:
    return {"ts": round(seconds * 1000), "ticker": ticker, "qty": qty}


def test_lines_are_ordered_by_time_then_by_query() -> None:
    script = (
        TRADES
        + """
        SELECT COUNT(*) AS n FROM trades [TUMBLE 10 SECONDS];
        CREATE QUERY a AS SELECT SUM(qty) AS n FROM trades [TUMBLE 5 SECONDS];
    """
    )
    lines = run(script, {"trades": [trade(1), trade(7), trade(12)]})
    assert [(line["time"], line["query"], line["row"]["n"]) for line in lines] == [
        (5000, "a", 1),
        (10000, "q1", 2),
        (10000, "a", 1),
        (15000, "a", 1),
        (20000, "q1", 1),
    ]


def test_late_messages_are_left_out_and_those_within_lateness_count() -> None:
    script = TRADES + "SELECT SUM(qty) AS n FROM trades [TUMBLE 10 SECONDS];"
    lines = run(script, {"trades": [trade(9, qty=1), trade(7, qty=2), trade(6.999, qty=4), trade(11, qty=8)]})
    assert [(line["time"], line["row"]["n"]) for line in lines] == [(10000, 3), (20000, 8)]


def test_messages_may_spell_times_and_doubles_as_texts_and_leave_fields_out() -> None:
    script = """
        CREATE STREAM s (ts TIMESTAMP, x DOUBLE, note STRING) TIMESTAMP BY ts;
        SELECT * FROM s;
    """
    lines = run(script, {"s": [{"ts": "1970-01-01T00:00:01.5Z", "x": "-Infinity"}, {"ts": 2000, "x": 3}]})
    assert [line["row"] for line in lines] == [
        {"ts": 1500, "x": "-Infinity", "note": None},
        {"ts": 2000, "x": 3.0, "note": None},
    ]


def test_partitions_order_rows_of_one_time() -> None:
    script = TRADES + "SELECT LAST(qty) AS last FROM trades [TUMBLE 10 SECONDS];"
    messages = [trade(1, qty=1), trade(1, qty=2), trade(1, qty=3)]
    (line,) = run(script, {"trades": messages}, place=lambda stream, number, message: number % 2)
    assert line["row"] == {"last": 2}


PAIRS = """
    CREATE STREAM a (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;
    CREATE STREAM b (ts TIMESTAMP, k STRING, y BIGINT) TIMESTAMP BY ts;
    CREATE STREAM c (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;
"""


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("SELECT * FROM a", ["ts", "k", "x"]),
        ("SELECT a.*, b.y AS z FROM a [NOW], b [NOW]", ["ts", "k", "x", "z"]),
        ("SELECT a.x, x  +\n 1, x AS y FROM a", ["x", "x + 1", "y"]),
        ("SELECT k, count( * ), SUM(x) total FROM a [NOW] GROUP BY k", ["k", "count( * )", "total"]),
        ("SELECT k, TOP(x, 2) FROM a [NOW] GROUP BY k", ["k", "item", "count"]),
        ("SELECT x AS left FROM a UNION ALL SELECT y FROM b", ["left"]),
    ],
)
def test_columns_take_their_names_from_as_or_from_the_column_or_from_the_text(select: str, names: list[str]) -> None:
    (query,) = read(PAIRS + select).queries.values()
    assert [name for name, _ in query.relation.columns] == names


def said(select: str, **messages: list[dict[str, object]]) -> list[dict[str, object]]:
    return [line["row"] for line in run(PAIRS + select, messages)]


def test_group_by_and_having_see_the_names_of_the_list_behind_the_columns() -> None:
    rows = [{"ts": ts, "k": "u", "x": x} for ts, x in enumerate((1, 2, 12), start=1)]
    by_name = said("SELECT x / 10 AS tens, COUNT(*) AS n FROM a [TUMBLE 1s] GROUP BY tens HAVING n > 1", a=rows)
    assert by_name == [{"tens": 0, "n": 2}]
    by_column = said("SELECT COUNT(*) AS k, MAX(x) AS n FROM a [TUMBLE 1s] GROUP BY k HAVING k = 'u'", a=rows)
    assert by_column == [{"k": 3, "n": 12}]


def test_on_sees_the_inputs_up_to_its_own() -> None:
    """``x`` is a's in the first condition: c, which has one too, has not been named."""
    select = "SELECT b.y FROM a [TUMBLE 1s] JOIN b [TUMBLE 1s] ON x = y JOIN c [TUMBLE 1s] ON c.x = y + 1"
    a, b, c = ({"ts": 0, "k": "u", name: value} for name, value in (("x", 1), ("y", 1), ("x", 2)))
    assert said(select, a=[a], b=[b], c=[c]) == [{"y": 1}]


def test_what_is_dropped_says_nothing_and_frees_its_name() -> None:
    script = PAIRS + "SELECT x FROM a; SELECT y FROM b; SELECT x FROM c; DROP QUERY q2; SELECT k FROM b; DROP STREAM c;"
    assert {name: query.relation.columns[0][0] for name, query in read(script).queries.items()} == {
        "q1": "x",
        "q2": "k",
    }


@pytest.mark.parametrize(
    ("select", "emit"),
    [
        ("SELECT x FROM a [NOW]", "CHANGES"),
        ("SELECT DISTINCT x FROM a [NOW]", "CHANGES"),
        ("SELECT COUNT(*) FROM a [NOW]", "RSTREAM"),
        ("SELECT x FROM a [NOW] GROUP BY x", "RSTREAM"),
        ("SELECT COUNT(*) FROM a [NOW] UNION ALL SELECT COUNT(*) FROM b [NOW]", "CHANGES"),
        ("SELECT COUNT(*) FROM a [NOW] EMIT DSTREAM", "DSTREAM"),
        ("SELECT x FROM a EMIT ISTREAM", "RSTREAM"),
    ],
)
def test_what_is_shown_without_emit(select: str, emit: str) -> None:
    assert read(PAIRS + select).queries["q1"].emit == emit


def test_the_time_column_counts_its_unit_and_a_table_without_one_has_held_for_ever() -> None:
    script = """
        CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts IN MICROSECONDS;
        CREATE TABLE t (k STRING, name STRING) KEY (k);
        SELECT s.ts, t.name FROM s [TUMBLE 1s] JOIN t ON s.k = t.k;
    """
    messages = {"s": [{"ts": -1, "k": "u"}], "t": [{"k": "u", "name": "old"}, {"k": "u", "name": "new"}]}
    assert [line["row"] for line in run(script, messages)] == [{"ts": -1, "name": "new"}]
