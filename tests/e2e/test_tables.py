"""Tables in the running system: updates that come while queries run, in both meanings, and what the oracle says of it.

An update counts from its time on, but not before what had been reported when it came: `at` is that time here.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stairwise.client import Client
from stairwise.reports.lines import line_dicts
from tests.e2e.conftest import System
from tests.oracle import OracleRow, evaluate

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(300)]

DECLARED = (
    "CREATE STREAM tj (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
    "CREATE TABLE tj_names (k STRING, name STRING) KEY (k);"
    "CREATE TABLE tj_limits (k STRING, most BIGINT, since TIMESTAMP) KEY (k) TIMESTAMP BY since NON RETROACTIVE;"
)
QUERIES = {
    "tj_changing": "SELECT tj.v, tj_names.name FROM tj [RANGE 1 HOUR SLIDE 1 SECOND]"
    " JOIN tj_names ON tj.k = tj_names.k EMIT RSTREAM",
    "tj_staying": "SELECT tj.v, tj_limits.most, tj_limits.since FROM tj [RANGE 1 HOUR SLIDE 1 SECOND]"
    " JOIN tj_limits ON tj.k = tj_limits.k EMIT RSTREAM",
}
LATE = "SELECT tj.v, tj_names.name, tj_limits.most FROM tj [RANGE 2 SECONDS SLIDE 1 SECOND], tj_names, tj_limits"
LATE += " WHERE tj.k = tj_names.k AND tj.k = tj_limits.k EMIT RSTREAM"


def reported(client: Client, query: str, upto: int | None = None) -> list[dict[str, Any]]:
    """The lines of a query from the beginning to a time, or to its end."""
    lines: list[dict[str, Any]] = []
    with client.subscribe(query, "earliest") as updates:
        for update in updates:
            lines += line_dicts(query, update.emission())
            if upto is not None and update.time >= upto:
                break
    return lines


def test_updates_that_come_while_queries_run_change_what_follows_and_nothing_before(system: System) -> None:
    numbers = itertools.count()
    rows: dict[str, list[OracleRow]] = {"tj": [], "tj_names": [], "tj_limits": []}

    with Client.connect(directory=system.directory) as client:

        def publish(stream: str, at: int, row: dict[str, Any]) -> None:
            client.publish(stream, [row])
            rows[stream].append(OracleRow(at, 0, next(numbers), tuple(row.values())))

        def trade(ts: int, k: str, v: int) -> None:
            publish("tj", ts, {"ts": ts, "k": k, "v": v})

        client.execute(DECLARED + ";".join(f"CREATE QUERY {name} AS {text}" for name, text in QUERIES.items()))
        publish("tj_names", 0, {"k": "a", "name": "old"})
        publish("tj_limits", 500, {"k": "a", "most": 10, "since": 500})
        trade(1_000, "a", 1)
        trade(5_001, "nobody", 0)
        for query in QUERIES:  # both tables stand idle, and hold nothing back
            assert [line["time"] for line in reported(client, query, 5_000)] == [1_000, 2_000, 3_000, 4_000, 5_000]
        publish("tj_names", 5_001, {"k": "a", "name": "new"})
        publish("tj_limits", 5_001, {"k": "a", "most": 20, "since": 600})  # it comes too late for what it says
        publish("tj_limits", 8_000, {"k": "a", "most": 30, "since": 8_000})  # and this one before its time
        trade(6_500, "a", 2)
        trade(9_001, "nobody", 0)
        assert reported(client, "tj_staying", 9_000)[-1]["row"] == {"v": 2, "most": 20, "since": 600}
        client.execute(f"CREATE QUERY tj_late AS {LATE}; SEAL TABLE tj_limits")
        system.await_ingest()
        trade(11_000, "a", 3)
        trade(12_001, "nobody", 0)
        assert reported(client, "tj_late", 12_000)[0]["row"] == {"v": 3, "name": "new", "most": 30}
        client.execute("SEAL STREAM tj")
        for name, text in QUERIES.items():
            assert reported(client, name) == evaluate(f"{DECLARED} CREATE QUERY {name} AS {text}", rows)
        assert [line["row"]["v"] for line in reported(client, "tj_late")] == [3, 3]
        explained = client.explain("tj_changing")
        assert "tj_names" in explained
        assert "last of each k" in explained
        listed = {info.name: info for info in client.streams()}
        assert listed["tj_limits"].sealed
        assert not listed["tj_names"].sealed
        assert listed["tj_limits"].declaration.keys == ("k",)
        client.execute("DROP TABLE tj_names")
        assert not {"tj_changing", "tj_late"} & {query.name for query in client.queries()}
