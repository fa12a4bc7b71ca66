"""A shard's state as Spark keeps it: what an attempt writes counts once it is committed, and can be gone back to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from services.operators.segments import Extent, Segments
from services.operators.spark_pages import SparkPages


class Rows:
    """The map of an attempt: what was committed, and what the attempt changes."""

    def __init__(self, committed: dict[bytes, tuple[bytes, bool]]) -> None:
        self.rows = dict(committed)

    def iterator(self) -> Iterator[tuple[tuple[bytes], tuple[bytes, bool]]]:
        for key, value in self.rows.items():
            yield (key,), value

    def updateValue(self, key: tuple[bytes], value: tuple[bytes, bool]) -> None:
        self.rows[key[0]] = value

    def removeKey(self, key: tuple[bytes]) -> None:
        self.rows.pop(key[0], None)


class State:
    """The versions of a shard's state that were committed, the last one last."""

    def __init__(self, checkpoint: Path, shard: int = 0) -> None:
        self.checkpoint, self.shard = checkpoint, shard
        self.versions: list[tuple[Rows, bytes]] = []
        self._runs = 1

    def read(self) -> SparkPages:
        """What was committed last, as a worker reads it that has nothing of it yet."""
        pages = SparkPages(self.checkpoint, self.shard, f"run{self._runs}")
        if self.versions:
            pages.load(*self.versions[-1])
        pages.collect()
        return pages

    def look(self, back: int) -> dict[bytes, bytes]:
        """All pages of a version that lies so far back."""
        segments = Segments(self.checkpoint, self.shard, "")
        rows = self.versions[-1 - back][0].rows
        return {
            key: segments.read(msgspec.msgpack.decode(page, type=Extent)) if is_extent else page
            for key, (page, is_extent) in rows.items()
        }

    def save(self, pages: SparkPages, *, is_committed: bool = True) -> None:
        """Write what an attempt has changed; killed before it is committed, that never was."""
        rows = Rows(self.versions[-1][0].rows if self.versions else {})
        ledger = pages.save(rows, uuid.uuid4().hex)
        if is_committed:
            self.versions.append((rows, ledger))

    def restart(self) -> None:
        """The driver is killed, and another one goes on."""
        self._runs += 1

    def files(self) -> list[Path]:
        return sorted((self.checkpoint / "pages" / str(self.shard)).glob("*"))
