"""Queries that say the same are expanded once, and each has its lines."""

from __future__ import annotations

from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;"
SELECT = "SELECT k, SUM(x) AS total FROM s [RANGE 4 MILLISECONDS SLIDE 2 MILLISECONDS] GROUP BY k EMIT CHANGES;"


def test_equal_queries_each_show_what_one_alone_shows() -> None:
    messages = {"s": [{"ts": ts, "k": "ab"[ts % 2], "x": ts} for ts in range(1, 40)]}
    alone = engine_lines(STREAM + SELECT, messages)
    lines = engine_lines(STREAM + 3 * SELECT, messages)
    assert alone
    for name in ("q1", "q2", "q3"):
        assert [line | {"query": "q1"} for line in lines if line["query"] == name] == alone


def test_lines_of_many_queries_stand_in_order_of_time_and_definition() -> None:
    messages = {"s": [{"ts": ts, "k": "a", "x": 1} for ts in range(1, 60)]}
    slides = [1 + i % 7 for i in range(40)]
    script = "".join(f"SELECT SUM(x) FROM s [RANGE 9 MILLISECONDS SLIDE {b} MILLISECONDS];" for b in slides)
    lines = engine_lines(STREAM + script, messages)
    places = [(line["time"], int(line["query"][1:])) for line in lines]
    assert places == sorted(places)
    assert {place[1] for place in places} == set(range(1, 41))
