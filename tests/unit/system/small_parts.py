"""Small processes as parts: each is a line of Python that is healthy once it has made its file."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.system.health import Health
from stairwise.system.processes import Identity
from stairwise.system.state import Addresses, PartState, SystemState, read
from stairwise.system.supervised import Backoff
from stairwise.system.supervisor import Supervisor
from stairwise.system.system_part import Check, SystemPart

DEADLINE = 90.0

READY = "open(sys.argv[1], 'w').write(str(os.getpid()))"
WAIT = "signal.pause()"


def fake_part(directory: Path, name: str, *statements: str, **changes: object) -> SystemPart:
    """A process that runs the statements; ``sys.argv[1]`` is the file that says it's healthy."""
    script = "import os, signal, subprocess, sys\n" + "\n".join(statements)
    ready = directory / f"{name}.ready"
    settings = {"patience": DEADLINE, "grace": DEADLINE, **changes}
    command = (sys.executable, "-I", "-S", "-c", script, str(ready))
    return SystemPart(name=name, command=command, check=Check("grpc", str(ready)), **settings)  # type: ignore[arg-type]


def file_is_there(check: Check, timeout: float) -> Health:
    """A probe that asks for the file."""
    ready = Path(check.address)
    if not ready.exists():
        return Health(False, "its file is not there")
    process = Path("/proc") / (ready.read_text() or "self") / "stat"
    if process.exists() and process.read_text().rpartition(")")[2].split()[0] == "T":
        return Health(False, "it is stopped", answered=False)
    return Health(True)


def empty_state(**changes: object) -> SystemState:
    """A state of this very process, without parts."""
    me = Identity.of(os.getpid())
    assert me is not None
    addresses = Addresses("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4")
    settings = {"supervisor": me, "ports": {}, "shards": 1, "addresses": addresses, "parts": (), **changes}
    return SystemState(**settings)  # type: ignore[arg-type]


@dataclass
class System:
    """A supervisor in a thread of its own, and every state that it has been in."""

    supervisor: Supervisor
    states: list[SystemState] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def changed(self, state: SystemState) -> None:
        with self._news:
            self.states.append(state)
            self._news.notify_all()

    def until(self, holds: Callable[[SystemState], bool]) -> SystemState:
        """Wait for the first state, from the beginning on, of which this holds."""

        def found() -> SystemState | None:
            return next((state for state in self.states if holds(state)), None)

        with self._news:
            self._news.wait_for(lambda: found() is not None, DEADLINE)
            state = found()
        assert state is not None, f"it never came to that; the last state was {self.states[-1:]}"
        return state

    def until_on_disk(self, directory: Path, holds: Callable[[SystemState], bool]) -> None:
        """Wait until the state that is on disk is one of which this holds."""
        deadline = time.monotonic() + DEADLINE
        while (found := read(directory)) is None or not holds(found):
            assert time.monotonic() < deadline, f"it was never written; on disk is {found}"
            time.sleep(0.02)

    def until_running(self) -> SystemState:
        return self.until(lambda state: state.phase == "running")

    def until_ended(self) -> SystemState:
        return self.until(lambda state: state.phase in ("stopped", "failed"))


def part_of(state: SystemState, name: str) -> PartState:
    return next(part for part in state.parts if part.name == name)


@contextmanager
def supervised(directory: Path, *parts: SystemPart, backoff: Backoff | None = None) -> Iterator[System]:
    """Run the parts; at the end everything is stopped."""
    system: System

    def changed(state: SystemState) -> None:
        system.changed(state)

    quick = backoff or Backoff(first=0.01)
    supervisor = Supervisor(parts, directory, empty_state(), changed=changed, probe=file_is_there, backoff=quick)
    system = System(supervisor)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        yield system
    finally:
        if thread.is_alive():
            supervisor.request_stop()
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the supervisor does not end"
