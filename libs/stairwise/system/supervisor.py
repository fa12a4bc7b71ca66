"""The supervisor: starts the parts in order, keeps them alive, stops them in the reverse order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from stairwise.system import health, state
from stairwise.system.event_loop import EventLoop
from stairwise.system.state import PartState, SystemPhase, SystemState
from stairwise.system.supervised import Backoff, Probe, Supervised, Surroundings
from stairwise.system.system_part import SystemPart, stop_waves

ATTEMPTS_TO_START = 3
"""A part that ends so often before the system has ever run is broken, and the start is given up."""


WRITE_AGAIN = 1.0
"""How often the state is tried to be written that could not be, in seconds."""

logger = logging.getLogger("stairwise.system")


class Supervisor:
    """Runs the parts of a system in ``directory``; ``changed`` is told of each state when it's on disk."""

    def __init__(
        self,
        parts: Sequence[SystemPart],
        directory: Path,
        initial: SystemState,
        *,
        changed: Callable[[SystemState], None] = lambda _: None,
        probe: Probe = health.probe,
        backoff: Backoff | None = None,
    ) -> None:
        self._stop_order = stop_waves(parts)
        self._directory = directory
        self._changed = changed
        self._stop_requests = 0
        self._loop = EventLoop()
        self._probes = ThreadPoolExecutor(max_workers=len(parts), thread_name_prefix="probe")
        surroundings = Surroundings(
            directory=directory,
            loop=self._loop,
            probe=probe,
            probes=self._probes,
            backoff=backoff or Backoff(),
            changed=self._part_changed,
        )
        self._unwritten_since: float | None = None
        """When the state was last tried to be written that is not on disk."""
        self._parts = {part.name: Supervised(part, surroundings) for part in parts}
        self._state = replace(initial, parts=tuple(part.state for part in self._parts.values()))

    def run(self) -> SystemState:
        """Start, supervise until ``request_stop``, stop. Returns the last state: ``stopped``, or ``failed``.

        The thread that calls it is the parts' parent: if it ends before them, they are told to end as well.
        """
        try:
            self._become("starting")
            failure = self._start()
            if failure is None and not self._stop_requests:
                self._become("running")
                while not self._stop_requests:
                    self._wait()
                    self._tick()
            self._stop(failure or "")
        finally:
            self._probes.shutdown(wait=False, cancel_futures=True)
            self._loop.close()
        return self._state

    @property
    def is_told_to_stop(self) -> bool:
        return self._stop_requests > 0

    def request_stop(self) -> None:
        """Ask for an orderly stop; a second time: kill what still runs. For signal handlers and threads."""
        self._stop_requests += 1
        self._loop.wake()

    def _start(self) -> str | None:
        """Start every part as soon as those before it are healthy; the reason if that can't be done."""
        while not self._stop_requests:
            healthy = {name for name, part in self._parts.items() if part.state.phase == "healthy"}
            if len(healthy) == len(self._parts):
                return None
            for part in self._parts.values():
                if part.state.phase == "waiting" and healthy.issuperset(part.part.after):
                    part.start()
            self._wait()
            for part in self._parts.values():
                if part.failures >= ATTEMPTS_TO_START or (part.was_too_slow and part.running is None):
                    part.fail(part.state.reason)
                    reason = f"{part.part.name} {part.state.reason}"
                    logger.error("giving up the start: %s", reason)
                    return reason
            self._tick()
        return None

    def _stop(self, failure: str) -> None:
        self._become("stopping", failure)
        for wave in self._stop_order:
            stopping = [self._parts[part.name] for part in wave]
            for part in stopping:
                part.stop()
            in_a_hurry = False
            while any(part.running for part in stopping):
                if self._stop_requests > 1 and not in_a_hurry:
                    in_a_hurry = True
                    for part in stopping:
                        part.kill("is not waited for any longer")
                self._wait()
                self._tick()
        self._become("failed" if failure else "stopped", failure)

    def _wait(self) -> None:
        """Sleep until something happens or is due; parts learn here that their processes have ended."""
        due = [time_ for part in self._parts.values() if (time_ := part.next_time()) is not None]
        if self._unwritten_since is not None:
            due.append(self._unwritten_since + WRITE_AGAIN)
        self._loop.wait(max(0.0, min(due) - time.monotonic()) if due else None)

    def _tick(self) -> None:
        """Let the parts do what is due: probes, restarts, kills."""
        now = time.monotonic()
        for part in self._parts.values():
            part.tick(now)
        if self._unwritten_since is not None and now >= self._unwritten_since + WRITE_AGAIN:
            self._publish(self._state)

    def _part_changed(self, part: PartState) -> None:
        self._publish(self._state.with_part(part))

    def _become(self, phase: SystemPhase, reason: str = "") -> None:
        self._publish(replace(self._state, phase=phase, reason=reason))

    def _publish(self, new: SystemState) -> None:
        self._state = new
        was_written = self._unwritten_since is None
        self._unwritten_since = None
        try:
            state.write(self._directory, new)
            if not was_written:
                logger.warning("the state can be written again")
        except FileNotFoundError:
            remark = (
                "%s is gone: stop the system by `stairwise down --dir`, with where it was moved, and start it there"
            )
            logger.error(remark, self._directory)
        except OSError as error:  # a full disk, most of all: the parts are looked after all the same
            self._unwritten_since = time.monotonic()
            if was_written:
                logger.error("the state cannot be written, and is tried again: %s", error)
        self._changed(new)
