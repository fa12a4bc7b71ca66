"""New rows of one input by their key: what a key finds among the other inputs, all rows that have it find.

    new rows       a1  b2  a3  a4  b5                 a: 1 3 4   from 1 to 4
                                                      b: 2 5     from 2 to 5
    a finds        c0 d2,  c0 d4                      once, and then: (a1 c0 d2) (a1 c0 d4) (a3 c0 d2) ...

    answers        which rows have the same key, and the stretch of time in which they lie
    update         one sort of the rows
    from           seed 001 section 5.2.2, algorithms 4 and 5 (lazy evaluation: a group of new rows probes once; results
                   that live shorter than from one evaluation to the next are kept, by the group's first time stamp)

Rows of a group do not live equally long, so what the group finds is more than each of its rows may have: who has what
is looked at when the group is taken apart.
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints
from stairwise.state.chains import sorted_places

ROWS_A_KEY = 4
"""Rows probe by groups where there are at least so many to a key."""


class KeyGroups:
    """Rows of one input in order of time, by the numbers of their keys; rows without a key are in no group."""

    def __init__(self, of: int, rows: Ints, keys: Ints, times: Ints) -> None:
        self.input = of
        self.keys, place = sorted_places(keys[keys >= 0])
        place = np.flatnonzero(keys >= 0)[place]
        first = np.flatnonzero(np.concatenate(([True], self.keys[1:] != self.keys[:-1]))[: len(place)])
        self._rows, self._first = rows[place], first
        self._count = np.diff(np.append(first, len(place)))
        self.keys = self.keys[first]
        self.since, self.until = times[place[first]], times[place[first + self._count - 1]]
        """When the first and the last row of each group were."""

    def __len__(self) -> int:
        return len(self.keys)

    def apart(self, groups: Ints) -> tuple[Ints, Ints]:
        """For some groups, all of their rows: which of the groups each is of, and where it stands."""
        count = self._count[groups]
        at = expand_ranges(self._first[groups], count)  # first: it asks whether there is room
        return np.repeat(np.arange(len(groups)), count), self._rows[at]
