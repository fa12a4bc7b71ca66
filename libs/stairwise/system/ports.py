"""Ports: whether each is free, and if not, who has it and what to type; and keeping them until the parts listen.

The supervisor holds every port of its system from the moment it is chosen until the supervisor ends:

    bound, does not listen ──▶ no connection is given it, nor a program that asks for any port
                               a server that names it (with SO_REUSEADDR, as gRPC and the JVM do) may listen there
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterable, Iterator

from stairwise.errors import ConfigError
from stairwise.system.processes import PROC, Identity
from stairwise.system.system_part import SystemPart

_LISTENING = "0A"
EPHEMERAL = PROC / "sys" / "net" / "ipv4" / "ip_local_port_range"
"""The range out of which the kernel gives ports to outgoing connections, and to programs that ask for any port."""
CHOSEN_FROM = range(12_000, 65_536)
"""The range out of which ours are chosen, but for the kernel's: above the ports that programs are known by."""


class PortTakenError(ConfigError):
    """A port that a part needs is taken."""

    def __init__(self, port: int, part: str, holder: Identity | None, *, hint: str) -> None:
        by = f"by process {holder.pid} ({_short(holder.command)})" if holder else "by another process"
        super().__init__(f"port {port}, which {part} needs, is taken {by}", hint=hint)
        self.port = port
        self.part = part
        self.holder = holder


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1 at this port now (connections that linger don't count)."""
    candidate = _listening(port)
    if candidate is not None:
        candidate.close()
    return candidate is not None


def free_ports(count: int) -> list[int]:
    """Different ports that are free now, and that no connection will be given by chance."""
    hold = Hold()
    try:
        return hold.any(count)
    finally:
        hold.release()


class Hold:
    """Ports that are kept for the parts, by this process and whoever it forks."""

    def __init__(self) -> None:
        self._sockets: dict[int, socket.socket] = {}

    def any(self, count: int) -> list[int]:
        """Hold so many ports that nobody else holds, whether or not anyone listens there."""
        found: list[int] = []
        for port in _candidates():
            if len(found) == count:
                break
            if port not in self._sockets and self._take(port):
                found.append(port)
        return found

    def check(self, parts: Iterable[SystemPart]) -> None:
        """Hold the ports of all parts; raises for the first that is taken, or that two parts want."""
        wanted: dict[int, str] = {}
        for part in parts:
            for port in part.ports:
                if port.number in wanted:
                    raise ConfigError(
                        f"port {port.number} is given to both {wanted[port.number]} and {part.name}",
                        hint=f"choose another with {port.option}",
                    )
                wanted[port.number] = part.name
                if port.number not in self._sockets and not self._take_lingering(port.number):
                    other = free_ports(1)[0]
                    hint = (
                        f"stop that process, or choose another port: stairwise up {port.option} {other}"
                        f" (all of them at once: --port-base {_free_base()})"
                    )
                    raise PortTakenError(port.number, part.name, holder_of(port.number), hint=hint)

    def lost(self) -> list[int]:
        """The ports on which others listen, when no part does."""
        return [port for port in self._sockets if not is_free(port)]

    def release(self) -> None:
        for held in self._sockets.values():
            held.close()
        self._sockets.clear()

    def _take(self, port: int) -> bool:
        """Bound without SO_REUSEADDR, so that of two that hold only one succeeds; set then, for the server to come."""
        candidate = socket.socket()
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            candidate.close()
            return False
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets[port] = candidate
        return True

    def _take_lingering(self, port: int) -> bool:
        """A port that was chosen by name may have connections that linger: it is taken only if somebody listens."""
        candidate = _listening(port)
        if candidate is None:
            return False
        candidate.shutdown(socket.SHUT_RDWR)  # stays bound
        self._sockets[port] = candidate
        return True


def _listening(port: int) -> socket.socket | None:
    candidate = socket.socket()
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind(("127.0.0.1", port))
        candidate.listen(1)
    except OSError:
        candidate.close()
        return None
    return candidate


def _candidates() -> Iterator[int]:
    """Ports to try, in random order: first those that the kernel does not give to connections."""
    first, last = (int(bound) for bound in EPHEMERAL.read_text().split())
    for ports in ([p for p in CHOSEN_FROM if not first <= p <= last], range(first, last + 1)):
        yield from random.sample(ports, len(ports))


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
