"""A group: a chain of carriers with growing ranges, each with the windows that ride on it, and whose they are.

        number 7                                          role           riders
    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁┃  RANGE 40 SLIDE 8          enclosing
             ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁┃  RANGE 24 SLIDE 4          enclosing      RANGE 24 SLIDE 12, RANGE 24 SLIDE 8
                       ▁▁▁▁▁▁┃  RANGE 10 SLIDE 2          seed           RANGE 10 SLIDE 4

A group only keeps its books; who may go where, and goes there, is decided by ``grouping``.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from stairwise.schema import Duration
from stairwise.subsumption.relation import Pace, by_size, is_subsumable, pace
from stairwise.windows.spec import TimeWindow

Members = dict[str, None]
"""Queries in the order in which they came."""

_range = attrgetter("range")


class Role(enum.Enum):
    """What a window is to its group (seed 000 section 3.2)."""

    SEED = "seed"
    ENCLOSING = "enclosing"
    PIGGYBACKED = "piggybacked"


@dataclass(frozen=True)
class Place:
    """Where a window could be inserted into a chain."""

    at: int
    ratio: int
    """The smaller quotient of the slides of the window and a neighbour: 1 if one of them slides in tandem with it."""


@dataclass
class Group:
    """Windows are canonical, and each has at least one query."""

    number: int
    chain: list[TimeWindow] = field(default_factory=list)
    """The carriers from the seed up."""
    riders: dict[TimeWindow, list[TimeWindow]] = field(default_factory=dict)
    """Of each carrier, finest first."""
    members: dict[TimeWindow, Members] = field(default_factory=dict)
    paces: dict[Pace, list[TimeWindow]] = field(default_factory=dict)
    """All windows by when they report, for the schedule."""

    @property
    def seed(self) -> TimeWindow:
        return self.chain[0]

    def windows(self) -> Iterator[TimeWindow]:
        """From the seed up, each carrier before its riders."""
        for carrier in self.chain:
            yield carrier
            yield from self.riders[carrier]

    def carrier(self, window: TimeWindow) -> TimeWindow:
        """The window of this group that has its range and holds its state: itself, or what it rides on."""
        return self.chain[self._position(window.range)]

    def role(self, window: TimeWindow) -> Role:
        if self.carrier(window) != window:
            return Role.PIGGYBACKED
        return Role.SEED if window == self.seed else Role.ENCLOSING

    def quotient(self, window: TimeWindow) -> int:
        """At every how many reports of its carrier a window reports: more than 1 for a rider only."""
        return window.slide // self.carrier(window).slide

    def above(self, carrier: TimeWindow) -> TimeWindow | None:
        """The next carrier of the chain."""
        at = self._position(carrier.range) + 1
        return self.chain[at] if at < len(self.chain) else None

    def place(self, window: TimeWindow) -> Place | None:
        """canEmbed: may it become a carrier here? Both neighbours must nest, and the range must be free."""
        at = self._position(window.range)
        ratios: list[int] = []
        if at:
            below = self.chain[at - 1]
            if not is_subsumable(below, window):
                return None
            ratios.append(window.slide // below.slide)
        if at < len(self.chain):
            above = self.chain[at]
            if above.range == window.range or not is_subsumable(window, above):
                return None
            ratios.append(above.slide // window.slide)
        return Place(at, min(ratios, default=1))

    def enclose(self, window: TimeWindow, place: Place, members: Members) -> None:
        """A new carrier at a place that ``place`` gave."""
        self.chain.insert(place.at, window)
        self.riders[window] = []
        self._file(window, members)

    def carry(self, rider: TimeWindow, members: Members) -> None:
        """A new rider on the carrier of its range."""
        insort(self.riders[self.carrier(rider)], rider, key=by_size)
        self._file(rider, members)

    def drop_rider(self, rider: TimeWindow) -> Members:
        self.riders[self.carrier(rider)].remove(rider)
        return self._unfile(rider)

    def drop_carrier(self, carrier: TimeWindow) -> dict[TimeWindow, Members]:
        """The carrier and its riders leave. What is left is a chain: ⊑ is transitive."""
        del self.chain[self._position(carrier.range)]
        return {window: self._unfile(window) for window in (carrier, *self.riders.pop(carrier))}

    def _position(self, wide: Duration) -> int:
        return bisect_left(self.chain, wide, key=_range)

    def _file(self, window: TimeWindow, members: Members) -> None:
        self.members[window] = members
        insort(self.paces.setdefault(pace(window), []), window, key=_range)

    def _unfile(self, window: TimeWindow) -> Members:
        tandem = self.paces[pace(window)]
        del tandem[bisect_left(tandem, window.range, key=_range)]
        if not tandem:
            del self.paces[pace(window)]
        return self.members.pop(window)
