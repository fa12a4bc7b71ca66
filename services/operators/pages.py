"""A store over Spark's state: a shard's pages by key, small ones in the rows of a map, large ones in segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from services.operators.segments import Extent, Segments

KEY_DDL = "key binary"
PAGE_DDL = "page binary, is_extent boolean"
LEAST = 32 << 10
"""Pages of so many bytes and more go to a segment: to sync a file takes as long as Spark takes for some 100 KiB."""


class SparkPages:
    """Pages are written when a batch is done. Small ones are read once and kept, large ones when they are asked for."""

    def __init__(self, checkpoint: Path, shard: int, run: str) -> None:
        self._segments = Segments(checkpoint, shard, run)
        self._pages: dict[bytes, bytes | Extent] = {}
        self._dirty: set[bytes] = set()

    def load(self, state: Any, ledger: bytes) -> None:
        for (key,), (page, is_extent) in state.iterator():
            found = bytes(page)
            self._pages[bytes(key)] = msgspec.msgpack.decode(found, type=Extent) if is_extent else found
        self._segments.load(ledger, (page for page in self._pages.values() if isinstance(page, Extent)))

    def collect(self) -> None:
        """What these pages go on from is committed: remove the files of what was there long before."""
        self._segments.collect()

    def save(self, state: Any, stamp: str) -> bytes:
        """Hand over what has changed; gives the ledger of the segments, to be handed over with it."""
        if worn := self._segments.worn():
            self._move(worn)
        dirty = sorted(self._dirty)
        large = {key: page for key in dirty if isinstance(page := self._pages.get(key), bytes) and len(page) >= LEAST}
        self._pages.update(zip(large, self._segments.write(list(large.values()), stamp), strict=True))
        for key in dirty:
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
            self._pages[key] = page
            self._dirty.add(key)

    def delete(self, key: bytes) -> None:
        page = self._pages.pop(key, None)
        if page is not None:
            self._dirty.add(key)
        if isinstance(page, Extent):
            self._segments.release(page)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in self.keys(prefix):
            page = self._pages[key]
            yield key, self._segments.read(page) if isinstance(page, Extent) else page

    def keys(self, prefix: bytes) -> list[bytes]:
        return sorted(key for key in self._pages if key.startswith(prefix))

    def _is_same(self, known: bytes | Extent | None, page: bytes) -> bool:
        if isinstance(known, Extent):
            return known.length == len(page) and self._segments.read(known) == page
        return known == page

    def _move(self, worn: set[str]) -> None:
        """Take what lives in some segments out of them, to be written again."""
        for key in [key for key, page in self._pages.items() if isinstance(page, Extent) and page.segment in worn]:
            page = self.get(key)
            assert page is not None
            self.delete(key)
            self._pages[key] = page
