"""What a killed supervisor has left behind, found by its system.json and stopped before the next start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stairwise.system.launch import marks
from stairwise.system.processes import Identity, environment_of, session_members, stop_all
from stairwise.system.state import SystemState

GRACE = 20.0


@dataclass(frozen=True)
class Orphan:
    """A process that belongs to a part of the directory's last system."""

    part: str
    process: Identity


def find_orphans(state: SystemState, directory: Path) -> list[Orphan]:
    """The parts' processes that still run, and what those have started.

    A process counts only if it is, by start time and command line, the very one that was written down, or if
    it's in the session that this one leads or led, and carries the marks of that part and directory.
    """
    found = []
    for part in state.parts:
        leader = part.process
        if leader is None:
            continue
        expected = marks(part.name, directory).items()
        for member in session_members(leader.pid):
            if member == leader or expected <= environment_of(member.pid).items():
                found.append(Orphan(part.name, member))
    return found


def stop_orphans(state: SystemState, directory: Path) -> list[Orphan]:
    """Stop them all, SIGTERM first; returns what was found."""
    orphans = find_orphans(state, directory)
    stop_all([orphan.process for orphan in orphans], GRACE)
    return orphans
