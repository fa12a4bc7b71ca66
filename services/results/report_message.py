"""A message of the results topic."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.wire.message_pieces import MessagePiece
from stairwise.wire.reports import ReportHeaders


@dataclass(frozen=True)
class ReportMessage:
    """A report or a mark of one shard, or a piece of a report."""

    headers: ReportHeaders
    value: bytes
    offset: int
    traceparent: str = ""
    piece: MessagePiece | None = None
    """Which part of a report it holds; None: all."""
