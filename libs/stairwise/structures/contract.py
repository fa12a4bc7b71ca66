"""The one contract of the structures: updated by the batch, asked by the batch, over positions in substreams.

    key 0    ┌──┬──┬──┬──┬──┐          a row's position counts its key's rows from the first, dropped ones included;
    key 1    ┌──┬──┐   │     │         an interval is a key and two positions, left inclusive, right exclusive:
                      left  right      whether a window was given by time or by rows has been settled before

Where a row lies in memory is its slot, which ``substreams`` gives out. A structure keeps arrays over slots: one
value a slot for the narrowest intervals, every 2^l-th for wider ones. Slots are dealt out so that 2^l neighbours
that start at a multiple of 2^l stay neighbours: a structure may shift a slot right to find its wider interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stairwise.aggregates import grouped
from stairwise.expressions.views import Ints

SMALLEST = 8
"""The slots of a key's first ring, a power of two: no ring has fewer."""


@dataclass(frozen=True)
class Arrivals:
    """A batch of rows with its places, in stream order."""

    key: Ints
    position: Ints
    slot: Ints
    masks: Ints
    """Of each key: the size of its ring, less one."""

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return len(self.masks)

    @cached_property
    def mask(self) -> Ints:
        """The size of the ring that the row is in, less one: no interval is wider."""
        return self.masks.take(self.key)

    def touched(self) -> Ints:
        """The keys that have rows in the batch."""
        return np.unique(self.key) if self.keys > len(self) else np.flatnonzero(np.bincount(self.key))

    def by_key(self) -> ByKey:
        order = grouped.sort_codes(self.key, self.keys)
        key = self.key[order]
        begin = grouped.run_starts(key)
        first_of_run = np.repeat(begin, np.diff(begin, append=len(key)))
        return ByKey(order, self.position[order], self.slot[order], self.masks[key], first_of_run)


@dataclass(frozen=True)
class ByKey:
    """The same rows by key, and within a key in stream order."""

    order: Ints
    position: Ints
    slot: Ints
    mask: Ints
    first_of_run: Ints
    """Where the rows of each row's key begin in this order."""

    def __len__(self) -> int:
        return len(self.slot)


@dataclass(frozen=True)
class Move:
    """Rows that got other slots: what stood at ``source`` belongs at ``target``. ``size`` slots there are now.

    For every key that moves, the position before its first row moves along.
    """

    source: Ints
    target: Ints
    position: Ints
    mask: Ints
    """The size of the smaller of the two rings, less one."""
    size: int
    fresh: bool
    """Do all rows that are kept move? Then what lies elsewhere can be forgotten."""

    @staticmethod
    def to_size(size: int) -> Move:
        """There are more slots, and no row moves."""
        none: Ints = np.empty(0, np.int64)
        return Move(none, none, none, none, size, fresh=False)


@dataclass(frozen=True)
class Intervals:
    """Positions [left, right) of one key each; none of them is empty by being upside down."""

    key: Ints
    left: Ints
    right: Ints
    start: Ints
    """The first slot of each interval's key, and the mask that wraps its positions into its slots."""
    mask: Ints

    def __len__(self) -> int:
        return len(self.left)

    def at(self, some: Ints) -> Intervals:
        """Those at these places."""
        return Intervals(*(column[some] for column in (self.key, self.left, self.right, self.start, self.mask)))

    def slots(self, position: Ints) -> Ints:
        return self.start + (position & self.mask)

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """The slots of the positions before both ends, which several structures ask for."""
        return self.slots(self.left - 1), self.slots(self.right - 1)


class Structure(Protocol):
    """What ``substreams`` tells every structure that is attached to it."""

    def move(self, move: Move) -> None:
        """Called before the update that made the room necessary."""

    @property
    def size_bytes(self) -> int: ...


def spread(begin: Ints, length: Ints) -> Ints:
    """All numbers of [begin, begin + length), one such range after the other."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(begin + length - ends, length) + np.arange(total)


def grown(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The same column with room for ``size``; what is new is zero."""
    if len(column) >= size:
        return column
    longer = np.zeros(size, column.dtype)
    longer[: len(column)] = column
    return longer


def moved(column: npt.NDArray[Any], move: Move, level: int = 0) -> npt.NDArray[Any]:
    """A column after a move; at ``level`` l it has one entry for 2^l slots."""
    source, target = move.source, move.target
    if level:
        width = (1 << level) - 1
        ends = ((move.position + 1) & width == 0) & (move.mask >= width)
        source, target = source[ends] >> level, target[ends] >> level
    size = move.size >> level
    if move.fresh:
        placed = np.zeros(size, column.dtype)
        placed[target] = column[source]
        return placed
    column = grown(column, size)
    column[target] = column[source]
    return column
