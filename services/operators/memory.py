"""What the memory of each signature is, and that none takes more than it may.

    resident   ──1.2 GB──┬── signature a at work ──┬──1.3 GB──┬── signature b at work ──┬──9.8 GB
    a holds                                   +0.1 GB          b                    +8.5 GB: too much

What a signature holds is what its worker has grown by while it was at work, all told. That counts everything, whoever
allocated it, and costs one read of /proc. It is an estimate: memory that others have freed counts for nobody. Work that
makes many rows out of few asks first (``stairwise.expressions.allowance``), so that what does not fit is not made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextvars import Token
from types import TracebackType
from typing import TypeVar

from services.operators.work_mark import WorkMark
from stairwise.errors import LimitError
from stairwise.expressions.allowance import ASKED, Ask

UNLIMITED = 1 << 62
_PAGE = os.sysconf("SC_PAGE_SIZE")

Made = TypeVar("Made")


class SignatureMemory:
    """``limit``: so many bytes each may hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: dict[str, int] = {}
        self.mark: WorkMark | None = None
        """Where it is noted who is at work, for the case that all this does not suffice."""
        self.is_at_work = False
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)

    def __del__(self) -> None:
        os.close(self._statm)

    def at_work(self, signature: str) -> _Work:
        """Some work of a signature, as a context. Raises before or after what takes too much."""
        return _Work(self, signature)

    def making(self, signature: str, made: Iterator[Made]) -> Iterator[Made]:
        """What a signature makes, one after the other."""
        while True:
            with self.at_work(signature):
                item = next(made, None)
            if item is None:
                return
            yield item

    def forget(self, signature: str) -> None:
        self.held.pop(signature, None)

    def resident(self) -> int:
        """How many bytes of memory this process has."""
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE


class _Work:
    """Entered for every report, so it is quick. Work within the work of the same signature is counted there."""

    def __init__(self, memory: SignatureMemory, signature: str) -> None:
        self._memory, self._signature = memory, signature
        self._is_part = memory.is_at_work
        self._held = self._begin = 0
        self._before: Token[Ask | None] | None = None

    def __enter__(self) -> None:
        if self._is_part:
            return
        memory = self._memory
        if memory.mark is not None:
            memory.mark.begin(self._signature)
        memory.is_at_work = True
        self._held, self._begin = memory.held.get(self._signature, 0), memory.resident()
        self._before = ASKED.set(self._ask)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_part:
            return
        memory = self._memory
        if self._before is not None:
            ASKED.reset(self._before)
        memory.is_at_work = False
        if memory.mark is not None:
            memory.mark.end()
        memory.held[self._signature] = held = max(0, self._held + memory.resident() - self._begin)
        if error is None and held > memory.limit:
            raise self._too_much()

    def _ask(self, size: int) -> None:
        memory = self._memory
        if self._held + memory.resident() - self._begin + size > memory.limit:
            raise self._too_much()

    def _too_much(self) -> LimitError:
        limit = f"{self._memory.limit / 1e6:,.0f} MB"
        return LimitError(f"it needs more than {limit} of memory, the limit STAIRWISE_QUERY_BYTES")
