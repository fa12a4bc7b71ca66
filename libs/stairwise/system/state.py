"""What is known of a directory's system: ``DIR/system.json``, written by its supervisor, read by all others.

The file is replaced as a whole at each change, so that a reader never sees half of one. A lock on
``DIR/lock``, held as long as the supervisor lives and released by the kernel however it dies, keeps a second
one out. The lock's file also tells a directory that was moved, system and all, from a copy in which nothing runs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from stairwise.errors import ConfigError, ConflictError
from stairwise.platform.config import Settings
from stairwise.system.processes import Identity
from stairwise.system.system_part import Check

PartPhase = Literal["waiting", "starting", "healthy", "restarting", "stopping", "stopped", "failed"]
SystemPhase = Literal["starting", "running", "stopping", "stopped", "failed"]

DIRECTORY_VARIABLE = "STAIRWISE_DIR"
DEFAULT_DIRECTORY = Path(".stairwise")


NOBODY = Identity(0, "", "")


@dataclass(frozen=True)
class Addresses:
    """Where clients reach the system: Kafka's bootstrap servers, the gRPC servers, and where their spans go."""

    brokers: str
    registry: str
    results: str
    lookups: str
    zipkin: str | None = None


@dataclass(frozen=True)
class PartState:
    """One part: its phase ``since``, its process ``started``, both in seconds since 1970."""

    name: str
    check: Check
    phase: PartPhase = "waiting"
    since: float = 0.0
    started: float | None = None
    process: Identity | None = None
    restarts: int = 0
    reason: str = ""
    metrics: str | None = None


@dataclass(frozen=True)
class SystemState:
    """The whole system. The next start takes ``ports`` and ``shards`` if it is not told otherwise."""

    supervisor: Identity
    ports: dict[str, int]
    shards: int
    addresses: Addresses
    parts: tuple[PartState, ...]
    phase: SystemPhase = "starting"
    reason: str = ""
    lock: str = ""
    """Which file the supervisor's lock is on."""

    @property
    def is_running(self) -> bool:
        return self.supervisor.is_alive()

    def with_part(self, changed: PartState) -> SystemState:
        parts = tuple(changed if part.name == changed.name else part for part in self.parts)
        return replace(self, parts=parts)

    def as_copied(self) -> SystemState:
        """What it says of a copy of the directory: none of its processes belongs there."""
        parts = tuple(replace(part, process=None, phase="stopped") for part in self.parts)
        return replace(self, supervisor=NOBODY, parts=parts, phase="stopped")


class NotRunningError(ConfigError):
    """A verb needs a running system, and the directory has none."""

    def __init__(self, directory: Path, last: SystemState | None = None) -> None:
        if not directory.exists():
            why = " (there is no such directory)"
        elif last is None or last.phase == "stopped":
            why = ""
        elif last.phase == "failed":
            why = f" (the last one failed: {last.reason})"
        else:
            why = f" (its supervisor, process {last.supervisor.pid}, was killed)"
        super().__init__(
            f"no system is running in {directory}{why}",
            hint="start one with `stairwise up --detach`, or name its directory by --dir or STAIRWISE_DIR",
        )


def directory_of(chosen: Path | None, environ: Mapping[str, str]) -> Path:
    """The state directory: as chosen, else by STAIRWISE_DIR, else ``.stairwise`` here."""
    return (chosen or Path(environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)).absolute()


def state_path(directory: Path) -> Path:
    return directory / "system.json"


def lock_path(directory: Path) -> Path:
    return directory / "lock"


def read(directory: Path) -> SystemState | None:
    """What the directory's last supervisor wrote; None if there was none."""
    path = state_path(directory)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=SystemState)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path} can't be read: {error}",
            hint="it was written by another version: stop what runs there, then delete that file",
        ) from error
    return found if found.lock in ("", _file_identity(lock_path(directory))) else found.as_copied()


def write(directory: Path, state: SystemState) -> None:
    path = state_path(directory)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def find(directory: Path | None = None, environ: Mapping[str, str] = os.environ) -> Addresses:
    """The addresses of a running system: by STAIRWISE_REGISTRY and its like, else of the directory's system.

    Without a local system, one variable is enough to say that the system is elsewhere; the others then have
    their usual defaults. With neither, ``NotRunningError`` says how to start one.
    """
    settings = Settings.from_environment(environ)
    told = {
        field
        for field in ("brokers", "registry", "results", "lookups")
        if environ.get(f"STAIRWISE_{field.upper()}", "").strip()
    }
    chosen = directory_of(directory, environ)
    state = read(chosen)
    local = state.addresses if state is not None and state.is_running else None
    if local is None and not told:
        raise NotRunningError(chosen, state)

    def address(field: str) -> str:
        source = settings if local is None or field in told else local
        value: str = getattr(source, field)
        return value

    zipkin = local.zipkin if local is not None else None
    return Addresses(address("brokers"), address("registry"), address("results"), address("lookups"), zipkin)


class Lock:
    """The right to run a system in a directory, held until this process, and whoever it forked, has ended."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = lock_path(directory).open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise _already_running(directory) from error

    @property
    def identity(self) -> str:
        """Which file it is on; one that is moved is still the same, and a copy is another."""
        return _file_identity(self._file.fileno())

    def release(self) -> None:
        self._file.close()


def _file_identity(file: Path | int) -> str:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return "none"
    return f"{found.st_dev}:{found.st_ino}"


def _already_running(directory: Path) -> ConflictError:
    state = read(directory)
    who = f" (supervisor {state.supervisor.pid}, {state.phase})" if state is not None else ""
    return ConflictError(
        f"a system is already running in {directory}{who}",
        hint="`stairwise status` shows it, `stairwise down` stops it; a second needs its own --dir and ports",
    )
