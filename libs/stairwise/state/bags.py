"""Which rows belong to whom, by number.

answers        the rows of some owners
update         O(1) amortised a row that is added, O(rows of an owner) to take some out
space          at most four numbers for each row
order          that in which rows were put in
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints
from stairwise.state.chains import sorted_places
from stairwise.state.regions import Regions


class Bags:
    """Numbers of rows by owner. Owners are numbered from 0 on."""

    def __init__(self) -> None:
        self._regions = Regions()
        self._size = np.zeros(0, np.int64)

    def take(self, owners: Ints) -> tuple[Ints, Ints]:
        """The rows of some owners, and whose each is."""
        place, numbers = self.of_each(owners)
        return owners[place], numbers

    def of_each(self, owners: Ints) -> tuple[Ints, Ints]:
        """The rows of each of some owners, who may come more than once: the place of the owner, and the row."""
        self._know(owners)
        size = self._size[owners]
        return np.repeat(np.arange(len(owners)), size), self._regions.places[self._regions.at(owners, size)]

    def sizes(self, owners: Ints) -> Ints:
        self._know(owners)
        found: Ints = self._size[owners]
        return found

    def add(self, whose: Ints, numbers: Ints) -> None:
        """More rows, each with its owner."""
        owner, row = sorted_places(whose)
        first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
        owners, count = owner[first], np.diff(np.append(first, len(owner)))
        size = self.sizes(owners)
        self._regions.make_room(owners, size + count, size)
        self._regions.places[expand_ranges(self._regions.start[owners] + size, count)] = numbers[row]
        self._size[owners] = size + count

    def put(self, owners: Ints, whose: Ints, numbers: Ints) -> None:
        """Let some owners, which ascend, have these rows and no others; ``whose`` ascends, too."""
        self._know(owners)
        size = np.searchsorted(whose, owners, side="right") - np.searchsorted(whose, owners, side="left")
        self._regions.make_room(owners, size, np.zeros(len(owners), np.int64))
        self._regions.places[self._regions.at(owners, size)] = numbers
        self._size[owners] = size

    def renumber(self, numbers: Ints) -> None:
        """Give every row the new number of its old one."""
        owners = np.flatnonzero(self._size)
        at = self._regions.at(owners, self._size[owners])
        self._regions.places[at] = numbers[self._regions.places[at]]

    def keep(self, owners: Ints, numbers: Ints) -> None:
        """Forget all owners but some, which ascend, and give these new numbers, from 0 on."""
        whose, rows = self.take(owners)
        whose = numbers[np.searchsorted(owners, whose)]
        order = np.argsort(whose, kind="stable")
        self._regions, self._size = Regions(), np.zeros(0, np.int64)
        self.put(np.sort(numbers), whose[order], rows[order])

    def _know(self, owners: Ints) -> None:
        last = int(owners.max(initial=-1))
        if last >= len(self._size):
            self._size = np.concatenate([self._size, np.zeros(2 * last + 2 - len(self._size), np.int64)])
        self._regions.know(last + 1)
