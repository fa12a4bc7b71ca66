"""A real Prometheus scrapes the running system: every panel of every dashboard has data, every rule can be told."""

from __future__ import annotations

import json
import math
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.dashboards.catalogue import DASHBOARDS
from stairwise.platform.config import DEFAULT_PORTS
from stairwise.system.ports import free_ports
from tests.chart.test_rules import RULES
from tests.chart.tools import tool
from tests.e2e.conftest import System, wait_for

pytestmark = pytest.mark.jvm

STREAM = "measured"


class Prometheus:
    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **parameters: str) -> Any:
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def has_data(self, expr: str) -> bool:
        """Is there a value that is one? A quantile of nothing is NaN."""
        values = [float(series["value"][1]) for series in self.get("query", query=expr)["result"]]
        return any(not math.isnan(value) for value in values)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5):
                return True
        except OSError:
            return False


@pytest.fixture(scope="module")
def prometheus(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    pages = [urllib.parse.urlsplit(part["metrics"]).netloc for part in system.parts().values() if part["metrics"]]
    assert len(pages) == len(DEFAULT_PORTS)
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "stairwise", "static_configs": [{"targets": pages}]}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        prometheus = Prometheus(address)
        wait_for(prometheus.is_ready, f"Prometheus is ready: {(directory / 'log').read_text()[-500:]}")
        yield prometheus
    finally:
        process.terminate()
        process.wait(30)


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
