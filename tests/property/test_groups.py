"""Properties of subsumption groups, against definitions that are written out naively.

Times are small integers so that ranges, slides and offsets collide often; nothing depends on the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.minimum_cover import minimum_cover, minimum_groups
from stairwise.subsumption.drawing import draw
from stairwise.subsumption.group import Group, Role
from stairwise.subsumption.group_schedule import due, seeds
from stairwise.subsumption.grouping import Revocation, WindowGroups
from stairwise.subsumption.piggyback import Grouped, collapse
from stairwise.subsumption.relation import canonical, is_subsumable
from stairwise.subsumption.subsume import subsume_nearest, subsume_windows
from stairwise.subsumption.suitability import Suitability
from stairwise.subsumption.timetable import Timetable
from stairwise.windows.spec import TimeWindow

slides = st.sampled_from([1, 2, 3, 4, 6, 8, 12])
plain = st.builds(TimeWindow, st.integers(1, 8), slides)
shifted = st.builds(TimeWindow, st.integers(1, 8), slides, lag=st.sampled_from([0, 0, 0, 5]), offset=st.integers(0, 24))
windows = plain | shifted
pools = st.lists(windows, max_size=40)
small_pools = st.lists(windows, max_size=6)

changes = st.lists(windows | st.integers(0, 1000), max_size=60)
"""A window is embedded under the next name; a number picks the query that is revoked."""

PARTITIONS = [subsume_windows, subsume_nearest, minimum_groups]


def spelled_once(pool: Sequence[TimeWindow]) -> set[TimeWindow]:
    return {replace(w, offset=w.offset % w.slide) for w in pool}


def nests(inner: TimeWindow, outer: TimeWindow) -> bool:
    """Definition 1 by its meaning: whenever the outer window reports, the inner does, with a suffix of its rows."""
    period = lcm(inner.slide, outer.slide)
    times = [{tau for tau in range(period) if (tau - w.offset) % w.slide == 0} for w in (inner, outer)]
    return times[1] <= times[0] and inner.lag == outer.lag and inner.range <= outer.range


def is_chain(pool: Sequence[TimeWindow]) -> bool:
    return all(nests(a, b) or nests(b, a) for a, b in combinations(pool, 2))


def is_group(pool: Sequence[TimeWindow]) -> bool:
    """One window of each range carries the others of that range, and the carriers are a chain."""
    carriers = []
    for wide in {w.range for w in pool}:
        same = [w for w in pool if w.range == wide]
        carriers += [w for w in same if all(nests(w, other) for other in same)]
    return len(carriers) == len({w.range for w in pool}) and is_chain(carriers)


def fewest(pool: Sequence[TimeWindow], allowed: Callable[[Sequence[TimeWindow]], bool]) -> int:
    """By trying every partition."""

    def partitions(left: Sequence[TimeWindow], parts: list[list[TimeWindow]]) -> int:
        if not left:
            return len(parts) if all(map(allowed, parts)) else len(pool)
        first, *rest = left
        joined = [partitions(rest, [*parts[:i], [*part, first], *parts[i + 1 :]]) for i, part in enumerate(parts)]
        return min([*joined, partitions(rest, [*parts, [first]])])

    return partitions(list(pool), [])


def printed_algorithm(pool: Sequence[TimeWindow]) -> list[list[TimeWindow]]:
    """Algorithm 1 of the seed as it stands there: one group probed after the other."""
    groups: list[list[TimeWindow]] = []
    last: list[TimeWindow] = []
    for window in sorted(spelled_once(pool), key=lambda w: (w.range, w.slide, w.lag, w.offset)):
        by_base = sorted(range(len(groups)), key=lambda g: (-groups[g][0].slide, -last[g].slide, g))
        fitting = next((g for g in by_base if nests(last[g], window)), None)
        if fitting is None:
            groups.append([window])
            last.append(window)
            continue
        groups[fitting].append(window)
        if window.range > last[fitting].range:
            last[fitting] = window
    return groups


def grouped(grouping: WindowGroups) -> list[set[TimeWindow]]:
    return [set(group.windows()) for group in grouping.groups]


def assert_sound(group: Group) -> None:
    assert is_chain(group.chain)
    assert [w.range for w in group.chain] == sorted({w.range for w in group.chain})
    assert all(nests(a, b) for a, b in zip(group.chain, group.chain[1:], strict=False))
    assert set(group.riders) == set(group.chain)
    for carrier, riders in group.riders.items():
        assert all(rider != carrier and rider.range == carrier.range and nests(carrier, rider) for rider in riders)
        assert riders == sorted(riders, key=lambda w: w.slide)
    everyone = list(group.windows())
    assert len(everyone) == len(set(everyone)) == len(group.members)
    assert set(everyone) == set(group.members) == {w for tandem in group.paces.values() for w in tandem}
    assert all(group.members.values())
    roles = [group.role(window) for window in group.chain]
    assert roles == [Role.SEED] + [Role.ENCLOSING] * (len(group.chain) - 1)


def assert_books_agree(grouping: WindowGroups, registered: dict[str, TimeWindow]) -> None:
    """Every query is in exactly one group, under its window, and every window that has queries is there once."""
    found = [(q, w) for group in grouping.groups for w, members in group.members.items() for q in members]
    assert sorted(found) == sorted(registered.items(), key=lambda item: item[0])
    assert grouping.queries == registered
    assert all(query in grouping.group_of(query).members[window] for query, window in registered.items())
    everyone = [window for group in grouping.groups for window in group.windows()]
    assert len(everyone) == len(set(everyone))


def after(steps: Sequence[TimeWindow | int], grouping: WindowGroups) -> WindowGroups:
    """The changes made."""
    for number, step in enumerate(steps):
        if isinstance(step, TimeWindow):
            grouping.embed(f"q{number}", step)
        elif grouping.queries:
            grouping.revoke(list(grouping.queries)[step % len(grouping.queries)])
    return grouping


@given(windows.map(canonical), windows.map(canonical))
def test_definition_1_says_that_windows_nest_whenever_the_outer_one_reports(a: TimeWindow, b: TimeWindow) -> None:
    assert is_subsumable(a, b) == nests(a, b)


@given(windows.map(canonical), windows.map(canonical), windows.map(canonical))
def test_subsumption_is_a_partial_order(a: TimeWindow, b: TimeWindow, c: TimeWindow) -> None:
    assert is_subsumable(a, a)
    assert a == b or not (is_subsumable(a, b) and is_subsumable(b, a))
    assert is_subsumable(a, c) or not (is_subsumable(a, b) and is_subsumable(b, c))


@pytest.mark.parametrize("partition", PARTITIONS)
@given(pool=pools)
def test_a_pool_is_split_into_groups(
    partition: Callable[[Sequence[TimeWindow]], list[Grouped]], pool: list[TimeWindow]
):
    groups = partition(pool)
    assert sorted(map(repr, (w for group in groups for w in group))) == sorted(map(repr, spelled_once(pool)))
    assert all(map(is_group, groups))


@given(pools)
def test_the_sweep_finds_what_probing_group_after_group_finds(pool: list[TimeWindow]) -> None:
    assert subsume_windows(pool) == printed_algorithm(pool)


@given(pools)
def test_whatever_can_ride_on_a_window_of_its_range_rides(pool: list[TimeWindow]) -> None:
    once = spelled_once(pool)
    collapsed = collapse(pool)
    assert set(collapsed.carriers) == {
        w for w in once if not any(o != w and o.range == w.range and nests(o, w) for o in once)
    }
    assert all(rider.range == c.range and nests(c, rider) for c, riders in collapsed.riders.items() for rider in riders)
    assert len(once) == len(collapsed.riders) + sum(map(len, collapsed.riders.values()))


@given(small_pools)
def test_no_partition_has_fewer_groups_than_the_minimum(pool: list[TimeWindow]) -> None:
    once = sorted(spelled_once(pool), key=repr)
    assert len(minimum_groups(pool)) == fewest(once, is_group)


@given(small_pools)
def test_no_partition_has_fewer_chains_than_the_cover(pool: list[TimeWindow]) -> None:
    assert len(minimum_cover(pool).chains) == fewest(sorted(spelled_once(pool), key=repr), is_chain)


@given(st.lists(st.builds(TimeWindow, st.integers(1, 30), st.integers(1, 12)), max_size=120))
def test_a_cover_comes_with_as_many_windows_of_which_no_two_nest(pool: list[TimeWindow]) -> None:
    cover = minimum_cover(pool)
    assert all(map(is_chain, cover.chains))
    assert sorted(map(repr, (w for chain in cover.chains for w in chain))) == sorted(map(repr, set(pool)))
    assert len(cover.antichain) == len(cover.chains)
    assert not any(nests(a, b) or nests(b, a) for a, b in combinations(cover.antichain, 2))


@pytest.mark.parametrize("suitability", Suitability)
@given(steps=changes)
def test_groups_stay_sound_whoever_joins_and_leaves(suitability: Suitability, steps: list[TimeWindow | int]) -> None:
    grouping = WindowGroups(suitability)
    registered: dict[str, TimeWindow] = {}
    for number, step in enumerate(steps):
        if isinstance(step, TimeWindow):
            registered[f"q{number}"] = replace(step, offset=step.offset % step.slide)
            grouping.embed(f"q{number}", step)
        elif registered:
            query = list(registered)[step % len(registered)]
            del registered[query]
            grouping.revoke(query)
        for group in grouping.groups:
            assert_sound(group)
        assert_books_agree(grouping, registered)
    carriers = {w for group in grouping.groups for w in group.chain}
    assert carriers == set(collapse(registered.values()).carriers)
    assert len(list(grouping.groups)) >= len(minimum_groups(registered.values()))


@pytest.mark.parametrize("partition", PARTITIONS)
@given(pool=pools, steps=changes)
def test_groups_that_were_built_at_once_stay_sound_too(
    partition: Callable[[Sequence[TimeWindow]], list[Grouped]], pool: list[TimeWindow], steps: list[TimeWindow | int]
) -> None:
    queries = {f"p{i}": window for i, window in enumerate(pool)}
    grouping = WindowGroups.of(queries, partition)
    assert_books_agree(grouping, {q: canonical(w) for q, w in queries.items()})
    assert sorted(map(sorted, ([repr(w) for w in g] for g in grouped(grouping)))) == sorted(
        map(sorted, ([repr(w) for w in g] for g in partition(pool)))
    )
    after(steps, grouping)
    for group in grouping.groups:
        assert_sound(group)
    assert_books_agree(grouping, dict(grouping.queries))


@given(changes, windows)
def test_a_new_group_is_opened_only_where_no_group_can_take_the_window(
    steps: list[TimeWindow | int], window: TimeWindow
) -> None:
    grouping = after(steps, WindowGroups())
    before = grouped(grouping)
    numbers = {group.number for group in grouping.groups}
    embedding = grouping.embed("new", window)
    if embedding.group.number not in numbers:
        assert not any(is_group([*group, embedding.window]) for group in before)


@given(changes, windows)
def test_whoever_steps_down_rides_on_the_window_that_came(steps: list[TimeWindow | int], window: TimeWindow) -> None:
    grouping = after(steps, WindowGroups())
    carriers = {w for group in grouping.groups for w in group.chain}
    embedding = grouping.embed("new", window)
    assert carriers - {w for group in grouping.groups for w in group.chain} == set(embedding.stepped_down)
    assert embedding.role is embedding.group.role(embedding.window)
    assert all(embedding.group.carrier(w) == embedding.window for w in embedding.stepped_down)


@given(changes, st.integers(0, 1000))
def test_a_revocation_says_who_takes_over(steps: list[TimeWindow | int], pick: int) -> None:
    grouping = after(steps, WindowGroups())
    if not grouping.queries:
        return
    query = list(grouping.queries)[pick % len(grouping.queries)]
    window, group = grouping.window_of(query), grouping.group_of(query)
    role, chain, members = group.role(window), list(group.chain), len(group.members[window])
    riders = list(group.riders.get(window, ()))
    revocation = grouping.revoke(query)
    assert (revocation.window, revocation.role, revocation.members_left) == (window, role, members - 1)
    if members > 1 or role is Role.PIGGYBACKED:
        assert revocation == Revocation(window, members - 1, role)
        assert group.chain == chain
        return
    at = chain.index(window)
    if revocation.promoted is None:
        assert group.chain == chain[:at] + chain[at + 1 :]
        assert revocation.delegate == next(iter(chain[at + 1 :]), None)
        assert set(revocation.resettled) == set(riders)
    else:
        assert group.chain == [*chain[:at], revocation.promoted, *chain[at + 1 :]]
        assert revocation.delegate is None
        assert set(revocation.resettled) | {revocation.promoted, *group.riders[revocation.promoted]} >= set(riders)
    assert revocation.new_seed == (group.seed if role is Role.SEED and group.chain else None)
    assert all(rider in grouping.group_of(q).members for rider in riders for q in _queries_of(grouping, rider))


def _queries_of(grouping: WindowGroups, window: TimeWindow) -> list[str]:
    return [query for query, own in grouping.queries.items() if own == window]


@given(changes, st.lists(st.integers(-100, 100), min_size=1, max_size=10))
def test_the_windows_due_are_those_whose_report_times_hold_tau(steps: list[TimeWindow | int], taus: list[int]) -> None:
    grouping = after(steps, WindowGroups())
    registered = set(grouping.queries.values())
    for tau in taus:
        found = due(grouping.groups, tau)
        assert len(found) == len(set(found))
        assert set(found) == {w for w in registered if (tau - w.offset) % w.slide == 0}
        assert bool(found) == any((tau - w.offset) % w.slide == 0 for w in seeds(grouping.groups))


@given(changes, st.lists(st.integers(-200, 200)))
def test_the_timetable_has_the_report_times_of_the_windows_that_stay(
    steps: list[TimeWindow | int], taus: list[int]
) -> None:
    timetable, here = Timetable(), list[TimeWindow]()
    for step in steps:
        if isinstance(step, TimeWindow):
            here.append(canonical(step))
            timetable.add(here[-1])
        elif here:
            timetable.remove(here.pop(step % len(here)))
            timetable.grids()
    assert all(is_chain(group.chain) for group in timetable.groups)
    for tau in taus:
        reports = any((tau - window.offset) % window.slide == 0 for window in here)
        assert any(grid.at_or_after(tau) == tau for grid in timetable.grids()) == reports


@given(changes)
def test_every_query_is_marked_once_in_the_drawing_of_its_group(steps: list[TimeWindow | int]) -> None:
    grouping = after(steps, WindowGroups())
    for query in grouping.queries:
        title, *bars, _ = draw(grouping.group_of(query), query).splitlines()
        assert title.startswith(f"group {grouping.group_of(query).number}: ")
        assert [bar.endswith(f" ◀ {query}") for bar in bars].count(True) == 1
        lengths = [len(bar.split("  RANGE")[0].strip()) for bar in bars if "RANGE" in bar]
        assert lengths == sorted(lengths)
