"""From a directory and some wishes to a system that is ready to be started, and then to a running one.

Everything that can be wrong is looked at before anything is started: the lock, what an earlier supervisor may
have left, the ports, which are held from then on; then the broker's storage is made.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform.config import Settings
from stairwise.system import logs, state
from stairwise.system.installation import Installation
from stairwise.system.layout import SystemLayout, choose_ports, inherited
from stairwise.system.orphans import stop_orphans
from stairwise.system.ports import Hold
from stairwise.system.processes import Identity
from stairwise.system.state import Lock, SystemState
from stairwise.system.supervisor import Supervisor
from stairwise.system.system_part import SystemPart

DEFAULT_SHARDS = Settings.shards
CHOICES = 3
"""How often ports are chosen for one start, if another program takes one that is held."""

logger = logging.getLogger("stairwise.system")


@dataclass(frozen=True)
class Wishes:
    """What the user has said; None: as at the directory's last start, or the default."""

    ports: Mapping[str, int] = field(default_factory=dict)
    port_base: int | None = None
    shards: int | None = None
    spark_ui_port: int | None = None
    tracing: bool = False
    needed: Set[str] | None = None
    """Which parts to start; None: all."""


@dataclass(frozen=True)
class PreparedSystem:
    """A system that can be started: the lock and the ports are held, the storage is there."""

    directory: Path
    layout: SystemLayout
    parts: tuple[SystemPart, ...]
    lock: Lock
    wishes: Wishes
    hold: Hold

    def elsewhere(self) -> PreparedSystem | None:
        """The same on other ports, if the user left them to us and another program listens on one of these."""
        lost = self.hold.lost()
        if not lost or self.wishes.port_base != 0 or set(lost) & set(self.wishes.ports.values()):
            return None
        logger.warning("others have taken port %s: choosing other ports", ", ".join(map(str, lost)))
        hold = Hold()
        layout = replace(self.layout, ports=choose_ports(self.wishes.ports, 0, free=hold.any))
        parts = layout.parts()
        hold.check(parts)
        self.hold.release()
        layout.broker.prepare()
        return replace(self, layout=layout, parts=parts, hold=hold)

    def initial_state(self) -> SystemState:
        """The state before anything runs; the process that calls this is the supervisor."""
        supervisor = Identity.of(os.getpid())
        assert supervisor is not None
        return SystemState(
            supervisor=supervisor,
            ports=dict(self.layout.ports),
            shards=self.layout.shards,
            addresses=self.layout.addresses,
            parts=(),
            lock=self.lock.identity,
        )


def prepare(directory: Path, wishes: Wishes, installation: Installation, say: Callable[[str], None]) -> PreparedSystem:
    """Make everything ready; raises a typed error, with nothing started, if something is in the way."""
    lock = Lock(directory)
    previous = state.read(directory)
    if previous is not None:
        for orphan in stop_orphans(previous, directory):
            say(f"stopped {orphan.part} (process {orphan.process.pid}), which a killed supervisor left")
    hold = Hold()
    layout = SystemLayout(
        installation=installation,
        directory=directory,
        ports=choose_ports(wishes.ports, wishes.port_base, previous.ports if previous else None, free=hold.any),
        shards=wishes.shards or (previous.shards if previous else DEFAULT_SHARDS),
        spark_ui_port=wishes.spark_ui_port,
        inherited=inherited(os.environ),
        tracing=wishes.tracing,
        needed=wishes.needed,
    )
    parts = layout.parts()
    hold.check(parts)
    if not layout.broker.is_formatted:
        _check_new(directory)
        say("broker     formatting its storage")
    layout.broker.prepare()
    return PreparedSystem(directory, layout, parts, lock, wishes, hold)


def _check_new(directory: Path) -> None:
    """A directory without the broker's data must be one in which nothing was ever evaluated."""
    checkpoint = directory / "operators" / "checkpoint"
    if checkpoint.exists():
        raise ConfigError(
            f"{directory} is not whole: it has no {directory / 'broker' / 'data'}, to which {checkpoint} belongs",
            hint="restore all of it from one backup; or choose another directory by --dir and begin anew there",
        )


def supervise(prepared: PreparedSystem, changed: Callable[[SystemState], None]) -> SystemState:
    """Run the system in this process until SIGINT, SIGTERM or SIGHUP; a second one kills what still runs."""
    for _ in range(CHOICES):
        supervisor = Supervisor(prepared.parts, prepared.directory, prepared.initial_state(), changed=changed)
        with _stopped_by_signals(supervisor):
            last = supervisor.run()
        is_over = last.phase != "failed" or supervisor.is_told_to_stop
        again = None if is_over else prepared.elsewhere()
        if again is None:
            break
        prepared = again
    return last


def log_to_file(directory: Path) -> Path:
    """Send what the supervisor has to say to ``logs/supervisor.log``, a new one for each start."""
    path = logs.log_path(directory, "supervisor")
    logs.rotate(path)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    logger = logging.getLogger("stairwise.system")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    return path


@contextmanager
def _stopped_by_signals(supervisor: Supervisor) -> Iterator[None]:
    """What is ignored stays so: SIGHUP under nohup, SIGINT in the background of a script."""
    candidates = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in candidates if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: supervisor.request_stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
