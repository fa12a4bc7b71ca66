"""A pseudo-terminal with a Python program at it, as a person would sit there."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

CONTROLLING = """
import fcntl, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is one
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored where tests run in the background
"""


class Terminal:
    """What is typed into a program, and what it shows."""

    def __init__(self, program: str, home: Path, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "TERM": "dumb", "INPUTRC": "/dev/null", **variables}
        command = [sys.executable, "-c", CONTROLLING + program]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)
        self._shown = ""

    def expect(self, text: str, within: float = 30) -> str:
        """What was shown up to and including the text."""
        deadline = time.monotonic() + within
        while text not in self._shown:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown, but {self._shown!r}"
            self._shown += os.read(self._ours, 4096).decode()
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self, until: str) -> None:
        """Ctrl-C, again where it came in the moment between the prompt and the wait for a key."""
        for _ in range(30):
            self.type("\x03")
            try:
                self.expect(until, within=1)
            except AssertionError:
                continue
            return
        self.expect(until)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
