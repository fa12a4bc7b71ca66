"""Embedding and revoking one query after the other: the seed's examples, and where the seed goes wrong."""

from __future__ import annotations

import pytest

from stairwise.errors import AlreadyExistsError, NotFoundError
from stairwise.subsumption.group import Group, Role
from stairwise.subsumption.group_schedule import due, seeds
from stairwise.subsumption.grouping import Revocation, WindowGroups
from stairwise.subsumption.suitability import Suitability
from stairwise.windows.spec import TimeWindow


def scopes(group: Group) -> list[tuple[int, int]]:
    return [(w.range, w.slide) for w in group.windows()]


def grouped(grouping: WindowGroups) -> list[list[tuple[int, int]]]:
    return [scopes(group) for group in grouping.groups]


def embedded(*windows: tuple[int, int], suitability: Suitability = Suitability.NEAREST_SLIDE) -> WindowGroups:
    """Queries q0, q1, ... in this order."""
    grouping = WindowGroups(suitability)
    for number, (wide, slide) in enumerate(windows):
        grouping.embed(f"q{number}", TimeWindow(wide, slide))
    return grouping


def test_a_window_is_placed_between_the_two_that_it_nests_between() -> None:
    """The seed's example: k<21, 3> between p and y."""
    grouping = embedded((15, 3), (27, 6))
    embedding = grouping.embed("k", TimeWindow(21, 3))
    assert grouped(grouping) == [[(15, 3), (21, 3), (27, 6)]]
    assert embedding.role is Role.ENCLOSING


def test_the_window_before_must_nest_too() -> None:
    """The next wider window would do; the one before slides by 4."""
    grouping = embedded((10, 4), (30, 12))
    grouping.embed("k", TimeWindow(20, 6))
    assert grouped(grouping) == [[(10, 4), (30, 12)], [(20, 6)]]


def test_a_narrower_window_that_slides_more_coarsely_is_not_put_behind_a_wider_one() -> None:
    assert grouped(embedded((30, 3), (20, 6))) == [[(30, 3)], [(20, 6)]]


def test_a_narrower_window_with_an_aliquot_slide_is_the_new_seed() -> None:
    grouping = embedded((30, 6))
    assert grouping.embed("k", TimeWindow(20, 3)).role is Role.SEED
    assert grouped(grouping) == [[(20, 3), (30, 6)]]


def test_a_window_of_equal_range_and_multiple_slide_rides() -> None:
    grouping = embedded((10, 2), (20, 4))
    embedding = grouping.embed("u", TimeWindow(10, 6))
    assert embedding.role is Role.PIGGYBACKED
    assert embedding.group.carrier(embedding.window) == TimeWindow(10, 2)
    assert embedding.group.quotient(embedding.window) == 3
    assert embedding.group.chain == [TimeWindow(10, 2), TimeWindow(20, 4)]


def test_carriers_step_down_before_a_finer_window_of_their_range_wherever_they_are() -> None:
    grouping = embedded((10, 4), (10, 6), (10, 12))
    assert [group.chain for group in grouping.groups] == [[TimeWindow(10, 4)], [TimeWindow(10, 6)]]
    embedding = grouping.embed("d", TimeWindow(10, 2))
    assert embedding.stepped_down == (TimeWindow(10, 4), TimeWindow(10, 6))
    assert [group.chain for group in grouping.groups] == [[TimeWindow(10, 2)]]
    assert grouped(grouping) == [[(10, 2), (10, 4), (10, 6), (10, 12)]]


def test_queries_with_one_window_are_members_of_one_window() -> None:
    grouping = embedded((10, 2), (10, 2))
    grouping.embed("shifted", TimeWindow(10, 2, offset=4))
    (group,) = grouping.groups
    assert group.members == {TimeWindow(10, 2): {"q0": None, "q1": None, "shifted": None}}
    assert grouping.revoke("q0") == Revocation(TimeWindow(10, 2), 2, Role.SEED)
    assert grouped(grouping) == [[(10, 2)]]


def test_windows_that_lag_differently_never_share_a_group() -> None:
    grouping = embedded((10, 2))
    grouping.embed("late", TimeWindow(10, 2, lag=5))
    grouping.embed("later", TimeWindow(20, 4, lag=5))
    assert grouped(grouping) == [[(10, 2)], [(10, 2), (20, 4)]]


def test_the_base_slide_and_the_nearest_slide_choose_differently() -> None:
    pool = ((1, 2), (3, 12), (5, 3), (6, 12))
    assert grouped(embedded(*pool, suitability=Suitability.BASE_SLIDE)) == [[(1, 2), (3, 12)], [(5, 3), (6, 12)]]
    assert grouped(embedded(*pool)) == [[(1, 2), (3, 12), (6, 12)], [(5, 3)]]


def test_a_revoked_enclosing_window_delegates_to_the_next_one() -> None:
    grouping = embedded((10, 2), (20, 4), (30, 4))
    assert grouping.revoke("q1") == Revocation(TimeWindow(20, 4), 0, Role.ENCLOSING, delegate=TimeWindow(30, 4))
    assert grouped(grouping) == [[(10, 2), (30, 4)]]


def test_a_revoked_seed_is_replaced_by_the_finest_of_its_riders() -> None:
    """The seed's example: d is suspended and u takes over as the new seed."""
    grouping = embedded((10, 2), (10, 4), (10, 12), (20, 4))
    assert grouping.revoke("q0") == Revocation(
        TimeWindow(10, 2), 0, Role.SEED, promoted=TimeWindow(10, 4), new_seed=TimeWindow(10, 4)
    )
    assert grouped(grouping) == [[(10, 4), (10, 12), (20, 4)]]
    assert grouping.group_of("q2").carrier(TimeWindow(10, 12)) == TimeWindow(10, 4)


def test_an_orphan_that_does_not_fit_the_old_place_goes_elsewhere() -> None:
    """<10, 4> rode on <10, 2> before <12, 2>, which it cannot precede itself."""
    grouping = embedded((10, 2), (10, 4), (12, 2))
    assert grouping.revoke("q0") == Revocation(
        TimeWindow(10, 2),
        0,
        Role.SEED,
        delegate=TimeWindow(12, 2),
        new_seed=TimeWindow(12, 2),
        resettled=(TimeWindow(10, 4),),
    )
    assert grouped(grouping) == [[(12, 2)], [(10, 4)]]


def test_a_revoked_rider_leaves_nothing_behind() -> None:
    grouping = embedded((10, 2), (10, 4))
    assert grouping.revoke("q1") == Revocation(TimeWindow(10, 4), 0, Role.PIGGYBACKED)
    assert grouped(grouping) == [[(10, 2)]]


def test_a_group_ends_with_its_last_query() -> None:
    grouping = embedded((10, 2))
    grouping.revoke("q0")
    assert grouped(grouping) == []
    assert not grouping.queries


def test_names_are_taken_once_and_must_be_known() -> None:
    grouping = embedded((10, 2))
    with pytest.raises(AlreadyExistsError):
        grouping.embed("q0", TimeWindow(20, 2))
    with pytest.raises(NotFoundError, match="there is no query 'q'"):
        grouping.revoke("q")
    assert grouped(grouping) == [[(10, 2)]]


def test_a_group_whose_seed_is_not_due_is_passed_over() -> None:
    grouping = embedded((10, 2), (10, 6), (20, 4), (15, 3))
    assert [(w.range, w.slide) for w in due(grouping.groups, 4)] == [(10, 2), (20, 4)]
    assert [(w.range, w.slide) for w in due(grouping.groups, 6)] == [(10, 2), (10, 6), (15, 3)]
    assert due(grouping.groups, 5) == []


def test_the_seeds_stand_for_all_report_times() -> None:
    grouping = embedded((10, 2), (10, 6), (20, 4), (15, 3), (5, 2))
    assert {w.slide for w in seeds(grouping.groups)} == {2, 3}
