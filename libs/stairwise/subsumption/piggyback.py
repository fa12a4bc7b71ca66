"""Piggybacking: of windows with equal range only the finest are carried by a step of their own.

    answers        which windows of a pool need a place in a chain (carriers), and on which the others ride
    requirement    none on the aggregate
    cost           O(n p) for n different windows whose slides have at most p finer paces in the pool
    order          none
    from           seed 000 section 3.2 (iii)

Where Wi ⊑ Wj and the ranges are equal, the state of Wj is the state of Wi at every q-th report, q = bj / bi:

    d   RANGE 10 SLIDE 2     ●────●────●────●────●────●──▶        carrier
    u   RANGE 10 SLIDE 4     ●─────────●─────────●───────▶        rides on d, q = 2

A rider takes no place in the chain, hence is in nobody's way. So a group is a chain of carriers with strictly growing
ranges, each with its riders, and two riders of one carrier need not nest in each other. The sweep of the seed rides
only where the last window of a group happens to have the same range; carrying nobody who can ride gives the
shortest chains, and (since a part of a pool never needs more chains than the whole) the fewest groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from stairwise.subsumption.relation import Chain, Pace, by_size, canonical, finer_paces, pace
from stairwise.windows.spec import TimeWindow

Grouped = Sequence[TimeWindow]
"""The windows of one group by size: a chain of carriers, each with its riders behind it."""


@dataclass(frozen=True)
class Collapsed:
    """A pool with every window that can ride on another one put onto it."""

    riders: dict[TimeWindow, list[TimeWindow]]
    """Of each carrier, finest first. Carriers stand by size."""

    @property
    def carriers(self) -> Iterable[TimeWindow]:
        return self.riders.keys()

    def expand(self, chains: Iterable[Chain]) -> list[Grouped]:
        """Groups whose carriers are these chains."""
        return [[w for carrier in chain for w in (carrier, *self.riders[carrier])] for chain in chains]


def collapse(pool: Iterable[TimeWindow]) -> Collapsed:
    """Carriers and riders of a pool. Windows that are given more than once count once.

    A window rides on the slowest carrier that it can.
    """
    windows = sorted({canonical(window) for window in pool}, key=by_size)
    finer = finer_paces(windows)
    riders: dict[TimeWindow, list[TimeWindow]] = {}
    for _, same_range in groupby(windows, key=lambda w: w.range):
        carriers: dict[Pace, TimeWindow] = {}
        for window in same_range:
            carrier = next((carriers[p] for p in reversed(finer[pace(window)]) if p in carriers), None)
            if carrier is None:
                carriers[pace(window)] = window
                riders[window] = []
            else:
                riders[carrier].append(window)
    return Collapsed(riders)


def steps(windows: Grouped) -> dict[TimeWindow, list[TimeWindow]]:
    """The carriers of one group with their riders: the first window of each range carries."""
    return {carrier: riders for _, (carrier, *riders) in groupby(windows, key=lambda w: w.range)}
