"""The last n rows of each partition, by numbers that stand for them: what comes, and what has to go for it.

    ROWS 2      a0   b0   a1   a2   b1   a3
    goes                       a0        a1          the n-th row before it of its partition

    ring of a   ┌ a2 │ a3 ┐       ring of b   ┌ b0 │ b1 ┐        row i of a partition lies at i modulo n

    answers        for each row that comes, the row of its partition that is not among the last n any more
    update         O(1) amortised a row, vectorised, whatever n and however many partitions there are
    space          at most four numbers for each row that is held
    order          rows come in stream order
    from           seed 002 section 3 (proposition 5: in a count-based window row ρ is expelled by row ρ + n)

A ring begins small and grows until it has n places. Its rows have not gone round by then, so they move as they lie.
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.state.chains import sorted_places
from stairwise.state.regions import Regions


class LastRows:
    """A ring for each partition. Partitions are numbered from 0 on."""

    def __init__(self, rows: int) -> None:
        self._most = rows
        self._rings = Regions(rows)
        self._came = np.zeros(0, np.int64)
        """By partition, how many rows have come."""

    def push(self, partition: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """Rows come, each of a partition. Gives the numbers of those that go, and for whom: places among the new."""
        none = np.zeros(0, np.int64)
        if not len(partition):
            return none, none
        part, row = sorted_places(partition)
        start = np.flatnonzero(np.concatenate(([True], part[1:] != part[:-1])))
        mine, size = part[start], np.diff(np.append(start, len(part)))
        if mine[-1] >= len(self._came):
            self._came = np.concatenate([self._came, np.zeros(2 * int(mine[-1]) + 2 - len(self._came), np.int64)])
        before = self._came[mine]
        self._rings.make_room(mine, np.minimum(before + size, self._most), before)
        ordinal = np.arange(len(part)) + np.repeat(before - start, size)
        came, number = np.repeat(before, size), numbers[row]
        for_whom = np.flatnonzero(ordinal >= self._most)
        expelled = ordinal[for_whom] - self._most
        is_new = expelled >= came[for_whom]
        goes = np.empty(len(for_whom), np.int64)
        goes[is_new] = number[for_whom[is_new] - self._most]
        goes[~is_new] = self._rings.places[self._at(part[for_whom[~is_new]], expelled[~is_new])]
        stays = ordinal >= came + np.repeat(size, size) - self._most
        self._rings.places[self._at(part[stays], ordinal[stays])] = number[stays]
        self._came[mine] += size
        return goes, row[for_whom]

    def _at(self, partition: Ints, ordinal: Ints) -> Ints:
        at: Ints = self._rings.start[partition] + ordinal % self._rings.room[partition]
        return at

    def _every_place(self) -> Ints:
        held = np.minimum(self._came, self._most)
        return self._rings.at(np.flatnonzero(held), held[held > 0])

    def numbers(self) -> Ints:
        """Of all rows that are held."""
        found: Ints = self._rings.places[self._every_place()]
        return found

    def renumber(self, numbers: Ints) -> None:
        """Give every row the new number of its old one; a negative one stays as it is."""
        at = self._every_place()
        at = at[self._rings.places[at] >= 0]
        self._rings.places[at] = numbers[self._rings.places[at]]
