"""Where operators keep their state: byte keys to byte pages, so that a driver can put it where it likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Store(Protocol):
    """Pages by key. Operators load and write back what a batch touched, never a row at a time."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, page: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All pages whose key begins with ``prefix``, in order of their keys."""

    def keys(self, prefix: bytes) -> list[bytes]:
        """Their keys alone: a page that is not in memory stays where it is."""

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        """The keys of all pages, in any order, and how many bytes each page has."""


class MemoryStore:
    """A store in a dict: that of the local driver."""

    def __init__(self) -> None:
        self._pages: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._pages.get(key)

    def put(self, key: bytes, page: bytes) -> None:
        self._pages[key] = page

    def delete(self, key: bytes) -> None:
        self._pages.pop(key, None)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in self.keys(prefix):
            yield key, self._pages[key]

    def keys(self, prefix: bytes) -> list[bytes]:
        return sorted(key for key in self._pages if key.startswith(prefix))

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        return ((key, len(page)) for key, page in self._pages.items())


class Within:
    """A part of another store: everything below a prefix of its keys."""

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix

    def get(self, key: bytes) -> bytes | None:
        return self._store.get(self._prefix + key)

    def put(self, key: bytes, page: bytes) -> None:
        self._store.put(self._prefix + key, page)

    def delete(self, key: bytes) -> None:
        self._store.delete(self._prefix + key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key, page in self._store.scan(self._prefix + prefix):
            yield key[len(self._prefix) :], page

    def keys(self, prefix: bytes) -> list[bytes]:
        return [key[len(self._prefix) :] for key in self._store.keys(self._prefix + prefix)]

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        found = ((key, size) for key, size in self._store.sizes() if key.startswith(self._prefix))
        return ((key[len(self._prefix) :], size) for key, size in found)
