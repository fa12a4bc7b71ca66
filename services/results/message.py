"""A message of the results topic."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.platform.pieces import Piece
from stairwise.platform.reports import ReportHeaders


@dataclass(frozen=True)
class Message:
    """A report or a mark of one shard, or a piece of a report."""

    headers: ReportHeaders
    value: bytes
    offset: int
    traceparent: str = ""
    piece: Piece | None = None
    """Which part of a report it holds; None: all."""
