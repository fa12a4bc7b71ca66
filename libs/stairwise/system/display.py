"""What a person sees while parts start and stop: a live table on a terminal, plain lines in a pipe."""

from __future__ import annotations

import time
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from stairwise.system.state import PartState, SystemState

_STYLES = {
    "waiting": "dim",
    "starting": "yellow",
    "healthy": "green",
    "restarting": "red",
    "stopping": "yellow",
    "stopped": "dim",
    "failed": "bold red",
}


class Display(Protocol):
    """Shows a system's states as they come, and remarks in between."""

    def update(self, state: SystemState) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


def display_on(stream: TextIO) -> Display:
    """The display that suits where the stream leads."""
    console = Console(file=stream)
    return LiveDisplay(console) if console.is_terminal else LineDisplay(stream)


class LineDisplay:
    """One line whenever a part has become something else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: dict[str, PartState] = {}

    def update(self, state: SystemState) -> None:
        for part in state.parts:
            before = self._shown.get(part.name)
            self._shown[part.name] = part
            was = before.phase if before is not None else "waiting"
            still = part.phase == was or (part.phase == "stopped" and was == "waiting")
            not_yet_stopped = part.phase == "healthy" and state.phase == "stopping"
            if not still and not not_yet_stopped:
                self.say(f"{part.name:<10} {part.phase:<10} {_remark(part)}".rstrip())

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        self._stream.flush()


class LiveDisplay:
    """A table that changes in place while the system starts or stops, and then stays as it is."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._view: _PartsView | None = None

    def update(self, state: SystemState) -> None:
        if state.phase in ("starting", "stopping"):
            if self._live is None or self._view is None:
                self._view = _PartsView(state)
                self._live = Live(self._view, console=self._console, refresh_per_second=8)
                self._live.start()
            self._view.state = state
        else:
            if self._view is not None:
                self._view.state = state
            self.close()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _PartsView:
    """The table of a state; drawn anew at each refresh, so that running times run."""

    def __init__(self, state: SystemState) -> None:
        self.state = state
        self._spinner = Spinner("dots")

    def __rich__(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for part in self.state.parts:
            busy = part.phase in ("starting", "stopping", "restarting")
            mark = self._spinner if busy else Text("✓" if part.phase == "healthy" else "·")
            phase = Text(part.phase, style=_STYLES[part.phase])
            remark = f"{time.time() - part.since:.0f} s" if busy and not part.reason else _remark(part)
            table.add_row(mark, part.name, phase, Text(remark, style="dim", overflow="ellipsis"))
        return table


def _remark(part: PartState) -> str:
    """What is worth saying beside a phase: how long it has taken, where it is, why it failed."""
    if part.phase == "healthy" and part.started is not None:
        return f"{part.check.address}  after {part.since - part.started:.1f} s"
    if part.phase in ("restarting", "failed"):
        return part.reason
    return ""
