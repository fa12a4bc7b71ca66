"""The incarnations of each stream name, one after the other, and where in ``in.<stream>`` each begins and ends.

    in.trades/0   ───────── rows of 1 ─────────┤ dead letters ├── rows of 2 ───▶
    plans           CREATE              SEAL    ·              CREATE
                    created 3           sealed 8               gone 9 (and created 9 of the next)

The offsets stand in the plans themselves: whoever reads an event knows where it belongs, however late it reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stairwise.schema import Stream


@dataclass(frozen=True)
class Incarnation:
    """One incarnation of a stream."""

    stream: Stream
    """As it is declared now."""
    created: int
    """The plan version that made it."""
    starts: tuple[int, ...] = ()
    """By partition, the offset of its first row in ``in.<stream>``; empty: the first that there is."""
    sealed: int | None = None
    """The version that ended its input."""
    ends: tuple[int, ...] = ()
    """By partition, the offset at which its input ended; empty: not told."""
    gone: int | None = None
    """The version that dropped it, or that reopened the name as the next incarnation."""
    dropped: bool = False
    altered: tuple[tuple[int, Stream], ...] = ()
    """The versions that altered it, in order, each with the stream as it was declared before."""

    def at(self, version: int) -> Stream:
        """The stream as it is declared at a version."""
        return next((before for altered, before in self.altered if version < altered), self.stream)

    def start(self, partition: int) -> int:
        return self.starts[partition] if self.starts else 0

    def version(self, newest: int) -> int:
        """The version under which its rows are written when the plans are at ``newest``: one at which it is there."""
        return newest if self.gone is None else min(newest, self.gone - 1)


class Incarnations:
    """Follows the plans."""

    def __init__(self) -> None:
        self._of: dict[str, list[Incarnation]] = {}

    def of(self, name: str) -> Sequence[Incarnation]:
        return self._of.get(name, ())

    def names(self) -> list[str]:
        return list(self._of)

    def created(self, stream: Stream, version: int, starts: tuple[int, ...]) -> None:
        incarnations = self._of.setdefault(stream.name, [])
        if incarnations and incarnations[-1].gone is None:
            incarnations[-1] = replace(incarnations[-1], gone=version)
        incarnations.append(Incarnation(stream, version, starts))

    def altered(self, stream: Stream, version: int) -> None:
        incarnations = self._of[stream.name]
        before = incarnations[-1]
        incarnations[-1] = replace(before, stream=stream, altered=(*before.altered, (version, before.stream)))

    def sealed(self, name: str, version: int, ends: tuple[int, ...]) -> None:
        incarnations = self._of[name]
        incarnations[-1] = replace(incarnations[-1], sealed=version, ends=ends)

    def dropped(self, name: str, version: int) -> None:
        incarnations = self._of[name]
        incarnations[-1] = replace(incarnations[-1], gone=version, dropped=True)
