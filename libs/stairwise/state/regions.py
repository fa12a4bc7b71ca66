"""Many small arrays in one: each owner has a region of places, which is moved when it becomes too small.

places   │ 0 0 │ 1 1 1 1 │ · · │ 2 2 │ 3 3 3 3 │             · was a region of owner 3
start       0      2               8     10

answers        the places of many owners at once
update         O(1) amortised a place
space          at most twice as many places as are in use, and once more as many that are left behind
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints


class Regions:
    """Numbers of owners 0, 1, 2, ..., for each from some place on."""

    def __init__(self, most: int = 2**62) -> None:
        """No region needs more than ``most`` places."""
        self._most = most
        self.places = np.empty(1024, np.int64)
        self._end = 0
        """The places from here on are nobody's."""
        self.start, self.room = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """By owner, where its region begins, and how many places it has."""

    def at(self, owners: Ints, count: Ints) -> Ints:
        """The first places of some owners, so many of each, one owner after the other."""
        return expand_ranges(self.start[owners], count)

    def know(self, owners: int) -> None:
        """Let there be so many owners, at least."""
        if owners > len(self.start):
            more = np.zeros(2 * owners - len(self.start), np.int64)
            self.start, self.room = np.concatenate([self.start, more]), np.concatenate([self.room, more])

    def make_room(self, owners: Ints, needed: Ints, held: Ints) -> None:
        """Let each of some owners, which ascend, have so many places; what it holds in the first ones stays there."""
        if not len(owners):
            return
        self.know(int(owners[-1]) + 1)
        few = self.room[owners] < needed
        if not few.any():
            return
        mine, held = owners[few], held[few]
        room = np.minimum(self._most, np.maximum(needed[few], 2 * self.room[mine]))
        start = self._end + np.cumsum(room) - room
        self._end += int(room.sum())
        if self._end > len(self.places):
            places = np.empty(2 * self._end, np.int64)
            places[: len(self.places)] = self.places
            self.places = places
        self.places[expand_ranges(start, held)] = self.places[expand_ranges(self.start[mine], held)]
        self.start[mine], self.room[mine] = start, room
