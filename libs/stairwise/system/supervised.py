"""The life of one part under supervision.

```
waiting ──start──▶ starting ──answers──▶ healthy
                    ▲    │ ended or too slow │ ended
                    │    ▼                   ▼
                 back-off over ◀───── restarting            any of them ──stop──▶ stopping ──▶ stopped
```
The supervisor's loop calls ``tick`` when ``next_time`` has come or a probe has been answered; the part says
what it became through ``changed``. All of it happens in the loop's thread, except for the probes themselves.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path

from stairwise.system import logs
from stairwise.system.event_loop import EventLoop
from stairwise.system.health import Health
from stairwise.system.launch import RunningPart, launch
from stairwise.system.state import PartState
from stairwise.system.system_part import Check, SystemPart

PROBE_EVERY = 0.2
PROBE_TIMEOUT = 2.0
LOOK_EVERY = 3.0
"""How often a part is asked for its health that was healthy, in seconds."""
LOOK_TIMEOUT = 3.0
SILENCES = 3
"""A part that so many times in a row has not answered, for about 10 seconds, hangs. Counted and not timed: a supervisor
that was itself stopped for a while has asked nobody meanwhile."""
LINES_OF_LOG = 8

logger = logging.getLogger("stairwise.system")

Probe = Callable[[Check, float], Health]


@dataclass(frozen=True)
class Backoff:
    """How long to wait before a restart: doubling from ``first`` to ``longest`` seconds.

    A part that has been healthy for ``calm`` seconds begins with ``first`` again.
    """

    first: float = 0.25
    longest: float = 15.0
    calm: float = 5.0

    def delay(self, failures: int) -> float:
        """The wait after so many failures in a row (1: the first)."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30))


@dataclass(frozen=True)
class Surroundings:
    """What all parts of a supervisor share."""

    directory: Path
    loop: EventLoop
    probe: Probe
    probes: Executor
    backoff: Backoff
    changed: Callable[[PartState], None]


class Supervised:
    """One part's process, restarted as often as it ends, until it is to stop."""

    def __init__(self, part: SystemPart, surroundings: Surroundings) -> None:
        self.part = part
        self.state = PartState(part.name, part.check, metrics=part.metrics)
        self.running: RunningPart | None = None
        self.failures = 0
        self.was_too_slow = False
        self._in = surroundings
        self._answer: Future[Health] | None = None
        self._why_killed = ""
        self._silences = 0
        self._begun = 0.0
        self._due: float | None = None

    def start(self) -> None:
        """Start the process; from now on it is asked for its health until it answers."""
        self._begun = self._due = time.monotonic()
        self._answer = None
        self._why_killed = ""
        try:
            self.running = launch(self.part, self._in.directory)
        except (OSError, subprocess.SubprocessError) as error:
            self._plan_restart(f"could not be started: {error}")
            return
        self._in.loop.when_ended(self.running.identity.pid, self._ended)
        self._become(
            replace(self.state, phase="starting", process=self.running.identity, started=time.time(), reason="")
        )

    def next_time(self) -> float | None:
        """When ``tick`` is to be called, on the monotonic clock; None: not before something else happens."""
        return self._due

    def tick(self, now: float) -> None:
        if self._answer is not None and self._answer.done():
            self._take_answer(now)
        if self._due is None or now < self._due:
            return
        self._due = None
        if self.state.phase == "restarting":
            self.start()
        elif self.state.phase in ("starting", "healthy"):
            self._ask(PROBE_TIMEOUT if self.state.phase == "starting" else LOOK_TIMEOUT)
        elif self.state.phase == "stopping":
            self.kill(f"has not ended {self.part.grace:.0f} s after SIGTERM")

    def stop(self) -> None:
        """Ask it to end; ``tick`` kills it after its grace."""
        self._answer = None
        if self.running is not None:
            self._due = time.monotonic() + self.part.grace
            self._become(replace(self.state, phase="stopping"))
            self.running.tell(signal.SIGTERM)
        elif self.state.phase != "failed":
            self._due = None
            self._become(replace(self.state, phase="stopped"))

    def kill(self, why: str) -> None:
        """End it and all that it has started, at once."""
        if self.running is not None:
            logger.warning("%s %s: killing it", self.part.name, why)
            self._why_killed = why
            self._due = None
            self.running.kill_session()

    def fail(self, reason: str) -> None:
        """Give it up: it is not started again."""
        self._due = None
        self._become(replace(self.state, phase="failed", reason=reason))

    def _ask(self, timeout: float) -> None:
        self._answer = self._in.probes.submit(self._in.probe, self.part.check, timeout)
        self._answer.add_done_callback(lambda _: self._in.loop.wake())

    def _take_answer(self, now: float) -> None:
        assert self._answer is not None
        answer, self._answer = self._answer.result(), None
        lived = now - self._begun
        if self.state.phase == "healthy":
            self._look_after(answer, now)
        elif answer.healthy:
            # The end of a trouble is told as loudly as its beginning.
            level, again = (logging.WARNING, " again") if self.state.restarts else (logging.INFO, "")
            logger.log(level, "%s is healthy%s after %.1f s", self.part.name, again, lived)
            self._silences = 0
            self._due = now + LOOK_EVERY if self.part.can_hang else None
            self._become(replace(self.state, phase="healthy"))
        elif lived > self.part.patience:
            self.was_too_slow = True
            self.kill(f"was not healthy after {self.part.patience:.0f} s ({answer.reason})")
        else:
            self._due = now + PROBE_EVERY

    def _look_after(self, answer: Health, now: float) -> None:
        """A part that was healthy has answered, or has not: one that hangs is killed, and so started again."""
        self._silences = 0 if answer.answered else self._silences + 1
        if self._silences >= SILENCES:
            self.kill(f"hangs: it has not answered {SILENCES} times in a row ({answer.reason})")
        else:
            self._due = now + (PROBE_EVERY if self._silences else LOOK_EVERY)

    def _ended(self) -> None:
        """The process has ended: collect it, say why, and plan the next start."""
        assert self.running is not None
        how = describe_exit(self.running.collect())
        self.running = self._answer = self._due = None
        if self.state.phase == "stopping":
            logger.info("%s stopped (%s)", self.part.name, how)
            self._become(replace(self.state, phase="stopped", process=None, started=None))
            return
        if self.state.phase == "healthy" and time.time() - self.state.since >= self._in.backoff.calm:
            self.failures = 0
        lived = time.monotonic() - self._begun
        self._plan_restart(self._why_killed or f"{how} after {lived:.1f} s")

    def _plan_restart(self, what: str) -> None:
        self.failures += 1
        restarts = self.state.restarts + 1
        delay = self._in.backoff.delay(self.failures)
        log = logs.log_path(self._in.directory, self.part.name)
        last_lines = "".join(f"\n    {line}" for line in logs.tail(log, LINES_OF_LOG)) or " empty"
        told = (self.part.name, what, restarts, delay, last_lines)
        logger.warning("%s %s; restart %d in %.2f s; the end of its log:%s", *told)
        self._due = time.monotonic() + delay
        self._become(
            replace(self.state, phase="restarting", process=None, started=None, restarts=restarts, reason=what)
        )

    def _become(self, state: PartState) -> None:
        self.state = replace(state, since=time.time())
        self._in.changed(self.state)


def describe_exit(exit_code: int) -> str:
    """An exit code in words; a JVM that a signal ended exits with 128 + its number."""
    if exit_code < 0:
        return f"was ended by {_signal_name(-exit_code)}"
    if exit_code > 128:
        return f"exited with code {exit_code} ({_signal_name(exit_code - 128)})"
    return f"exited with code {exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
