"""One real broker for all integration tests: free ports, a directory that goes away afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports


@dataclass(frozen=True)
class RealBroker:
    """Where the session's broker is reached."""

    bootstrap: str
    directory: Path


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    """A broker without topics; a test takes topic and group names of its own, since all share this one."""
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@contextmanager
def running_broker(directory: Path) -> Iterator[RealBroker]:
    """A broker for those who cannot share one."""
    port, controller_port = free_ports(2)
    broker = Broker(find_installation(os.environ), directory / "broker", port, controller_port)
    broker.prepare()
    running = launch(broker.part(), directory)
    try:
        await_healthy(running)
        yield RealBroker(broker.address, directory)
    finally:
        stop(running)
