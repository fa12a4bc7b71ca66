"""How often an expression had no number to give: counted per query, shown to its owner, never raised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Faults:
    """Rows whose value is NULL because the arithmetic had no answer.

    ``overflow``: a result that its type cannot hold, as BIGINT beyond 64 bits or CAST('x' AS BIGINT).
    ``division``: ``/`` or ``%`` by zero.
    """

    overflow: int = 0
    division: int = 0

    def add(self, other: Faults) -> None:
        self.overflow += other.overflow
        self.division += other.division

    @property
    def total(self) -> int:
        return self.overflow + self.division
