"""Joins that pair every row with every row: known before they run, with about how many pairs will stand.

    s [ROWS 1000], t [ROWS 500], u [ROWS 20]  WHERE s.k = t.k         s and t by a key, u with every one of them
                                                                      about 1,000 × 20 pairs

    answers        which inputs no equality, and no bound on how far apart in time they are, links with the others
    from           seed 001 section 5.3 (a join order without a predicate is a cross product)

What windows will hold is known of ROWS alone. Of the others it is assumed: so many rows a second, so many keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Input, Select
from stairwise.join.bands import bands_of
from stairwise.join.links import Equalities
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
)

RATE = 1_000
"""Rows of a stream that are assumed to come in a second."""
KEYS = 10_000
"""Keys that a table or a partitioned window is assumed to have."""
DAY = 86_400_000
"""A landmark is assumed to have been open for so long, in milliseconds."""


@dataclass(frozen=True)
class CrossProduct:
    """Sets of inputs that nothing links with one another."""

    apart: list[list[str]]
    """The names of the inputs of each set."""
    pairs: int
    """About how many joined rows stand before any other condition is asked."""

    def __str__(self) -> str:
        sets = " with ".join(", ".join(names) for names in self.apart)
        return f"every row of {sets}: about {self.pairs:,} pairs at {RATE:,} rows a second and {KEYS:,} keys"


def cross_product(select: Select) -> CrossProduct | None:
    """What a SELECT joins without any link; None where all of its inputs are linked."""
    condition = Condition(select)
    links = [set(value) for value in Equalities(condition).values]
    bounds = {(band.later, band.earlier) for band in bands_of(condition, [s.stream for s in select.inputs])}
    links += [set(bound) for bound in bounds if bound[::-1] in bounds]  # near on both sides
    sets: list[set[int]] = []
    for i in range(len(select.inputs)):
        found = {i}.union(*(link for link in links if i in link))
        touching = [one for one in sets if one & found]
        sets = [one for one in sets if not one & found] + [found.union(*touching)]
    if len(sets) < 2:
        return None
    sizes = [max(_rows(select.inputs[i]) for i in one) for one in sets]
    return CrossProduct([[select.inputs[i].alias for i in sorted(one)] for one in sorted(sets, key=min)], prod(sizes))


def _rows(source: Input) -> int:
    """About how many rows the window of an input holds."""
    match source.window:
        case TimeWindow(range=length):
            return _at_the_rate(length)
        case MultiWindow(levels=levels, horizon=horizon):
            return _at_the_rate(horizon or max(level.range for level in levels))
        case LandmarkWindow(retain=retain):
            return retain or _at_the_rate(DAY)
        case RowsWindow(rows=rows):
            return rows
        case PartitionedWindow(rows=rows):
            return rows * KEYS
        case RelationWindow():
            return KEYS
        case None:
            return 1


def _at_the_rate(length: int) -> int:
    return max(1, length * RATE // 1000)
