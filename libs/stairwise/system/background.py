"""A supervisor in the background, and waiting for it from the foreground."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from stairwise.errors import StairwiseError
from stairwise.system import logs, state
from stairwise.system.display import Display
from stairwise.system.processes import PROC, Identity
from stairwise.system.state import SystemState

LINES_OF_LOG = 20


class StartError(StairwiseError):
    """The system could not be started; the message ends with the end of the log that says why."""


def fork_supervisor(run: Callable[[], None], log: Path) -> int:
    """Run ``run`` in a child with a session of its own, without this terminal; returns the child's pid.

    It must be called while this process has one thread.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child != 0:
        return child
    exit_code = 1
    try:
        os.setsid()
        _leave_terminal(log)
        run()
        exit_code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(exit_code)  # not the caller's way out: its clean-up belongs to the parent


def await_running(directory: Path, pid: int, display: Display) -> SystemState:
    """Show how the supervisor gets on until the system runs; ``StartError`` if it doesn't get there."""
    supervisor = Identity.of(pid)
    try:
        while True:
            ended = supervisor is None or supervisor.wait(0.1)
            current = state.read(directory)
            if current is not None and current.supervisor.pid == pid:
                display.update(current)
                if current.phase == "running":
                    return current
            if ended:
                raise failure(directory, current if current and current.supervisor.pid == pid else None)
    except KeyboardInterrupt:
        if supervisor is not None:
            display.say("interrupted: stopping what was started")
            supervisor.signal(signal.SIGTERM)
            supervisor.wait(60.0)
        raise
    finally:
        display.close()


def failure(directory: Path, last: SystemState | None) -> StartError:
    """Why a start failed: what the supervisor says, and the end of the log of the part that is to blame."""
    blamed = [part.name for part in last.parts if part.phase == "failed"] if last else []
    part = blamed[0] if blamed else "supervisor"
    path = logs.log_path(directory, part)
    lines = "".join(f"\n    {line}" for line in logs.tail(path, LINES_OF_LOG))
    reason = last.reason if last and last.reason else "the supervisor ended before the system ran"
    said = f"the system did not start: {reason}: {logs.last_words(path)}"
    return StartError(f"{said}\n  the end of {path}, which stays:{lines or ' (empty)'}")


def _leave_terminal(log: Path) -> None:
    """Stdin from nowhere, output to the log, and no file kept open that the caller had open."""
    for entry in list((PROC / "self" / "fd").iterdir()):
        descriptor = int(entry.name)
        try:
            # What Python has opened itself (the lock) isn't inheritable; what is was here before us.
            if descriptor > 2 and os.get_inheritable(descriptor):
                os.close(descriptor)
        except OSError:
            continue  # the listing's own descriptor
    nowhere = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, logs.MODE)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nowhere)
    os.close(output)
