"""Operators on a standalone Spark master with two workers, which know nothing of Stairwise but what they are sent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import psutil
import pytest

from bench import spark_backlog as backlog
from services.windows.registry import Registry
from stairwise.system.ports import free_ports
from stairwise.wire.batches import decode_rows
from tests.e2e.conftest import wait_for
from tests.integration.conftest import running_broker
from tests.integration.results_system import running

pytestmark = [pytest.mark.jvm, pytest.mark.long]

MESSAGES = 80


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[psutil.Popen]:
    with log.open("wb") as said:
        started = psutil.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT, cwd=log.parent)
    try:
        yield started
    finally:
        for each in (*started.children(recursive=True), started):
            if each.is_running():
                each.kill()
        started.wait(30)


@contextmanager
def cluster(directory: Path) -> Iterator[tuple[str, list[psutil.Popen]]]:
    """A master and two workers of one core, as an administrator would start them; none has our environment."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    home = Path(found.origin).parent
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME") if name in os.environ}
    environment = {**kept, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    port, page = free_ports(2)
    spark_class, deploy = str(home / "bin" / "spark-class"), "org.apache.spark.deploy"
    address = f"spark://127.0.0.1:{port}"
    host = ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        command = [spark_class, f"{deploy}.master.Master", *host, "--port", str(port), "--webui-port", str(page)]
        stack.enter_context(process(command, directory / "master.log", environment))
        log = directory / "master.log"
        wait_for(lambda: "New state: ALIVE" in log.read_text(), "the master serves")
        workers = []
        for number in range(2):
            work = directory / f"worker{number}"
            work.mkdir()
            options = [*host, "--cores", "1", "--memory", "2g", "--webui-port", "0", "--work-dir", str(work)]
            command = [spark_class, f"{deploy}.worker.Worker", *options, address]
            workers.append(stack.enter_context(process(command, directory / f"worker{number}.log", environment)))
        wait_for(lambda: log.read_text().count("Registering worker") == 2, "both workers are there")
        yield address, workers


def expected(stream_of: Registry) -> dict[int, Counter[str]]:
    """The sums by key of each ten seconds whose end has been passed, row by row."""
    stream = stream_of.catalogue.streams["spread"]
    sums: dict[int, Counter[str]] = {}
    passed = []
    for _, headers, value in backlog.batches(MESSAGES):
        passed.append(headers.watermark)
        for row in decode_rows(value, stream).to_pylist():
            end = -(-row["ts"] // 10_000) * 10_000
            sums.setdefault(end, Counter())[row["k"]] += row["x"]
    return {end: found for end, found in sums.items() if end <= min(passed[-backlog.PARTITIONS :])}


def has_python(worker: psutil.Process) -> bool:
    """Has an executor of this worker started Python?"""
    found = False
    for child in worker.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # it came and went
            found = found or "pyspark.daemon" in child.cmdline()
    return found


def test_two_workers_of_a_cluster_give_the_answers(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, cluster(tmp_path) as (master, workers):
        registry = Registry(broker.bootstrap)
        stream = backlog.declare(registry, "spread", ["TUMBLE 10 SECONDS"])
        backlog.write(broker.bootstrap, stream, registry.catalogue.version, MESSAGES)
        environment = {
            **os.environ,
            "STAIRWISE_BROKERS": broker.bootstrap,
            "STAIRWISE_DIR": str(tmp_path / "system"),
            "STAIRWISE_LISTEN": f"127.0.0.1:{free_ports(1)[0]}",
            "STAIRWISE_SHARDS": "2",
            "STAIRWISE_SPARK_MASTER": master,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        wanted = expected(registry)
        assert len(wanted) >= 1
        log = tmp_path / "operators.log"
        with (
            process([sys.executable, "-m", "services.operators"], log, environment) as operators,
            running(broker.bootstrap, tmp_path / "results.log") as service,
            service.client() as client,
        ):
            wait_for(
                lambda: all(map(has_python, workers)) or not operators.is_running(), "both workers run Python", 240
            )
            with client.subscribe("spread_0", "earliest") as updates:
                for update in islice(updates, len(wanted)):
                    assert {c.row["k"]: c.row["total"] for c in update.changes} == wanted[update.time]
        registry.close()
