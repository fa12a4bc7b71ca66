"""Starts and stops in a row, on ports that `stairwise up` chooses, while connections take ports at random."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import services
from stairwise.system import state
from stairwise.system.state import SystemState
from tests import command_server
from tests.integration.connections import load_of_connections
from tests.integration.test_up import STAND_IN

pytestmark = pytest.mark.jvm

WITHIN = 300


class User:
    """Someone who starts a system in a directory and stops it, again and again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {**os.environ, "STAIRWISE_DIR": str(directory)}

    def without_spark(self, *stand_ins: str) -> None:
        """From now on something that only says it is healthy stands for operators; the other parts are as ever."""
        package = self.directory.parent / "python" / "services"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"__path__ += {list(services.__path__)!r}")
        for name in ("operators", *stand_ins):
            (package / f"{name}.py").write_text(STAND_IN)
        self.environ["PYTHONPATH"] = str(package.parent)

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        return command_server.run(words, self.environ, within=WITHIN)

    @property
    def state(self) -> SystemState:
        read = state.read(self.directory)
        assert read is not None
        return read

    def starts_and_stops(self, times: int) -> None:
        for number in range(times):
            started = self.types("up", "--detach", "--port-base", "0")
            assert started.returncode == 0, f"start {number}: {started.stderr}"
            restarts = {part.name: (part.restarts, part.reason) for part in self.state.parts if part.restarts}
            assert not restarts, f"start {number}"
            stopped = self.types("down")
            assert stopped.returncode == 0, f"stop {number}: {stopped.stderr}"


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    someone = User(tmp_path / "system")
    yield someone
    someone.types("down")


def test_no_start_loses_a_port_to_a_connection(user: User) -> None:
    user.without_spark()
    with load_of_connections():
        user.starts_and_stops(4)  # tests/e2e/test_moved_directory.py has the fifth, with Spark


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_no_start_of_a_hundred_loses_a_port_to_a_connection(user: User) -> None:
    with load_of_connections():
        user.starts_and_stops(100)
    print("starts and stops beside a load of connections: 100, failed: 0")


class Thief(threading.Thread):
    """A server that listens on a port of the system as soon as that is known, before the part whose port it is."""

    def __init__(self, directory: Path, part: str) -> None:
        super().__init__(daemon=True)
        self._directory, self._part = directory, part
        self.taken: socket.socket | None = None
        self.start()

    def run(self) -> None:
        deadline = time.monotonic() + WITHIN
        while self.taken is None and time.monotonic() < deadline:
            seen = state.read(self._directory)
            if seen is not None and seen.ports:
                self.taken = socket.create_server(("127.0.0.1", seen.ports[self._part]))
            time.sleep(0.01)


def test_ports_are_chosen_again_when_another_server_takes_one(user: User) -> None:
    user.without_spark("windows", "ingest", "results", "lookups")
    thief = Thief(user.directory, "windows")
    started = user.types("up", "--detach", "--port-base", "0")
    assert started.returncode == 0, started.stderr
    assert thief.taken is not None
    port = thief.taken.getsockname()[1]
    assert port not in user.state.ports.values()
    log = (user.directory / "logs" / "supervisor.log").read_text()
    assert f"others have taken port {port}: choosing other ports" in log
