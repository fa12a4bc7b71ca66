"""What a window holds of a partition: a stretch of its rows, told by time or by number."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Instant


@dataclass(frozen=True)
class WindowExtent:
    """The rows with rear < time ≤ front, and of them only some where a window counts rows.

    Those are the rows numbered [first, end) where it counts all rows; or the last ``each`` of every key, after the
    ``lag`` newest are left out.
    """

    rear: Instant
    front: Instant
    first: int | None = None
    end: int = 0
    each: int | None = None
    lag: int = 0
