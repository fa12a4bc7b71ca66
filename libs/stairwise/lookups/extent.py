"""A stretch of a partition's rows that a window holds, told by time or by number."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Instant


@dataclass(frozen=True)
class Extent:
    """The rows with rear < time ≤ front, and of them only those numbered [first, end) where a window counts rows."""

    rear: Instant
    front: Instant
    first: int | None = None
    end: int = 0
