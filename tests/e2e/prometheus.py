"""A Prometheus that scrapes a running system every second and evaluates the chart's rules."""

from __future__ import annotations

import json
import math
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from stairwise.platform.config import DEFAULT_PORTS
from stairwise.system.ports import free_ports
from tests.chart.test_rules import RULES
from tests.e2e.conftest import System, wait_for


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


@contextmanager
def started_prometheus(program: Path, system: System, directory: Path) -> Iterator[Prometheus]:
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
                program,
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
