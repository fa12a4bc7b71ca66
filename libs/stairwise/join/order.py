"""In which order the inputs of a join are probed: those first that leave the least to look at.

    Σ over inputs i of  λi · (probes and rows read for a new row of i, which probes the others in the order)

    answers        one order for all inputs; a new row of one of them probes the others in it, its own left out
    cost           O(n²) for the first order, O(n²) more for each that is tried
    from           seed 001 section 5.3: the model of cost per unit of time, and the heuristic

The heuristic takes the pair of inputs first that makes the fewest joined rows, then again and again the input that
leaves the fewest. A fast input asks often, so orders are tried as well in which one stands further up: the cheapest
counts. An input that an equality links to those before it always goes before one that has to be looked at row by row.

The order decides what a join costs and never what it says: joined rows are put in order by their own rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

_TRIED = 64
"""How many orders are taken further at most when another fast input is moved."""


@dataclass(frozen=True)
class Key:
    """Inputs whose rows are found by a common key, and how many different keys each of them has."""

    distinct: Mapping[int, float]


@dataclass(frozen=True)
class Load:
    """What is known of the inputs of a join: how fast they are, what their windows hold, and what links them."""

    rates: Sequence[float]
    rows: Sequence[float]
    keys: Sequence[Key]
    has_tables: bool = True
    """Are rows found by their key? Otherwise all of a window's are looked at."""

    def linked(self, found: Collection[int], new: int) -> bool:
        return any(new in key.distinct and not key.distinct.keys().isdisjoint(found) for key in self.keys)

    def matches(self, found: Collection[int], new: int) -> float:
        """How many rows of an input belong to one that is joined of others, as a rule."""
        fewest = self.rows[new]
        for key in self.keys:
            known = [key.distinct[i] for i in found if i in key.distinct]
            if known and new in key.distinct:
                fewest = min(fewest, self.rows[new] / max(1, min(known), key.distinct[new]))
        return fewest

    def next(self, order: Sequence[int], found: Collection[int]) -> int:
        """The input that is probed next: the first of the order that a key links to those found, else the first."""
        waiting = [i for i in order if i not in found]
        return next((i for i in waiting if self.linked(found, i)), waiting[0])

    def cost(self, order: Sequence[int]) -> float:
        """Probes and rows that are read in a unit of time."""
        total = 0.0
        for first in order:
            found, joined = [first], self.rates[first]
            while len(found) < len(order):
                new = self.next(order, found)
                matches = self.matches(found, new)
                read = matches + 1 if self.has_tables and self.linked(found, new) else self.rows[new]
                total += joined * read
                joined *= matches
                found.append(new)
        return total


def by_selectivity(load: Load) -> list[int]:
    """The pair that makes the fewest joined rows, then one input after the other that leaves the fewest."""
    inputs = range(len(load.rows))
    first, second = min(combinations(inputs, 2), key=lambda pair: load.rows[pair[0]] * load.matches(pair[:1], pair[1]))
    order = [first, second]
    while len(order) < len(load.rows):
        order.append(min((i for i in inputs if i not in order), key=lambda i: load.matches(order, i)))
    return order


def best_order(load: Load) -> list[int]:
    """The cheapest of the orders that are tried."""
    start = by_selectivity(load)
    average = sum(load.rates) / len(load.rates)
    tried = [start]
    for fast in (i for i in start if load.rates[i] > average):
        moved = [
            [*rest[:place], fast, *rest[place:]]
            for order in tried
            for rest in [[i for i in order if i != fast]]
            for place in range(order.index(fast))
        ]
        tried = sorted([*tried, *moved], key=load.cost)[:_TRIED]
    return min(tried, key=load.cost)
