"""A service that is started before Kafka: it says so in its log and by its health, and goes on when Kafka is there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stairwise.platform.healthcheck import check
from stairwise.system.ports import free_ports
from tests.e2e.conftest import wait_for
from tests.integration.conftest import RealBroker

pytestmark = pytest.mark.jvm


class Service:
    """A process of a service whose Kafka is at a port of this machine."""

    def __init__(self, name: str, kafka_port: int, directory: Path) -> None:
        (port,) = free_ports(1)
        self._told = {"STAIRWISE_LISTEN": f"127.0.0.1:{port}", "STAIRWISE_BROKERS": f"127.0.0.1:{kafka_port}"}
        self._log = directory / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"services.{name}"],
                env={**os.environ, **self._told, "STAIRWISE_DIR": str(directory)},
                stderr=log,
            )

    @property
    def health(self) -> str:
        """Empty if it serves."""
        return check(self._told)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def await_complaint(self) -> None:
        wait_for(lambda: "NOT_SERVING" in self.health, "its health says that it does not serve")
        assert "does not answer" in self.log


@contextmanager
def started(name: str, kafka_port: int, directory: Path) -> Iterator[Service]:
    service = Service(name, kafka_port, directory)
    try:
        yield service
    finally:
        service.process.kill()
        service.process.wait()


@contextmanager
def reached_by(port: int, bootstrap: str) -> Iterator[None]:
    """The broker at one more port of this machine: it answers there, and tells where it is reached from then on."""
    host, _, number = bootstrap.rpartition(":")
    with socket.create_server(("127.0.0.1", port)) as listening:

        def relay() -> None:
            while True:
                try:
                    near, _ = listening.accept()
                except OSError:
                    return
                far = socket.create_connection((host, int(number)))
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()

        threading.Thread(target=relay, daemon=True).start()
        yield
        listening.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_it_serves_when_kafka_has_come(broker: RealBroker, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with started("results", port, tmp_path) as service:
        service.await_complaint()
        with reached_by(port, broker.bootstrap):
            wait_for(lambda: service.health == "", f"it serves: {service.log}")


def test_it_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with started("windows", port, tmp_path) as service:
        service.await_complaint()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(10) == 0, service.log
