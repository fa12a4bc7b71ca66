"""The page for Prometheus: the names that it gives to what is measured, and what happens if it cannot be served."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from stairwise.errors import ConfigError
from stairwise.platform import scrape
from stairwise.platform.config import Settings

MEASURED = """
import urllib.request
from stairwise.platform import telemetry
from stairwise.system.ports import free_ports

address = f"127.0.0.1:{free_ports(1)[0]}"
telemetry.start("sample", address)
telemetry.meter.create_counter("stairwise.sample.rows", "{row}").add(3, {"stream": "trades"})
telemetry.meter.create_histogram("stairwise.sample.duration", "s").record(0.06)
telemetry.meter.create_up_down_counter("stairwise.sample.readers", "{reader}").add(2)
print(urllib.request.urlopen(f"http://{address}/metrics").read().decode())
"""


def test_names_and_units_are_those_of_the_conventions() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    page = done.stdout.splitlines()
    assert 'stairwise_sample_rows_total{stream="trades"} 3.0' in page
    assert "stairwise_sample_readers 2.0" in page
    assert 'stairwise_sample_duration_seconds_bucket{le="0.05"} 0.0' in page
    assert 'stairwise_sample_duration_seconds_bucket{le="0.075"} 1.0' in page
    assert any(line.startswith("target_info{") and 'service_name="stairwise-sample"' in line for line in page)
    assert any(line.startswith("process_resident_memory_bytes ") for line in page)


def test_a_taken_port_is_an_error_that_names_the_variable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"cannot serve metrics on {address}") as refused:
            scrape.serve(address)
    assert "STAIRWISE_METRICS" in (refused.value.hint or "")


@pytest.mark.parametrize("said", ["", "none", "NONE"])
def test_without_an_address_there_is_no_page(said: str) -> None:
    assert Settings.from_environment({"STAIRWISE_METRICS": said}).metrics is None


def test_an_address_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="STAIRWISE_METRICS"):
        Settings.from_environment({"STAIRWISE_METRICS": "everywhere"})
