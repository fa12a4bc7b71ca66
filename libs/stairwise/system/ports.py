"""Ports: whether each is free, and if not, who has it and what to type."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import ExitStack

from stairwise.errors import ConfigError
from stairwise.system.parts import Part
from stairwise.system.processes import PROC, Identity

_LISTENING = "0A"


class PortTakenError(ConfigError):
    """A port that a part needs is taken."""

    def __init__(self, port: int, part: str, holder: Identity | None, *, hint: str) -> None:
        by = f"by process {holder.pid} ({_short(holder.command)})" if holder else "by another process"
        super().__init__(f"port {port}, which {part} needs, is taken {by}", hint=hint)
        self.port = port
        self.part = part
        self.holder = holder


def check_free(parts: Iterable[Part]) -> None:
    """Raise for the first port that is taken, or that two parts want."""
    wanted: dict[int, str] = {}
    for part in parts:
        for port in part.ports:
            if port.number in wanted:
                raise ConfigError(
                    f"port {port.number} is given to both {wanted[port.number]} and {part.name}",
                    hint=f"choose another with {port.option}",
                )
            wanted[port.number] = part.name
            if not is_free(port.number):
                other = free_ports(1)[0]
                hint = (
                    f"stop that process, or choose another port: stairwise up {port.option} {other}"
                    f" (all of them at once: --port-base {_free_base()})"
                )
                raise PortTakenError(port.number, part.name, holder_of(port.number), hint=hint)


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1 at this port now (connections that linger don't count)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
            candidate.listen(1)
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Different ports that are free now; all are held until the last is known."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for candidate in sockets:
            candidate.bind(("127.0.0.1", 0))
        return [candidate.getsockname()[1] for candidate in sockets]


def holder_of(port: int) -> Identity | None:
    """The process that listens on a port, as far as /proc shows it to this user."""
    sockets = set(_listening_sockets(port))
    if not sockets:
        return None
    for entry in PROC.iterdir():
        if entry.name.isdigit() and sockets & _sockets_of(int(entry.name)):
            return Identity.of(int(entry.name))
    return None


def _listening_sockets(port: int) -> Iterable[str]:
    """The sockets, as /proc/<pid>/fd names them, that listen on this port of any address."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{fields[9]}]"


def _sockets_of(pid: int) -> set[str]:
    found = set()
    try:
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            found.add(os.readlink(descriptor))
    except OSError:
        return found  # it has just ended, or belongs to somebody else
    return found


def _free_base() -> int:
    """A base for ``--port-base`` that is free now, below the ports that the kernel gives to clients."""
    return next(base for base in range(17070, 32000, 100) if all(is_free(base + i) for i in range(8)))


def _short(command: str) -> str:
    return command if len(command) <= 80 else command[:77] + "..."
