"""`stairwise up`, `status` and `down` as a user types them, with a real broker.

The services are stand-ins that serve the gRPC health protocol and nothing else: this tests the supervision, not
what is supervised.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stairwise.system import state
from stairwise.system.health import quiet
from stairwise.system.state import PartState, SystemState
from tests import command_server

pytestmark = pytest.mark.jvm

DEADLINE = 180.0
STAND_IN = """
import concurrent.futures, os, signal, sys, threading
import grpc
from grpc_health.v1 import health, health_pb2_grpc

end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: end.set())
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
server.add_insecure_port(os.environ["STAIRWISE_LISTEN"])
server.start()
print("serving", flush=True)
end.wait()
server.stop(0).wait()
"""


class User:
    """Someone who types commands in a directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / ".stairwise"
        services = home / "python" / "services"
        services.mkdir(parents=True)
        (services / "__init__.py").touch()
        for name in ("windows", "ingest", "operators", "results", "lookups"):
            (services / f"{name}.py").write_text(STAND_IN)
        self.environ = {**os.environ, "PYTHONPATH": str(services.parent)}
        self.environ.pop("STAIRWISE_DIR", None)

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        return command_server.run(words, self.environ, cwd=self.home, within=180)

    def status(self) -> dict[str, dict[str, Any]]:
        answer = self.types("status")
        assert answer.stderr == ""
        return {row["part"]: row for row in map(json.loads, answer.stdout.splitlines())}

    @property
    def state(self) -> SystemState:
        read = state.read(self.directory)
        assert read is not None
        return read

    def part(self, name: str) -> PartState:
        return next(part for part in self.state.parts if part.name == name)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    someone = User(tmp_path)
    yield someone
    someone.types("down")


def test_the_life_of_a_detached_system(user: User) -> None:
    started = user.types("up", "--detach", "--port-base", "0")
    assert started.returncode == 0, started.stderr
    assert f"registry  {user.state.addresses.registry}" in started.stdout
    assert "windows    healthy" in started.stderr
    assert state.find(user.directory, {}) == user.state.addresses

    rows = user.status()
    assert list(rows) == ["broker", "windows", "ingest", "operators", "results", "lookups"]
    assert {row["health"] for row in rows.values()} == {"healthy"}
    assert rows["ingest"]["lag"] == 0
    assert rows["results"]["lag"] is None

    again = user.types("up", "--detach")
    assert again.returncode == 1
    assert "already running" in again.stderr
    assert "stairwise down" in again.stderr

    _lag_is_what_ingest_has_not_committed(user)
    _a_killed_service_comes_back(user)
    _a_part_that_does_not_answer_makes_status_fail(user)

    processes = [part.process for part in user.state.parts]
    ports = user.state.ports
    stopped = user.types("down")
    assert stopped.returncode == 0
    assert "stopped broker (process " in stopped.stdout
    assert not any(process.is_alive() for process in processes if process is not None)
    nothing = user.types("down")
    assert (nothing.returncode, nothing.stdout) == (0, f"nothing is running in {user.directory}\n")

    _a_start_goes_on_where_it_stopped_and_cleans_up_after_a_killed_supervisor(user, ports)
    _a_copy_is_not_what_runs(user)
    _a_directory_that_was_moved_while_it_runs_can_be_stopped(user)


def _lag_is_what_ingest_has_not_committed(user: User) -> None:
    bootstrap = quiet({"bootstrap.servers": user.state.addresses.brokers})
    admin = AdminClient(bootstrap)
    for future in admin.create_topics([NewTopic("in.trades", 2), NewTopic("other", 1)]).values():
        future.result(30)
    producer_script = (
        "import sys; from confluent_kafka import Producer; p = Producer({'bootstrap.servers': sys.argv[1]})\n"
        "for n in range(10): p.produce('in.trades', b'{}', partition=n % 2)\n"
        "p.produce('other', b'{}'); p.flush()"
    )
    subprocess.run([sys.executable, "-c", producer_script, user.state.addresses.brokers], check=True)
    assert user.status()["ingest"]["lag"] == 10
    consumer = Consumer({**bootstrap, "group.id": "stairwise-ingest", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("in.trades", 0, 3)], asynchronous=False)
    consumer.close()
    assert user.status()["ingest"]["lag"] == 7


def _a_killed_service_comes_back(user: User) -> None:
    before = user.part("results").process
    assert before is not None
    before.signal(signal.SIGKILL)
    wait_until(
        lambda: user.part("results").restarts == 1 and user.part("results").phase == "healthy",
        "results is healthy again",
    )
    row = user.status()["results"]
    assert (row["restarts"], row["health"]) == (1, "healthy")
    log = (user.directory / "logs" / "supervisor.log").read_text()
    assert "results was ended by SIGKILL" in log
    assert "serving" in log


def _a_part_that_does_not_answer_makes_status_fail(user: User) -> None:
    process = user.part("lookups").process
    assert process is not None
    process.signal(signal.SIGSTOP)
    try:
        answer = user.types("status", "--format", "table")
        assert answer.returncode == 1
        assert "no answer within 3 s" in " ".join(answer.stdout.split())
    finally:
        process.signal(signal.SIGCONT)


def _a_start_goes_on_where_it_stopped_and_cleans_up_after_a_killed_supervisor(
    user: User, ports: dict[str, int]
) -> None:
    assert user.types("up", "--detach").returncode == 0
    assert user.state.ports == ports
    assert user.status()["ingest"]["lag"] == 7

    supervisor = user.state.supervisor
    stubborn = user.part("broker").process
    assert stubborn is not None
    stubborn.signal(signal.SIGSTOP)  # it can't follow the kernel's SIGTERM, so that something is left over
    supervisor.signal(signal.SIGKILL)
    assert supervisor.wait(DEADLINE)
    gone = user.types("status")
    assert gone.returncode == 1
    assert "was killed" in gone.stderr
    stubborn.signal(signal.SIGCONT)

    restarted = user.types("up", "--detach")
    assert restarted.returncode == 0, restarted.stderr
    assert not stubborn.is_alive()
    assert user.types("status").returncode == 0


def _a_copy_is_not_what_runs(user: User) -> None:
    subprocess.run(["cp", "-a", ".stairwise", "copy"], cwd=user.home, check=True)
    asked = user.types("status", "--dir", "copy")
    assert asked.returncode == 1
    assert f"no system is running in {user.home / 'copy'}\n" in asked.stderr
    assert user.types("down", "--dir", "copy").stdout == f"nothing is running in {user.home / 'copy'}\n"
    refused = user.types("up", "--dir", "copy")
    assert refused.returncode == 1
    assert "is taken by process" in refused.stderr
    assert user.types("status").returncode == 0


def _a_directory_that_was_moved_while_it_runs_can_be_stopped(user: User) -> None:
    processes = [part.process for part in user.state.parts]
    user.directory.rename(user.home / "moved")
    gone = user.types("status")
    assert gone.returncode == 1
    assert "there is no such directory" in gone.stderr
    stopped = user.types("down", "--dir", "moved")
    assert stopped.returncode == 0, stopped.stderr
    assert "stopped broker (process " in stopped.stdout
    assert not any(process.is_alive() for process in processes if process is not None)
    assert user.types("status", "--dir", "moved").returncode == 1


HEEDING_CTRL_C = (
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
)
"""Tests may run in the background of a script, where SIGINT is ignored; what a person starts heeds it."""


def test_ctrl_c_stops_a_system_in_the_foreground(user: User) -> None:
    command = [*HEEDING_CTRL_C, "-m", "stairwise.cli.main", "up", "--port-base", "0"]
    with subprocess.Popen(
        command, cwd=user.home, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as terminal:
        assert terminal.stdout is not None
        assert terminal.stdout.readline() == "Stairwise is running.\n"
        processes = [part.process for part in user.state.parts]
        terminal.send_signal(signal.SIGINT)
        _, shown = terminal.communicate(timeout=DEADLINE)
    assert terminal.returncode == 0, shown
    assert "goes on from here" in shown
    assert not any(process.is_alive() for process in processes if process is not None)
    assert user.state.phase == "stopped"


def test_a_service_that_can_not_start_fails_the_start_with_the_end_of_its_log(user: User) -> None:
    (user.home / "python" / "services" / "results.py").write_text("raise SystemExit('no such setting')")
    started = user.types("up", "--detach", "--port-base", "0")
    assert started.returncode == 1
    assert "the system did not start: results exited with code 1" in started.stderr
    assert "no such setting" in started.stderr
    assert not any(part.process for part in user.state.parts)
