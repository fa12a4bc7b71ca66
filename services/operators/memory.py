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
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from services.operators.work_mark import WorkMark
from stairwise.errors import LimitError
from stairwise.expressions.allowance import asking

UNLIMITED = 1 << 62
_PAGE = os.sysconf("SC_PAGE_SIZE")

Made = TypeVar("Made")


class SignatureMemory:
    """``limit``: so many bytes each may hold."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, int] = {}
        self.mark: WorkMark | None = None
        """Where it is noted who is at work, for the case that all this does not suffice."""

    @contextmanager
    def at_work(self, signature: str) -> Iterator[None]:
        """Some work of a signature. Raises before or after what takes too much."""
        held, begin = self._held.get(signature, 0), resident()

        def ask(size: int) -> None:
            if held + resident() - begin + size > self._limit:
                raise self._too_much()

        try:
            with asking(ask), nullcontext() if self.mark is None else self.mark.at_work(signature):
                yield
        finally:
            self._held[signature] = max(0, held + resident() - begin)
        ask(0)

    def making(self, signature: str, made: Iterator[Made]) -> Iterator[Made]:
        """What a signature makes, one after the other."""
        while True:
            with self.at_work(signature):
                item = next(made, None)
            if item is None:
                return
            yield item

    def forget(self, signature: str) -> None:
        self._held.pop(signature, None)

    def _too_much(self) -> LimitError:
        return LimitError(f"it needs more than {self._limit / 1e6:,.0f} MB of memory, the limit STAIRWISE_QUERY_BYTES")


def resident() -> int:
    """How many bytes of memory this process has."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * _PAGE
