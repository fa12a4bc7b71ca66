"""Groups and the reports at which something of them changes: partials before and after each.

group, report    (a, 10)   (a, 30)   (b, 20)         by group, then report: each once
came             1         2         3
after            1         1·2       3               combined with all before it of its group, by doubling
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregation.slices import Combining
from stairwise.expressions.views import Bools, Ints


@dataclass(frozen=True)
class Touched:
    """The pairs of a group and a report at which something of it changes, by group, then report."""

    group: Ints
    report: Ints
    reports: int
    """How many reports there are."""
    first: Bools
    """Which are the first ones of their group."""
    of: Ints
    """For each change, its pair."""

    def __len__(self) -> int:
        return len(self.group)

    def place(self) -> Ints:
        """How many pairs of its group stand before each."""
        start = np.flatnonzero(self.first)
        return np.arange(len(self)) - np.repeat(start, np.diff(np.append(start, len(self))))

    def last(self) -> Bools:
        return np.append(self.first[1:], True)[: len(self)]

    def between(self, group: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Where the pairs of a group begin that lie at or above one report and below another, and where they end."""
        words = self.group * self.reports + self.report
        start = np.searchsorted(words, group * self.reports + begin)
        return start, np.maximum(np.searchsorted(words, group * self.reports + end), start)


def touched_by(group: Ints, report: Ints, reports: int, *, begins: bool) -> Touched:
    """What changes of groups at reports touch. ``begins``: what is not grouped has an answer from the first report on,
    whether anything changes or not."""
    words = group * reports + report
    pairs, of = np.unique(np.append(words, 0) if begins else words, return_inverse=True)
    owner = pairs // reports
    first = np.concatenate(([True], owner[1:] != owner[:-1]))[: len(owner)]
    return Touched(owner, pairs % reports, reports, first, of[: len(group)])


def combined(partials: Combining, columns: list[pa.Array], touched: Touched) -> list[pa.Array]:
    """Each partial combined with all before it of its group, in steps of 1, 2, 4, ..."""
    place = touched.place()
    reach, every = 1, np.arange(len(touched))
    while reach <= place.max(initial=0):
        more = np.flatnonzero(place >= reach)
        index = pa.array(np.concatenate([every, more - reach]))
        columns = partials.combine([c.take(index) for c in columns], np.concatenate([every, more]), len(touched))
        reach *= 2
    return columns


def onto(
    partials: Combining, stood: Sequence[pa.Array], known: Ints, columns: Sequence[pa.Array], count: int
) -> list[pa.Array]:
    """Each of so many partials combined with what stood of its group, where that is ``known``."""
    codes = np.concatenate([known, np.arange(count)])
    whole = [pa.concat_arrays([base, more]) for base, more in zip(stood, columns, strict=True)]
    return partials.combine(whole, codes, count)


def before_each(touched: Touched, after: list[pa.Array], stood: Sequence[pa.Array], known: Bools) -> list[pa.Array]:
    """The partial of each group before each report; ``stood`` are those of the groups that are ``known``. Of the first
    report of another one it means nothing."""
    first = np.flatnonzero(touched.first)
    place = np.arange(len(touched)) - 1
    place[first[known]] = len(touched) + np.arange(np.count_nonzero(known))
    index = pa.array(np.maximum(place, 0))
    return [pa.concat_arrays([a, b]).take(index) for a, b in zip(after, stood, strict=True)]
