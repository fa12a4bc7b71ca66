"""What the queries of a signature need of its slices: cuts and partials, and since when these have been there.

query       needs                          a query that leaves needs its partials until its last report, and no
joins       edges, partials                more cuts: its last report lies below every row that still comes
leaves      partials                       ``since`` knows the partials of those that stay, so that what a query
ends        nothing                        which joins can see does not depend on when another one's end is noticed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from stairwise.aggregation.cuts import edges_of
from stairwise.aggregation.partials import Partials, kept_key, union_of
from stairwise.algebra.query import Query, Select
from stairwise.expressions.tree import Aggregate
from stairwise.operators.levels import asked_aggregates, asked_window
from stairwise.schema import DUSK, Instant
from stairwise.windows.schedule import Grid
from stairwise.windows.spec import MultiWindow, TimeWindow

_Thing = TypeVar("_Thing", Grid, Aggregate)


class Needs:
    def __init__(self) -> None:
        self.edges: Counter[Grid] = Counter()
        """Of the windows of queries that stay."""
        self._kept: Counter[Aggregate] = Counter()
        self._staying: Counter[Aggregate] = Counter()
        self._since: dict[str, Instant] = {}
        """For each partial that a query which stays needs, from when on slices have it."""

    @property
    def since(self) -> dict[str, Instant]:
        return self._since

    def enter(self, query: Query, *, stays: bool) -> None:
        _count(self._kept, _aggregates(query), 1)
        if stays:
            _count(self._staying, _aggregates(query), 1)
            _count(self.edges, edges_of(window_of(query)), 1)

    def leave(self, query: Query) -> None:
        _count(self._staying, _aggregates(query), -1)
        _count(self.edges, edges_of(window_of(query)), -1)

    def end(self, query: Query) -> None:
        """A query that has left says nothing any more."""
        _count(self._kept, _aggregates(query), -1)

    def partials(self, before: Partials, above: Instant) -> Partials:
        """What is to be kept from now on. What is new is there above an instant."""
        needed = {kept_key(aggregate) for aggregate in self._staying}
        self._since = {key: self._since.get(key, above) for key in needed}
        return union_of(self._kept, before)

    def restore(self, since: dict[str, Instant]) -> None:
        self._since |= {key: at for key, at in since.items() if key in self._since}

    def kept_since(self, query: Query) -> Instant:
        """From when on slices have all partials of a query."""
        return max((self._since.get(kept_key(a), DUSK) for a in _aggregates(query)), default=DUSK)


def select_of(query: Query) -> Select:
    assert isinstance(query.relation, Select)
    return query.relation


def window_of(query: Query) -> TimeWindow | MultiWindow:
    return asked_window(select_of(query))


def _aggregates(query: Query) -> list[Aggregate]:
    return list(dict.fromkeys(asked_aggregates(select_of(query))))


def _count(counter: Counter[_Thing], things: Iterable[_Thing], by: int) -> None:
    for thing in things:
        counter[thing] += by
        if not counter[thing]:
            del counter[thing]
