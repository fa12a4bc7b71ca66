"""Which signature a worker is at work on, where it can be read after the worker was killed.

    in the checkpoint
    work/0         ▐ stamp of the state ▐ 1 ▐ signature ▐    a page that the worker has mapped
    work/0.json    {"stamp": …, "deaths": {"poison@3": 2}}   what the driver has counted

A worker that ends without a word, as one does for which there is no memory left, leaves its note. The driver, which
sees that a Python worker has died or that its micro-batch never ends, counts it. A signature at which workers were lost
twice in the same micro-batch, that is over the same committed state, is not evaluated again. Where the driver is killed
as well nothing is counted: then the signature need not be the reason.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import msgspec

from stairwise.errors import LimitError

SIZE = 4096
_FLAG = 64
"""Behind the stamp: 1 while the signature that follows is worked on."""
DEATHS = 2
"""After so many a signature is set aside."""


class _Deaths(msgspec.Struct):
    stamp: str = ""
    deaths: dict[str, int] = {}


class WorkMark:
    """The note of one shard, for a micro-batch that goes on from the state with a stamp."""

    def __init__(self, checkpoint: Path, shard: int, stamp: str) -> None:
        path = _directory(checkpoint) / str(shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            os.truncate(file.fileno(), SIZE)
            self._page = mmap.mmap(file.fileno(), SIZE)
        self._page[:] = stamp.encode().ljust(SIZE, b"\0")
        counted = _counted(path)
        self._deaths = counted.deaths if counted.stamp == stamp else {}
        self._noted = ""

    def begin(self, signature: str) -> None:
        """A signature is worked on; raises for one at which workers died."""
        if self._deaths.get(signature, 0) >= DEATHS:
            times = self._deaths[signature]
            raise LimitError(f"its worker was lost {times} times: it was killed, as without memory, or took too long")
        if signature != self._noted:
            self._noted = signature
            self._page[_FLAG + 1 :] = signature.encode()[: SIZE - _FLAG - 1].ljust(SIZE - _FLAG - 1, b"\0")
        self._page[_FLAG] = 1

    def end(self) -> None:
        self._page[_FLAG] = 0


def count_deaths(checkpoint: Path) -> list[str]:
    """A Python worker is lost: count it for each signature that was worked on, and name them."""
    died = []
    for path in sorted(_directory(checkpoint).glob("*")):
        page = b"" if path.suffix else path.read_bytes()
        if page[_FLAG : _FLAG + 1] != b"\1":
            continue
        stamp, signature = (part.rstrip(b"\0").decode() for part in (page[:_FLAG], page[_FLAG + 1 :]))
        counted = _counted(path)
        deaths = counted.deaths if counted.stamp == stamp else {}
        deaths[signature] = deaths.get(signature, 0) + 1
        _beside(path).write_bytes(msgspec.json.encode(_Deaths(stamp, deaths)))
        path.unlink()
        died.append(signature)
    return died


def _directory(checkpoint: Path) -> Path:
    return checkpoint / "work"


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _counted(path: Path) -> _Deaths:
    try:
        return msgspec.json.decode(_beside(path).read_bytes(), type=_Deaths)
    except (FileNotFoundError, msgspec.DecodeError):
        return _Deaths()
