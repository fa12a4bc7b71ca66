"""The large pages of a shard, in files beside Spark's state, which says where each of them lies.

    <checkpoint>/pages/<shard>/000000000041-9f3c-2b07   ▐ page ▐ page   ▐ page ▐    a segment: what a micro-batch wrote
                                                        └ Extent(segment, start, length)

Spark passes its state to Python row by row, about 40 MB of it a second, when a shard is read back and when a page is
written. A file is read and written at the speed of the disk.

**Written once.** A segment is on the disk before Spark is given a row that names it, and never changes. Its name holds
the number of the shard's micro-batch, the run of the driver and the stamp of the attempt, so no other attempt writes
it again. A kill leaves at most a segment that no state names which was committed.

**Emptied.** Pages in a segment end at different times. What still lives of one that is mostly dead is written once
more, with the next micro-batch, and so is what lives of small ones where there are many.

**Removed** when no state that Spark may go back to has anything in it:

    number       41    42    43    44   …   54        with RETAINED = 10
    a segment    ▐██████████▌ buried at 43   ✗        nothing in it lives: it is noted in the state, and removed later
    an orphan    ▐ not named by 41, 42, …    ✗        its attempt was never committed: found by looking for it, and at
                                                      once where its run is over and the state has not come so far
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from services.operators.checkpoint import torn

RETAINED = 10
"""How many micro-batches Spark can go back, and for how many a segment stays in which nothing lives."""
MANY = 1024
"""More segments than this are made fewer, ``TOGETHER`` at a time: each page is moved once in every so many times."""
TOGETHER = 32
MOVED_BYTES = 8 << 20
"""About how much is moved at a time out of segments that are mostly dead."""


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """Where a page lies."""

    segment: str
    start: int
    length: int


class Ledger(msgspec.Struct, array_like=True):
    """What is known of a shard's segments beside the pages in them; committed together with them."""

    number: int = 0
    """How many micro-batches the shard has taken."""
    buried: list[tuple[int, str]] = []
    """Segments in which nothing lives, each with the first micro-batch of which that is so."""


class Segments:
    def __init__(self, checkpoint: Path, shard: int, run: str) -> None:
        self._checkpoint, self._run = checkpoint, run
        self._directory = checkpoint / "pages" / str(shard)
        self._ledger = Ledger()
        self._live: dict[str, int] = {}
        """How many bytes of each segment are pages that live."""
        self._size: dict[str, int] = {}

    def load(self, ledger: bytes, extents: Iterable[Extent]) -> None:
        """Go on from a state that was committed, and remove what is left over from before."""
        self._ledger = msgspec.msgpack.decode(ledger, type=Ledger)
        for extent in extents:
            self._live[extent.segment] = self._live.get(extent.segment, 0) + extent.length
        try:
            self._size = {name: (self._directory / name).stat().st_size for name in self._live}
        except FileNotFoundError as error:
            raise torn(self._checkpoint, f"{error.filename} is missing") from error
        self._sweep()

    def read(self, extent: Extent) -> bytes:
        try:
            with (self._directory / extent.segment).open("rb", buffering=0) as segment:
                segment.seek(extent.start)
                page = segment.read(extent.length)
        except FileNotFoundError as error:
            raise torn(self._checkpoint, f"{error.filename} is missing") from error
        if len(page) < extent.length:
            raise torn(self._checkpoint, f"{self._directory / extent.segment} is too short")
        return page

    def write(self, pages: Sequence[bytes], stamp: str) -> list[Extent]:
        """Put pages into a new segment. They are on the disk when this returns."""
        if not pages:
            return []
        name = f"{self._ledger.number + 1:012}-{self._run}-{stamp}"
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            _write(self._directory / name, pages)
        except OSError:  # no room, for one: leave it to others
            (self._directory / name).unlink(missing_ok=True)
            raise
        extents, start = [], 0
        for page in pages:
            extents.append(Extent(name, start, len(page)))
            start += len(page)
        self._live[name] = self._size[name] = start
        return extents

    def release(self, extent: Extent) -> None:
        """A page is not there any more, or is elsewhere."""
        self._live[extent.segment] -= extent.length

    def worn(self) -> set[str]:
        """Segments whose pages should be moved: those that are mostly dead, and small ones where there are many."""
        found: set[str] = set()
        moved = 0
        for name, live in self._live.items():
            if 0 < live < self._size[name] / 2 and (not found or moved + live <= MOVED_BYTES):
                found.add(name)
                moved += live
        if len(self._live) > MANY:
            found.update(sorted(self._live, key=self._live.__getitem__)[:TOGETHER])
        return found

    def commit(self) -> bytes:
        """At the end of a micro-batch: the ledger, to be committed with the pages."""
        self._ledger.number += 1
        for name in [name for name, live in self._live.items() if not live]:
            self._ledger.buried.append((self._ledger.number, name))
            del self._live[name], self._size[name]
        return msgspec.msgpack.encode(self._ledger)

    def collect(self) -> None:
        """Remove what no state can ask for, now that the last one is known to be committed."""
        due = self._ledger.number - RETAINED
        for number, name in self._ledger.buried:
            if number <= due:
                (self._directory / name).unlink(missing_ok=True)
        self._ledger.buried = [(number, name) for number, name in self._ledger.buried if number > due]
        if self._ledger.number % RETAINED == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Look through the files, and remove those of attempts that were never committed."""
        known = self._live.keys() | {name for _, name in self._ledger.buried}
        due = self._ledger.number - RETAINED
        for name in os.listdir(self._directory) if self._directory.is_dir() else []:
            number, _, rest = name.partition("-")
            if name in known or not number.isdecimal():
                continue
            is_over = int(number) > self._ledger.number and not rest.startswith(f"{self._run}-")
            if is_over or int(number) <= due:
                (self._directory / name).unlink(missing_ok=True)


def stored_bytes(checkpoint: Path) -> int:
    """How large the segments of all shards are together."""
    total = 0
    for segment in (checkpoint / "pages").glob("*/*"):
        with suppress(FileNotFoundError):  # removed meanwhile
            total += segment.stat().st_size
    return total


def _write(path: Path, pages: Iterable[bytes]) -> None:
    """A new file, on the disk with its name."""
    with path.open("xb", buffering=0) as file:
        for page in pages:
            rest = memoryview(page)
            while rest:
                rest = rest[os.write(file.fileno(), rest) :]
        os.fsync(file.fileno())
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(directory)
