"""One level of the tree over closed slices: nodes in order of their numbers, appended at one end, dropped at the other.

chunks    ├──────────────────────────┤├────────────┤├──────┤├──┤        a chunk that is not longer than twice the
                                                                       one behind it is joined with it, so a row
                                                                       is copied O(log n) times, not n times

Few rows are joined in any case: a chunk has a price of its own. So has joining, so nodes wait until there are some; and
the oldest chunk is cut only when a good part of it has been dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stairwise.aggregation.slices import Slices, joined
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints

FEW_ROWS = 2048

MOST_WAITING = 8
"""So many appended parts may wait to be joined."""

DROPPED_PART = 8
"""A chunk is cut when more than one part in so many of its numbers is dropped."""


class Layer:
    """Nodes by number, each with a row for every key that has rows in it."""

    def __init__(self) -> None:
        self._chunks: list[Slices] = []
        self._waiting = 0
        """How many of the last chunks are parts that wait."""

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self._chunks)

    @property
    def chunks(self) -> list[Slices]:
        return self._chunks

    def replace(self, chunks: list[Slices]) -> None:
        """The same nodes with other columns, or with keys that are numbered anew."""
        self._chunks = chunks

    def append(self, nodes: Slices) -> None:
        """Nodes with higher numbers than all that are there."""
        if not len(nodes):
            return
        self._chunks.append(nodes)
        self._waiting += 1
        if self._waiting > MOST_WAITING:
            self._join_waiting()

    def _join_waiting(self) -> None:
        waiting = self._chunks[-self._waiting :]
        del self._chunks[-self._waiting :]
        self._chunks.append(joined(waiting))
        self._waiting = 0
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= max(FEW_ROWS, 2 * len(self._chunks[-1])):
            last = self._chunks.pop()
            self._chunks[-1] = joined([self._chunks[-1], last])

    def drop_below(self, number: int) -> None:
        gone = 0
        while gone < len(self._chunks) and self._chunks[gone].number[-1] < number:
            gone += 1
        if gone:
            del self._chunks[:gone]
            self._waiting = min(self._waiting, len(self._chunks))
        if self._chunks:
            oldest = self._chunks[0].number
            if DROPPED_PART * (number - oldest[0]) > oldest[-1] - oldest[0]:
                self._chunks[0] = _from(self._chunks[0], number)

    def span(self, first: int, last: int) -> list[Slices]:
        """The nodes from first to last, as they lie."""
        found: list[Slices] = []
        for chunk in reversed(self._chunks):
            oldest, newest = chunk.number[0], chunk.number[-1]
            if newest < first:
                break
            if first <= oldest and newest <= last:
                found.append(chunk)
            elif oldest <= last:
                start, stop = np.searchsorted(chunk.number, (first, last + 1), side="left")
                found.append(chunk.slice(int(start), int(stop)))
        return found[::-1]

    def count(self, first: Ints, last: Ints) -> Ints:
        """How many rows the nodes of each run have."""
        rows = np.zeros(len(first), np.int64)
        for chunk in self._chunks:
            rows += np.searchsorted(chunk.number, last, side="right") - np.searchsorted(
                chunk.number, first, side="left"
            )
        return np.maximum(rows, 0)

    def of_runs(self, first: Ints, last: Ints) -> Iterator[tuple[Slices, Ints]]:
        """The nodes of many runs, and for each row the run it belongs to."""
        for chunk in self._chunks:
            start = np.searchsorted(chunk.number, first, side="left")
            count = np.searchsorted(chunk.number, last, side="right") - start
            some = np.flatnonzero(count > 0)
            if len(some) == 1:
                low, rows = int(start[some[0]]), int(count[some[0]])
                yield chunk.slice(low, low + rows), np.full(rows, some[0])
            elif len(some):
                yield chunk.take(expand_ranges(start[some], count[some])), np.repeat(some, count[some])


def _from(chunk: Slices, number: int) -> Slices:
    start = int(np.searchsorted(chunk.number, number, side="left"))
    return chunk.slice(start, len(chunk)) if start else chunk
