"""Chromium without a window, told over a pipe (the DevTools protocol) to open a page, to ask it, to take its picture.

    started_browser(directory) ─▶ open(url) ─▶ text(), evaluate("...") ─▶ picture()

It reads commands from its file 3 and writes answers and events to its file 4, each a JSON object with a zero byte
behind it.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PATIENCE = 60.0
"""How long an answer may take, in seconds."""
WIDTH, HEIGHT = 1400, 900
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # its sandbox is not for root; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    f"--window-size={WIDTH},{HEIGHT}",
)
ABOVE_THE_STANDARD_ONES = 10


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a running browser."""

    def __init__(self, told: int, said: int) -> None:
        self._told, self._said = told, said
        self._numbers = itertools.count(1)
        self._unread = b""
        self._session: str | None = None
        self.thrown: list[str] = []
        """What the page's scripts have thrown and nobody caught, as far as answers were read."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def open(self, url: str) -> None:
        failure = self.ask("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError(f"{url}: {failure}")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript on the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def text(self) -> str:
        """What a person can read there now."""
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def picture(self) -> bytes:
        """What a person sees there now, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._told, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._next(deadline, method)
            if message.get("method") == "Runtime.exceptionThrown":
                self.thrown.append(message["params"]["exceptionDetails"]["text"])
            if message.get("id") == number:
                break
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        result: dict[str, Any] = message["result"]
        return result

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            readable, _, _ = select.select([self._said], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise TimeoutError(f"the browser does not answer {method} within {PATIENCE:.0f} s")
            more = os.read(self._said, 1 << 16)
            if not more:
                raise RuntimeError(f"the browser has ended before it answered {method}")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def started_browser(path: str, directory: Path) -> Iterator[Browser]:
    """A browser with an empty profile in the directory; its log is there, too."""
    its_input, told = _pipe()
    said, its_output = _pipe()
    log = os.open(directory / "browser.log", os.O_WRONLY | os.O_CREAT, 0o600)
    process = os.posix_spawn(
        path,
        [path, *OPTIONS, f"--user-data-dir={directory / 'profile'}"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            (os.POSIX_SPAWN_DUP2, its_input, 3),
            (os.POSIX_SPAWN_DUP2, its_output, 4),
        ],
        setpgroup=0,
    )
    for each in (its_input, its_output, log):
        os.close(each)
    try:
        yield Browser(told, said)
    finally:
        # Its helpers are of its process group and end with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(told)
        os.close(said)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends have other numbers than those that a program finds its files under."""
    low = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE_THE_STANDARD_ONES) for end in low]
    for end in low:
        os.close(end)
    return ends[0], ends[1]
