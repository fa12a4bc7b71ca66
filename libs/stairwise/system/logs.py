"""The log of each part, ``DIR/logs/<part>.log``: one file per start, the last few starts kept.

A crash loop must not fill the disk nor hide its own first lines, so that a start moves the older files one
place down (``broker.log`` → ``broker.log.1`` → …) and the oldest falls off.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

KEPT_STARTS = 5
MODE = 0o600
"""Logs hold statements, names and addresses: they are for their owner alone."""
_TAIL_BYTES = 64 * 1024


def log_path(directory: Path, part: str) -> Path:
    return directory / "logs" / f"{part}.log"


def rotate(path: Path) -> None:
    """Make room for the log of a new start; FileNotFoundError where the system's directory was moved away."""
    path.parent.mkdir(exist_ok=True)
    for number in range(KEPT_STARTS, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if newer.exists():
            os.replace(newer, older)


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a log that are not empty; none if there is no log yet."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return [line for line in text.splitlines() if line.strip()][-lines:]


def last_words(path: Path) -> str:
    """The last line of a log, or its message where the line is one of ours."""
    lines = tail(path, 1)
    if not lines:
        return "its log is empty"
    try:
        message = msgspec.json.decode(lines[0], type=_Line).message
    except msgspec.DecodeError:
        message = lines[0].strip()
    return message.partition("\n")[0]


class _Line(msgspec.Struct):
    """What we need of a line that a service has written."""

    message: str
