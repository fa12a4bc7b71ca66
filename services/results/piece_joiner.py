"""Pieces of reports put together again.

    topic     a:3/5  a:4/5  b:0/3  b:1/3  c:0/3  c:1/3  c:2/3  b:2/3
    open                    b      b      b c    b c
    whole     ✗      ✗                                  c      ✗

Reading may begin in the middle of a write: what is left of that is passed over. A write that breaks off, since its
writer was killed, is followed by another of the same report; two may be under way at a time where the first writer is
given up for dead and is not. Which of them comes to its end is the report, and the others are let go.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from services.results.report_message import ReportMessage

OPEN = 3
"""How many writes of a shard are kept at the most that are not complete: the last to begin."""


@dataclass
class _Write:
    first: ReportMessage
    parts: list[bytes] = field(default_factory=list)


class PieceJoiner:
    """The messages of one shard of a signature."""

    def __init__(self) -> None:
        self._open: dict[str, _Write] = {}

    def take(self, message: ReportMessage) -> ReportMessage | None:
        """The next message; gives the report that it completes, which has the offset of its first piece."""
        piece = message.piece
        if piece is None:
            whole = message
        else:
            if piece.number == 0:
                self._begin(piece.write, message)
            write = self._open.get(piece.write)
            if write is None or piece.number != len(write.parts):
                return None
            write.parts.append(message.value)
            if not piece.is_last:
                return None
            whole = replace(write.first, value=b"".join(write.parts), piece=None)
        self._forget(whole)
        return whole

    @property
    def offsets(self) -> list[int]:
        """Where the writes begin that are not complete."""
        return [write.first.offset for write in self._open.values()]

    def _begin(self, name: str, message: ReportMessage) -> None:
        self._open.pop(name, None)
        self._open[name] = _Write(message)
        while len(self._open) > OPEN:
            del self._open[next(iter(self._open))]

    def _forget(self, whole: ReportMessage) -> None:
        """Let go of what a complete report makes idle: a shard reports in order of position."""
        if self._open:
            position = whole.headers.position
            self._open = {n: w for n, w in self._open.items() if w.first.headers.position > position}
