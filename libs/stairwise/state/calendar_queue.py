"""A calendar queue: what is to happen, by the day on which it will.

    push (13, a) (27, b) (11, c)        day 1: 13 a, 11 c        day 2: 27 b            a day is a stretch of time
    pop up to 12                        day 1: 13 a              day 2: 27 b            c comes out

    answers        everything that is due by some time
    update         O(1) an entry, vectorised
    lookup         O(entries that come out, and those of the last day)
    space          the entries
    order          any
    from           seed 001 section 3.5.2 (results of weak non-monotonic plans, partitioned by expiration time)

Results that leave in another order than they came need neither a scan to find them nor a sort to keep them: they are
put under the day of their end, and days are taken off the front.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.schema import Duration, Instant
from stairwise.state.chains import sorted_places

_NEAR = 2**32
"""Days that lie no further apart are sorted with their places in one word."""


class CalendarQueue:
    """Numbers by the time at which they are due."""

    def __init__(self, day: Duration) -> None:
        self._day = day
        self._days: dict[int, list[tuple[Ints, Ints]]] = {}

    def __len__(self) -> int:
        return sum(len(times) for entries in self._days.values() for times, _ in entries)

    def numbers(self) -> Ints:
        """The numbers of all entries."""
        found = [numbers for entries in self._days.values() for _, numbers in entries]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def renumber(self, numbers: Ints) -> None:
        """Give every entry the new number of its old one."""
        for day, entries in self._days.items():
            self._days[day] = [(times, numbers[old]) for times, old in entries]

    def push(self, times: Ints, numbers: Ints) -> None:
        if not len(times):
            return
        day = times // self._day
        first = int(day.min())
        if first == int(day.max()):
            self._days.setdefault(first, []).append((times, numbers))
            return
        if int(day.max()) - first < _NEAR:
            in_order, order = sorted_places(day - first)
        else:
            order = np.argsort(day, kind="stable")
            in_order = day[order] - first
        edges = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1], [True]))).tolist()
        times, numbers = times[order], numbers[order]
        for start, stop in pairwise(edges):
            entry = (times[start:stop], numbers[start:stop])
            self._days.setdefault(first + int(in_order[start]), []).append(entry)

    def pop(self, upto: Instant) -> tuple[Ints, Ints]:
        """All entries that are due at or before ``upto``: their times and numbers, by day."""
        last = upto // self._day
        found: list[tuple[Ints, Ints]] = []
        for day in sorted(day for day in self._days if day <= last):
            entries = self._days.pop(day)
            times = np.concatenate([times for times, _ in entries])
            numbers = np.concatenate([numbers for _, numbers in entries])
            if day == last:
                later = times > upto
                if later.any():
                    self._days[day] = [(times[later], numbers[later])]
                    times, numbers = times[~later], numbers[~later]
            found.append((times, numbers))
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *(t for t, _ in found)]), np.concatenate([none, *(n for _, n in found)])
