"""Rows go through the running system once, with their ends: results holds what moved, and a cache needs no −1."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import TopicPartition

from stairwise.platform import kafka
from stairwise.wire import topics
from stairwise.wire.plans import PlanReader
from stairwise.wire.reports import ReportHeaders
from tests.e2e.conftest import System
from tests.oracle import run as oracle_lines

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
STREAM = "CREATE STREAM lived (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts PARTITIONS 1"
SELECT = "SELECT k FROM lived [RANGE 30 SECONDS SLIDE 1 SECOND] EMIT CHANGES"
ROWS = [{"ts": START + n * 100, "k": n % 350} for n in range(1_000)]
STAND = 300
"""So many rows stand at a report."""


def test_a_wide_window_writes_what_moves(system: System) -> None:
    system.sql(f"{STREAM}; CREATE QUERY lived_recently AS {SELECT}")
    system.publish("lived", ROWS, "--seal")
    lines = oracle_lines(f"{STREAM}; CREATE QUERY lived_recently AS {SELECT}", {"lived": ROWS})
    assert system.lines("lived_recently") == lines
    told = system.lines("lived_recently", "--until")
    assert all(line["diff"] == 1 for line in told)
    for time in sorted({line["time"] for line in lines}):
        stands: list[int] = []
        for line in lines:
            if line["time"] <= time:
                (stands.append if line["diff"] > 0 else stands.remove)(line["row"]["k"])
        cached = [line["row"]["k"] for line in told if line["time"] <= time < line["until"]]
        assert sorted(cached) == sorted(stands)
    reports, moved = _published(system, "lived_recently")
    assert reports >= 100
    assert moved < reports * STAND / 4, "whole answers would be longer"


def _published(system: System, query: str) -> tuple[int, int]:
    """How many reports a query has on the topic, and about how many rows of 16 bytes these hold in all."""
    brokers = json.loads((system.directory / "system.json").read_text())["addresses"]["brokers"]
    plans = PlanReader(brokers)
    signature = plans.read_to_end().queries[query].signature
    plans.close()
    consumer = kafka.consumer(brokers, "lifetimes", enable_partition_eof=True)
    consumer.assign([TopicPartition(topics.RESULTS, topics.results_partition(signature), 0)])
    sizes: dict[tuple[int, int], int] = {}
    while (message := consumer.poll(10)) is not None and message.error() is None:
        headers = ReportHeaders.decode(dict(message.headers()))
        if headers.signature == signature:
            sizes[headers.position] = headers.size
    consumer.close()
    return len(sizes), sum(sizes.values()) // 16
