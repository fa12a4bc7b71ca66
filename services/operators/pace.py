"""How soon one micro-batch follows the other while old rows are caught up with.

A micro-batch costs Spark some tenths of a second of CPU time, however few rows it has. Rows that happen now are worth
it: their reports are waited for. While rows come in that happened long ago, from a backlog or a replay, micro-batches
that are as quick as they can be are many and small, and cost more than the rows in them; fewer and larger ones come
through just as soon.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from services.operators.parcel import Parcel

OLD_MS = 10_000
"""Rows that had happened so long before they came are not waited for."""
MANY_ROWS = 20_000
"""Fewer are no backlog worth the name."""
APART = 5.0
"""How far the ends of micro-batches of old rows are apart, in seconds."""


@dataclass
class Pace:
    """Of one worker, which ends one task of each micro-batch."""

    batch_messages: int
    """How many messages a micro-batch takes at the most."""
    ended: float = 0.0

    def pause(self, parcels: Iterable[Parcel]) -> float:
        """For how many seconds to wait at the end of a micro-batch."""
        before, self.ended = self.ended, time.monotonic()
        seconds = APART - (self.ended - before) if self._is_catching_up(list(parcels)) else 0.0
        self.ended += max(0.0, seconds)
        return max(0.0, seconds)

    def _is_catching_up(self, parcels: list[Parcel]) -> bool:
        """Old rows, many of them, and yet all that there were: a full micro-batch is followed by the next at once."""
        if sum(parcel.headers.rows for parcel in parcels) < MANY_ROWS:
            return False
        are_old = all(parcel.headers.highest < parcel.appended - OLD_MS for parcel in parcels if parcel.headers.rows)
        # Transactions leave marks among the messages, which count as such: half of what is taken at least is messages.
        is_full = sum(parcel.messages for parcel in parcels) >= self.batch_messages / 4
        return are_old and not is_full
