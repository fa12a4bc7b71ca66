"""Stopping a directory's system from outside: its supervisor does it, or what it left is stopped by id."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from stairwise.system import state
from stairwise.system.display import Display
from stairwise.system.orphans import stop_orphans

DEADLINE = 90.0


@dataclass(frozen=True)
class Stopped:
    """A part that ran before and does not run now."""

    part: str
    pid: int


def stop_system(directory: Path, display: Display) -> list[Stopped]:
    """Stop whatever runs in the directory, and wait for it; empty if nothing did."""
    before = state.read(directory)
    if before is None:
        return []
    if not before.is_running:
        return [Stopped(orphan.part, orphan.process.pid) for orphan in stop_orphans(before, directory)]
    running = [Stopped(part.name, part.process.pid) for part in before.parts if part.process is not None]
    running.append(Stopped("supervisor", before.supervisor.pid))
    before.supervisor.signal(signal.SIGTERM)
    deadline = time.monotonic() + DEADLINE
    while not before.supervisor.wait(0.1):
        now = state.read(directory)
        if now is not None and now.supervisor == before.supervisor:
            display.update(now)
        if time.monotonic() > deadline:
            display.say(f"the supervisor ({before.supervisor.pid}) does not end: killing it")
            before.supervisor.signal(signal.SIGKILL)
            before.supervisor.wait(10.0)
    last = state.read(directory)
    if last is not None:
        display.update(last)
        stop_orphans(last, directory)
    display.close()
    return running
