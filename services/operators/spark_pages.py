"""A store over Spark's state: a shard's pages by key, in the rows of a map or in segments.

    large page ───────────────────────────────────────▶ segment
    small page ──▶ row ──of many, those that are oldest──▶ segment

To sync a file takes some milliseconds, so a small page goes to Spark. But windows may keep any number of small pages:
those that have not changed for longest go to a segment together. So what Spark has to hand back when a shard is read
is not much more than where its pages lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from services.operators.segments import Extent, Segments

KEY_DDL = "key binary"
PAGE_DDL = "page binary, is_extent boolean"
LARGE = 32 << 10
"""Pages of so many bytes and more go to a segment when they are written."""
TINY = 1 << 10
"""Pages of fewer bytes stay in Spark's rows: to say where they lie is not much shorter."""
ROW_BYTES = 4 << 20
"""How much of the pages in between the rows may hold."""
TOGETHER = 64
"""So many go to a segment with one micro-batch, for Spark has to be told of each."""


class SparkPages:
    """Pages are written when a batch is done. Small ones are read once and kept, large ones when they are asked for."""

    def __init__(self, checkpoint: Path, shard: int, run: str) -> None:
        self._segments = Segments(checkpoint, shard, run)
        self._pages: dict[bytes, bytes | Extent] = {}
        """In the order in which they have changed."""
        self._in_rows = 0
        """How many bytes the rows hold, tiny pages left out."""
        self._dirty: set[bytes] = set()

    def load(self, state: Any, ledger: bytes) -> None:
        for (key,), (page, is_extent) in state.iterator():
            found = bytes(page)
            self._set(bytes(key), msgspec.msgpack.decode(found, type=Extent) if is_extent else found)
        self._segments.load(ledger, (page for page in self._pages.values() if isinstance(page, Extent)))

    def collect(self) -> None:
        """What these pages go on from is committed: remove the files of what was there long before."""
        self._segments.collect()

    def save(self, state: Any, stamp: str) -> bytes:
        """Hand over what has changed; gives the ledger of the segments, to be handed over with it."""
        large = {key for key in self._dirty if self._is_row_of(key, LARGE)}
        moved = {key: self._taken(key) for key in sorted(large | self._oldest() | self._in_worn())}
        extents = self._segments.write(list(moved.values()), stamp)
        for key, extent in zip(moved, extents, strict=True):
            self._set(key, extent)
        for key in sorted(self._dirty):
            page = self._pages.get(key)
            if page is None:
                state.removeKey((key,))
            elif isinstance(page, Extent):
                state.updateValue((key,), (msgspec.msgpack.encode(page), True))
            else:
                state.updateValue((key,), (page, False))
        self._dirty.clear()
        return self._segments.commit()

    def get(self, key: bytes) -> bytes | None:
        page = self._pages.get(key)
        return self._segments.read(page) if isinstance(page, Extent) else page

    def put(self, key: bytes, page: bytes) -> None:
        if not self._is_same(self._pages.get(key), page):
            self.delete(key)
            self._set(key, page)
            self._dirty.add(key)

    def delete(self, key: bytes) -> None:
        page = self._pages.pop(key, None)
        if page is None:
            return
        self._dirty.add(key)
        if isinstance(page, Extent):
            self._segments.release(page)
        elif len(page) >= TINY:
            self._in_rows -= len(page)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in self.keys(prefix):
            page = self._pages[key]
            yield key, self._segments.read(page) if isinstance(page, Extent) else page

    def keys(self, prefix: bytes) -> list[bytes]:
        return sorted(key for key in self._pages if key.startswith(prefix))

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        for key, page in self._pages.items():
            yield key, page.length if isinstance(page, Extent) else len(page)

    def _is_same(self, known: bytes | Extent | None, page: bytes) -> bool:
        if isinstance(known, Extent):
            return known.length == len(page) and self._segments.read(known) == page
        return known == page

    def _set(self, key: bytes, page: bytes | Extent) -> None:
        self._pages[key] = page
        if isinstance(page, bytes) and len(page) >= TINY:
            self._in_rows += len(page)

    def _is_row_of(self, key: bytes, size: int) -> bool:
        page = self._pages.get(key)
        return isinstance(page, bytes) and len(page) >= size

    def _oldest(self) -> set[bytes]:
        """Pages that have been in rows for longest, once those hold much."""
        if self._in_rows <= ROW_BYTES:
            return set()
        return set(islice((key for key in self._pages if self._is_row_of(key, TINY)), TOGETHER))

    def _in_worn(self) -> set[bytes]:
        """Pages in segments that are to be emptied."""
        worn = self._segments.worn()
        if not worn:
            return set()
        return {key for key, page in self._pages.items() if isinstance(page, Extent) and page.segment in worn}

    def _taken(self, key: bytes) -> bytes:
        """A page out of where it is."""
        page = self.get(key)
        assert page is not None
        self.delete(key)
        return page
