"""How far a signature goes in one micro-batch: in parts, until the time that all of them share is used up.

    reported ├─ part ─┼─ part ─┼─ part ─┼────────── run ──────────┼─ part ─┤ limit
                               ▲ time is up: the rest is carried over to the next micro-batch

A part has at most so many report times, so no signature holds a micro-batch up for long, and a plan change is seen by
the next one. What is carried over changes when a report is made, never what it says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import numpy as np

from services.operators.evaluation import Alignment
from stairwise.reports.contract import Batch
from stairwise.reports.runs import Islands, Leg, Quieting, Reach, bounds_of
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.wire.plans import Turn

PART_REPORTS = 1024
"""How many report times of the finest window a part has at the most."""
PART_ROWS = 16_384
"""About how many rows a part has, where every row may report."""
MOST_ROWS = 4_000_000
"""A signature with so many rows behind it waits for no other: what it would hold in memory is left on Kafka instead."""


class Budget:
    """The time that the reports of one micro-batch may take together."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def is_spent(self) -> bool:
        return time.monotonic() >= self._until


class SignatureProgress(msgspec.Struct):
    """How far the reports of a signature have come, and what lies before them."""

    islands: Islands = msgspec.field(default_factory=Islands)
    reported: Instant = DAWN
    rows: int = 0
    """How many have come since reports were last up to date."""
    begin: Instant = DUSK
    """The earliest of them."""

    def take(self, batch: Batch, time_column: str, reach: Reach | None) -> None:
        self.islands.add(batch, time_column, reach)
        if batch.highest > DAWN:
            self.rows += batch.rows.num_rows
            self.begin = min(self.begin, batch.lowest)
            if reach is None:
                self.islands.last_row = max(self.islands.last_row, batch.highest)

    def turned(self, turn: Turn, at: Alignment) -> None:
        """Queries have come or gone. Of those that came, rows of before may show that never came here."""
        self.reported = max(self.reported, at.lowest)
        changes = [instant for registered in turn.joined for instant in bounds_of(registered.query).tolist()]
        if turn.joined and at.seen > DAWN:
            self.islands.last_row = max(self.islands.last_row, at.seen)
            changes.append(at.seen)
        if changes:
            self.islands.extend(np.array(changes, np.int64), 0)

    def parts(self, operator: Quieting, reach: Reach | None, limit: Instant) -> Iterator[Leg]:
        """The way to the limit, in parts."""
        for leg in self.islands.legs(operator, reach, self.reported, limit):
            begin = max(self.reported, self.islands.spans[0][0] - 1 if self.islands.spans else self.begin - 1)
            end = min(leg.upto, self.islands.last_row) if leg.upto >= DUSK else leg.upto
            step = self._step(reach, begin, end)
            yield from (Leg(upto) for upto in range(begin + step, end, step))
            yield leg

    def passed(self, leg: Leg, limit: Instant) -> None:
        """A part is done."""
        self.reported = max(self.reported, leg.upto if leg.until is None else leg.until)
        if self.reported >= limit:
            self.rows, self.begin = 0, DUSK

    def _step(self, reach: Reach | None, begin: Instant, end: Instant) -> Duration:
        if reach is not None:
            return PART_REPORTS * reach.pace
        return max(1, (end - begin) * PART_ROWS // max(PART_ROWS, self.rows))
