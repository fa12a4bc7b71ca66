"""Join results kept by negative tuples: a row that expires is joined once more, to find what has to go.

    + row           joins the other window           results + (a3, b5)
    − row a3        joins the other window again     results − (a3, b5), found in the list of its key

    answers        which results go when a row leaves its window
    update         O(1) a result
    lookup         O(matches in the other window + results that have the row's key) for each row that leaves
    space          the results by key, besides the results themselves
    order          rows of either input leave in any order
    from           seed 002 sections 2.1 and 6 (NT), seed 001 section 2.3.3 (the negative tuple approach)

The engine does not keep results so: it puts them under their end when they come (``state.calendar_queue``), and joins
nothing twice. The benchmark of operators measures both.
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.state.chains import Chains, GrowingInts


class ResultsByKey:
    """Results of a join of two inputs, by the number of their key and the positions of their rows."""

    def __init__(self) -> None:
        self._chains = Chains()
        self._rows = (GrowingInts(), GrowingInts())
        self._gone = GrowingInts()
        self.count = 0

    def add(self, keys: Ints, left: Ints, right: Ints) -> None:
        self._chains.extend(keys)
        self._rows[0].extend(left)
        self._rows[1].extend(right)
        self._gone.extend(np.zeros(len(keys), np.int64))
        self.count += len(keys)

    def remove(self, side: int, positions: Ints, keys: Ints, other: Chains, lowest: int) -> Ints:
        """Rows of one side leave: join them with the ``other`` input's rows from ``lowest`` on, and take off what
        comes of it; gives the numbers of the results that are gone."""
        probe, _ = other.probe(keys, np.full(len(keys), lowest))
        negative = np.unique(probe)
        of, number = self._chains.probe(keys[negative], np.zeros(len(negative), np.int64))
        mine = self._rows[side].at(number) == positions[negative][of]
        candidates = number[mine]
        gone: Ints = candidates[self._gone.at(candidates) == 0]
        self._gone.kept[gone - self._gone.first] = 1
        self.count -= len(gone)
        return gone

    def forget(self) -> None:
        """Drop the results from the front that are all gone."""
        alive = np.flatnonzero(self._gone.kept == 0)
        before = self._gone.first + int(alive[0]) if len(alive) else self._gone.end
        self._chains.drop(before)
        for rows in (*self._rows, self._gone):
            rows.drop(before)
