"""Processes, told apart beyond doubt: a pid alone may be somebody else's tomorrow.

A process is known by its pid and its start time (clock ticks since boot, with the boot's own id), and is
signalled through a pidfd that was opened before the start time was compared: what is signalled is what was
checked.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """One process, now or in the past: ``started`` differs between two processes that had the same pid."""

    pid: int
    started: str
    command: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The process that has this pid at the moment; None if there is none."""
        started = _started(pid)
        return None if started is None else cls(pid, started, command_of(pid))

    def is_alive(self) -> bool:
        """Whether this very process still runs. A zombie doesn't: it has ended and waits to be collected."""
        return _started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this very process; False if it's gone."""
        handle = self._open()
        if handle is None:
            return False
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended, whoever its parent is; False if it still runs after so many seconds."""
        handle = self._open()
        if handle is None:
            return True
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return bool(poll.poll(max(0.0, timeout) * 1000))
        finally:
            os.close(handle)

    def _open(self) -> int | None:
        """A pidfd of this very process: opened first, compared afterwards, so that no other can slip in."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.is_alive():
            return handle
        os.close(handle)
        return None


def command_of(pid: int) -> str:
    """The command line of a process, or its short name if it has none; empty if it can't be read."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        line = b" ".join(words) or (PROC / str(pid) / "comm").read_bytes().strip()
    except OSError:
        return ""
    return line.decode("utf-8", "replace")


def session_members(session: int) -> Iterator[Identity]:
    """Every live process of a session. A part leads its own: these are the part and all it has started."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and fields.session == session:
                identity = Identity.of(int(entry.name))
                if identity is not None:
                    yield identity


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it can't be read."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def stop_all(processes: list[Identity], grace: float) -> list[Identity]:
    """SIGTERM to all, SIGKILL after ``grace`` seconds to those that remain; returns the latter."""
    deadline = time.monotonic() + grace
    told = [process for process in processes if process.signal(signal.SIGTERM)]
    stubborn = [process for process in told if not process.wait(deadline - time.monotonic())]
    for process in stubborn:
        process.signal(signal.SIGKILL)
        process.wait(grace)
    return stubborn


@dataclass(frozen=True)
class _Stat:
    state: str
    session: int
    start_ticks: int


def _stat(pid: int) -> _Stat | None:
    """The fields of /proc/<pid>/stat that follow the name, which may itself hold blanks and parentheses."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(state=fields[0], session=int(fields[3]), start_ticks=int(fields[19]))


def _started(pid: int) -> str | None:
    fields = _stat(pid)
    if fields is None or fields.state in "ZX":
        return None
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot[:8]}:{fields.start_ticks}"
