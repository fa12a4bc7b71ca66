"""One level of the tree over closed slices: nodes in order of their numbers, appended at one end, dropped at the other.

chunks    ├──────────────────────────┤├────────────┤├──────┤├──┤        a chunk that is not longer than twice the
                                                                       one behind it is joined with it, so a row
                                                                       is copied O(log n) times, not n times

Few rows are joined in any case: a chunk has a price of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.operators.join import expand_ranges
from stairwise.operators.slices import Slices, joined

FEW_ROWS = 2048


class Layer:
    """Nodes by number, each with a row for every key that has rows in it."""

    def __init__(self, nothing: Slices) -> None:
        self._nothing = nothing
        self._chunks: list[Slices] = []

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self._chunks)

    @property
    def chunks(self) -> list[Slices]:
        return self._chunks

    def replace(self, chunks: list[Slices], nothing: Slices) -> None:
        """The same nodes with other columns, or with keys that are numbered anew."""
        self._chunks, self._nothing = chunks, nothing

    def append(self, nodes: Slices) -> None:
        """Nodes with higher numbers than all that are there."""
        if not len(nodes):
            return
        self._chunks.append(nodes)
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= max(FEW_ROWS, 2 * len(self._chunks[-1])):
            last = self._chunks.pop()
            self._chunks[-1] = joined([self._chunks[-1], last])

    def drop_below(self, number: int) -> None:
        kept = (chunk for chunk in self._chunks if chunk.number[-1] >= number)
        self._chunks = [_from(chunk, number) for chunk in kept]

    def span(self, first: int, last: int) -> list[Slices]:
        """The nodes from first to last, as they lie."""
        found: list[Slices] = []
        for chunk in self._chunks:
            start, stop = np.searchsorted(chunk.number, (first, last + 1), side="left")
            if start < stop:
                found.append(chunk.slice(int(start), int(stop)))
        return found

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
            if len(some):
                yield chunk.take(expand_ranges(start[some], count[some])), np.repeat(some, count[some])


def _from(chunk: Slices, number: int) -> Slices:
    start = int(np.searchsorted(chunk.number, number, side="left"))
    return chunk.slice(start, len(chunk)) if start else chunk
