"""How much memory the work at hand may take.

A driver that runs many queries side by side says who has to be asked (``ASKED``); whatever makes many rows out of
few asks before it makes them (``must_fit``). Where nobody has to be asked, as over files, there is no limit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

ROW_BYTES = 64
"""About what a row takes while it is made: a few columns of positions and times, and copies of them."""
MANY = 1 << 18
"""Fewer rows than this are made without asking."""

Ask = Callable[[int], None]
"""Raises where so many bytes more are too many."""

ASKED: ContextVar[Ask | None] = ContextVar("asked", default=None)
"""Who has to be asked now."""


def must_fit(rows: int) -> None:
    """To be called before so many rows are made."""
    ask = ASKED.get() if rows >= MANY else None
    if ask is not None:
        ask(rows * ROW_BYTES)
