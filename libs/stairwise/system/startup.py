"""From a directory and some wishes to a system that is ready to be started, and then to a running one.

Everything that can be wrong is looked at before anything is started: the lock, what an earlier supervisor may
have left, the ports; then the broker's storage is made.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.platform.config import Settings
from stairwise.system import logs, state
from stairwise.system.installation import Installation
from stairwise.system.layout import Layout, choose_ports, inherited
from stairwise.system.orphans import stop_orphans
from stairwise.system.parts import Part
from stairwise.system.ports import check_free
from stairwise.system.processes import Identity
from stairwise.system.state import Lock, SystemState
from stairwise.system.supervisor import Supervisor

DEFAULT_SHARDS = Settings.shards


@dataclass(frozen=True)
class Wishes:
    """What the user has said; None: as at the directory's last start, or the default."""

    ports: Mapping[str, int] = field(default_factory=dict)
    port_base: int | None = None
    shards: int | None = None
    spark_ui_port: int | None = None
    tracing: bool = False


@dataclass(frozen=True)
class Prepared:
    """A system that can be started: the lock is held, the ports are free, the storage is there."""

    directory: Path
    layout: Layout
    parts: tuple[Part, ...]
    lock: Lock

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
        )


def prepare(directory: Path, wishes: Wishes, installation: Installation, say: Callable[[str], None]) -> Prepared:
    """Make everything ready; raises a typed error, with nothing started, if something is in the way."""
    lock = Lock(directory)
    previous = state.read(directory)
    if previous is not None:
        for orphan in stop_orphans(previous, directory):
            say(f"stopped {orphan.part} (process {orphan.process.pid}), which a killed supervisor left")
    layout = Layout(
        installation=installation,
        directory=directory,
        ports=choose_ports(wishes.ports, wishes.port_base, previous.ports if previous else None),
        shards=wishes.shards or (previous.shards if previous else DEFAULT_SHARDS),
        spark_ui_port=wishes.spark_ui_port,
        inherited=inherited(os.environ),
        tracing=wishes.tracing,
    )
    parts = layout.parts()
    check_free(parts)
    if not layout.broker.is_formatted:
        say("broker     formatting its storage")
    layout.broker.prepare()
    return Prepared(directory, layout, parts, lock)


def supervise(prepared: Prepared, changed: Callable[[SystemState], None]) -> SystemState:
    """Run the system in this process until SIGINT, SIGTERM or SIGHUP; a second one kills what still runs."""
    supervisor = Supervisor(prepared.parts, prepared.directory, prepared.initial_state(), changed=changed)
    with _stopped_by_signals(supervisor):
        return supervisor.run()


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
