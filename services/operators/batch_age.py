"""For how long a micro-batch has been running: one that never ends holds everything up, unseen from outside.

A worker that hangs neither fails nor ends. The driver looks at the running micro-batch: beyond half of its limit it
says that it is not well, beyond the limit it ends itself, to be started again.
"""

from __future__ import annotations

import enum


class Verdict(enum.Enum):
    WELL = "well"
    SLOW = "slow"
    STUCK = "stuck"


class BatchAge:
    """``limit``: so many seconds a micro-batch may take."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._batch = -1
        self._since: float | None = None
        self.age = 0.0

    def look(self, done: int, *, is_active: bool, now: float) -> Verdict:
        """``done`` is the last micro-batch that has ended; ``is_active``: does Spark work on one?"""
        if not is_active:
            self._since = None
        elif self._since is None or done != self._batch:
            self._since = now
        self._batch = done
        self.age = 0.0 if self._since is None else now - self._since
        if self.age <= self._limit / 2:
            return Verdict.WELL
        return Verdict.SLOW if self.age <= self._limit else Verdict.STUCK
