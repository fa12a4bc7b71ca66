"""The oracle over whole scripts and raw messages."""

from __future__ import annotations

from tests.oracle.script import run

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
