"""A real Prometheus scrapes the running system: every panel of every dashboard has data, every rule can be told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.dashboards.catalogue import DASHBOARDS
from tests.chart.tools import tool
from tests.e2e.conftest import System, wait_for
from tests.e2e.prometheus import Prometheus, started_prometheus

pytestmark = pytest.mark.jvm

STREAM = "measured"


@pytest.fixture(scope="module")
def prometheus(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with started_prometheus(tool("prometheus"), system, tmp_path_factory.mktemp("prometheus")) as prometheus:
        yield prometheus


@pytest.fixture(scope="module")
def busy(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Rows of all kinds that keep coming, two queries on one stair, and a subscriber."""
    system.sql(
        f"CREATE STREAM {STREAM} (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
        f"CREATE QUERY {STREAM}_a AS SELECT ticker, SUM(qty) AS q FROM {STREAM} [TUMBLE 1 SECOND] GROUP BY ticker;"
        f"CREATE QUERY {STREAM}_b AS SELECT ticker, SUM(qty) AS q FROM {STREAM} [TUMBLE 5 SECONDS] GROUP BY ticker"
    )
    start = int(time.time() * 1000)
    rows = [{"ts": start + 200 * n, "ticker": f"T{n % 5}", "qty": n} for n in range(6_000)]
    lines = [*(json.dumps(row) for row in rows), "no JSON", json.dumps(rows[0])]
    lines[10:10] = lines[-2:]  # a dead one and, after later ones, a late one
    events = Path(tmp_path_factory.mktemp("events")) / "events.jsonl"
    events.write_text("".join(line + "\n" for line in lines[:-2]))
    processes = [
        system.start("publish", STREAM, str(events), "--rate", "50"),
        system.start("subscribe", f"{STREAM}_a", "--from", "earliest"),
    ]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("busy")
def test_every_panel_shows_data(prometheus: Prometheus) -> None:
    empty = {
        (dashboard.name, panel.title, line.expr)
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        for line in panel.lines
    }

    def all_have_data() -> bool:
        empty.difference_update([each for each in empty if prometheus.has_data(each[2])])
        return not empty

    try:
        wait_for(all_have_data, "every panel has data", within=180)
    except AssertionError:
        pytest.fail(f"without data: {sorted(empty)}")


@pytest.mark.usefixtures("busy")
def test_every_rule_is_evaluated_and_what_is_recorded_has_data(prometheus: Prometheus) -> None:
    def rules() -> list[dict[str, Any]]:
        return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    wait_for(lambda: all(rule["health"] != "unknown" for rule in rules()), "every rule was evaluated")
    assert [(rule["name"], rule.get("lastError")) for rule in rules() if rule["health"] != "ok"] == []
    recorded = [rule["name"] for rule in rules() if rule["type"] == "recording"]
    wait_for(lambda: all(prometheus.has_data(name) for name in recorded), "what is recorded has data")


@pytest.mark.usefixtures("busy")
def test_the_dead_letter_is_told(prometheus: Prometheus) -> None:
    def firing() -> bool:
        alerts = prometheus.get("alerts")["alerts"]
        return any(a["labels"]["alertname"] == "StairwiseDeadLetters" for a in alerts if a["state"] == "firing")

    wait_for(firing, "the alert fires")
