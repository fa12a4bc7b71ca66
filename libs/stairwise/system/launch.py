"""Starting and ending one part's process.

Every part leads a session of its own: a Ctrl-C on the terminal reaches the supervisor alone, which then stops
the parts in order, and whatever a part has started (Spark's JVM and Python workers) can be found and ended
with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from stairwise.system import die_with_parent, health, logs
from stairwise.system.processes import Identity, session_members
from stairwise.system.state import DIRECTORY_VARIABLE
from stairwise.system.system_part import SystemPart

PART_VARIABLE = "STAIRWISE_PART"
_SWEEPS = 5


@dataclass(frozen=True)
class RunningPart:
    """A part's process as its parent sees it."""

    part: SystemPart
    process: subprocess.Popen[bytes]
    identity: Identity
    log: Path

    def tell(self, number: signal.Signals) -> None:
        """Signal the process itself, which is to stop what it has started.

        Not by ``Popen.send_signal``, which reaps a process that has ended; only ``collect`` does that.
        """
        self.identity.signal(number)

    def collect(self) -> int:
        """Take the exit code of a process that has ended, and end what it has left in its session.

        The session is ended before the process is reaped: until then its pid can be nobody else's.
        """
        if self.process.returncode is None:
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
            self.kill_session()
        return self.process.wait()

    def kill_session(self) -> None:
        """End the process and all that it has started, at once.

        By session and not by process group: Spark's Python daemon makes a group of its own. What is forked
        while one sweep goes on is found by the next.
        """
        for _ in range(_SWEEPS):
            members = list(session_members(self.process.pid))
            if not members:
                return
            for member in members:
                member.signal(signal.SIGKILL)
            for member in members:
                member.wait(1.0)


def launch(part: SystemPart, directory: Path) -> RunningPart:
    """Start a part in ``directory``; its stdout and stderr go to a fresh ``logs/<part>.log``.

    Call it from a thread that lives as long as the part may: the part is told to end when that thread does.
    """
    log = logs.log_path(directory, part.name)
    logs.rotate(log)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, logs.MODE), "wb") as output:
        process = subprocess.Popen(
            (sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *part.command),
            env={**os.environ, **part.environment, **marks(part.name, directory)},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # A process that has ended already is a zombie now, known by its pid until it's collected.
    now = Identity.of(process.pid) or Identity(process.pid, "ended", "")
    return RunningPart(part, process, replace(now, command=" ".join(part.command)), log)


def marks(part: str, directory: Path) -> dict[str, str]:
    """What a part's process and all that it starts carry in their environment, and nothing else does."""
    return {DIRECTORY_VARIABLE: str(directory), PART_VARIABLE: part}


def await_healthy(running: RunningPart) -> None:
    """Wait until a part that runs without a supervisor is healthy; TimeoutError if it isn't in time."""
    deadline = time.monotonic() + running.part.patience
    answer = health.Health(False, "not asked yet")
    while time.monotonic() < deadline and running.identity.is_alive():
        answer = health.probe(running.part.check, timeout=2.0)
        if answer.healthy:
            return
        running.identity.wait(0.1)
    said = "\n".join(logs.tail(running.log, 20))
    raise TimeoutError(f"{running.part.name} did not become healthy ({answer.reason}):\n{said}")


def stop(running: RunningPart) -> int:
    """End one part: SIGTERM, and SIGKILL after its grace. Returns the exit code."""
    running.tell(signal.SIGTERM)
    if not running.identity.wait(running.part.grace):
        running.kill_session()
    return running.collect()
