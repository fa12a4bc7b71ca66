"""embedWindow and its revocation: groups that stay sound while queries come and go (seed 000, section 3.3).

    answers        the group of every query, and what joining or leaving did to the groups
    requirement    none on the aggregate: groups hold no state, they say who shares it
    cost           embed and revoke look once at each group whose base slide divides the window's or is divided by it,
                   in O(log n) each, and at each carrier of the same range; a carrier that leaves or steps down does
                   so for each of its riders; a query more or less on a window that others have costs O(log n)
    order          the groups depend on the order in which queries came and left, and on nothing else
    from           seed 000 section 3.3, Algorithm 1, lines 30 to 46, corrected

Embedding W, in this order:

    1  some query has W already       it has one member more
    2  a carrier of its range ⊑ W     W rides there; the slides decide between several
    3  a group has a place for it     W becomes a carrier. The carriers of its range that W can carry step down first
                                      and then ride on W, wherever they were
    4  none has                       W is the seed of a new group

As printed in the seed, embedWindow looks only at the first wider window of a group, never at the one before it, and so
breaks chains; it cannot see a window of equal range, and so never rides; and where the wider window Wm slides more
finely than W it puts W behind Wm although W is narrower. Here both neighbours must nest and riding is tried first.

When the last query of a window leaves, a rider just goes. A carrier leaves its share of the state to the next carrier
of the chain (delegation), unless riders are orphaned: then the finest of them takes its place (promotion). The seed
holds that this has no further consequences. It may: <10, 4> can ride on <10, 2> in front of <12, 2> but cannot stand
there. An orphan that fits neither the old place nor another carrier of its range is embedded like a new window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stairwise.errors import AlreadyExistsError, NotFoundError
from stairwise.schema import Duration
from stairwise.subsumption.bases import Bases
from stairwise.subsumption.group import Group, Members, Place, Role
from stairwise.subsumption.piggyback import Grouped, steps
from stairwise.subsumption.relation import canonical, is_subsumable
from stairwise.subsumption.subsume import subsume_nearest
from stairwise.subsumption.suitability import Suitability
from stairwise.windows.spec import TimeWindow


@dataclass(frozen=True)
class Embedding:
    """What became of a query that joined."""

    window: TimeWindow
    group: Group
    role: Role
    stepped_down: tuple[TimeWindow, ...] = ()
    """Carriers until now, which ride on the new window from here on."""


@dataclass(frozen=True)
class Revocation:
    """What became of the window of a query that left. All is None or empty as long as other queries have it."""

    window: TimeWindow
    members_left: int
    role: Role
    """What the window was."""
    promoted: TimeWindow | None = None
    """The orphaned rider that took the place in the chain."""
    delegate: TimeWindow | None = None
    """The next carrier of the chain, which takes over the share of the state if nobody was promoted."""
    new_seed: TimeWindow | None = None
    """If the window was the seed of a group that lives on."""
    resettled: tuple[TimeWindow, ...] = ()
    """Orphans that had to go elsewhere."""


class WindowGroups:
    """The groups of one signature."""

    def __init__(self, suitability: Suitability = Suitability.NEAREST_SLIDE) -> None:
        self._suitability = suitability
        self._numbered = 0
        self._groups: dict[int, Group] = {}
        self._bases: defaultdict[Duration, Bases] = defaultdict(Bases)
        """By lag."""
        self._carriers: defaultdict[tuple[Duration, Duration], dict[TimeWindow, Group]] = defaultdict(dict)
        """By lag and range."""
        self._group_of: dict[TimeWindow, Group] = {}
        self._window_of: dict[str, TimeWindow] = {}

    @classmethod
    def of(
        cls,
        queries: Mapping[str, TimeWindow],
        partition: Callable[[Iterable[TimeWindow]], list[Grouped]] = subsume_nearest,
    ) -> WindowGroups:
        """All at once, by ``subsume_nearest`` or another way to make groups of a pool."""
        grouping = cls()
        members: defaultdict[TimeWindow, Members] = defaultdict(dict)
        for query, window in queries.items():
            grouping._window_of[query] = own = canonical(window)
            members[own][query] = None
        for windows in partition(members):
            group = grouping._new_group()
            for carrier, riders in steps(windows).items():
                grouping._enclose(carrier, members[carrier], group, Place(len(group.chain), 1))
                for rider in riders:
                    grouping._carry(rider, members[rider], group)
        return grouping

    @property
    def groups(self) -> Iterable[Group]:
        """In the order in which they came to be."""
        return self._groups.values()

    @property
    def queries(self) -> Mapping[str, TimeWindow]:
        return self._window_of

    def window_of(self, query: str) -> TimeWindow:
        if query not in self._window_of:
            raise NotFoundError("query", query, self._window_of)
        return self._window_of[query]

    def group_of(self, query: str) -> Group:
        return self._group_of[self.window_of(query)]

    def embed(self, query: str, window: TimeWindow) -> Embedding:
        """A query joins."""
        if query in self._window_of:
            raise AlreadyExistsError("query", query)
        window = canonical(window)
        self._window_of[query] = window
        known = self._group_of.get(window)
        if known is not None:
            known.members[window][query] = None
            return Embedding(window, known, known.role(window))
        return self._settle(window, {query: None})

    def revoke(self, query: str) -> Revocation:
        """A query leaves."""
        window = self.window_of(query)
        del self._window_of[query]
        group = self._group_of[window]
        role = group.role(window)
        del group.members[window][query]
        if group.members[window]:
            return Revocation(window, len(group.members[window]), role)
        del self._group_of[window]
        if role is Role.PIGGYBACKED:
            group.drop_rider(window)
            return Revocation(window, 0, role)
        return self._withdraw(window, group, role)

    def _withdraw(self, carrier: TimeWindow, group: Group, role: Role) -> Revocation:
        """A carrier without queries leaves its group, and its riders find another one."""
        above = group.above(carrier)
        orphans = self._step_down(carrier)
        del orphans[carrier]
        promoted = None
        resettled: list[TimeWindow] = []
        for orphan, members in orphans.items():
            now = self._settle(orphan, members, home=group)
            if now.group is not group:
                resettled.append(orphan)
            elif now.role is not Role.PIGGYBACKED:
                promoted = orphan
        self._bury_if_empty(group)
        return Revocation(
            carrier,
            0,
            role,
            promoted=promoted,
            delegate=above if promoted is None else None,
            new_seed=group.seed if role is Role.SEED and group.chain else None,
            resettled=tuple(resettled),
        )

    def _settle(self, window: TimeWindow, members: Members, home: Group | None = None) -> Embedding:
        """A group for a window that is in none, in the order of the card above."""
        carriers = self._carriers.get((window.lag, window.range), {})
        host = max((c for c in carriers if is_subsumable(c, window)), key=lambda c: c.slide, default=None)
        if host is not None:
            group = carriers[host]
            self._carry(window, members, group)
            return Embedding(window, group, Role.PIGGYBACKED)
        stepped_down = {c: carriers[c] for c in carriers if is_subsumable(window, c)}
        passengers = {w: queries for c in stepped_down for w, queries in self._step_down(c).items()}
        emptied = (left for left in stepped_down.values() if not left.chain)
        group, place = self._place(window, home) or (next(emptied, None) or self._new_group(), Place(0, 1))
        self._enclose(window, members, group, place)
        for passenger, queries in passengers.items():
            self._carry(passenger, queries, group)
        for left in stepped_down.values():
            self._bury_if_empty(left)
        return Embedding(window, group, group.role(window), tuple(stepped_down))

    def _place(self, window: TimeWindow, home: Group | None) -> tuple[Group, Place] | None:
        """``home`` if the window fits there, else the most suitable of all groups that have a place for it."""
        if home is not None and (place := home.place(window)) is not None:
            return home, place
        places = (
            (self._suitability.rank(group.seed.slide, place.ratio), group.number, place)
            for group in self._bases[window.lag].related(window.slide)
            if (place := group.place(window)) is not None
        )
        best = min(places, default=None, key=lambda found: found[:2])
        return None if best is None else (self._groups[best[1]], best[2])

    def _new_group(self) -> Group:
        self._numbered += 1
        group = self._groups[self._numbered] = Group(self._numbered)
        return group

    def _bury_if_empty(self, group: Group) -> None:
        if not group.chain:
            del self._groups[group.number]

    def _enclose(self, window: TimeWindow, members: Members, group: Group, place: Place) -> None:
        with self._bases[window.lag].refiling(group):
            group.enclose(window, place, members)
        self._carriers[window.lag, window.range][window] = group
        self._group_of[window] = group

    def _carry(self, rider: TimeWindow, members: Members, group: Group) -> None:
        group.carry(rider, members)
        self._group_of[rider] = group

    def _step_down(self, carrier: TimeWindow) -> dict[TimeWindow, Members]:
        """A carrier leaves its group, which may be left empty, with all that ride on it."""
        alike = self._carriers[carrier.lag, carrier.range]
        group = alike.pop(carrier)
        if not alike:
            del self._carriers[carrier.lag, carrier.range]
        bases = self._bases[carrier.lag]
        with bases.refiling(group):
            windows = group.drop_carrier(carrier)
        if not bases:
            del self._bases[carrier.lag]
        return windows
