"""Definition 1 with lag and offset, and the batch algorithms on pools small enough to see."""

from __future__ import annotations

import pytest

from bench.minimum_cover import minimum_cover, minimum_groups
from stairwise.subsumption.relation import canonical, is_subsumable
from stairwise.subsumption.subsume import subsume_nearest, subsume_windows
from stairwise.windows.spec import TimeWindow


def windows(*scopes: tuple[int, int]) -> list[TimeWindow]:
    return [TimeWindow(wide, slide) for wide, slide in scopes]


@pytest.mark.parametrize(
    ("inner", "outer", "nests"),
    [
        (TimeWindow(4, 2), TimeWindow(8, 4), True),
        (TimeWindow(8, 4), TimeWindow(4, 2), False),
        (TimeWindow(4, 2), TimeWindow(4, 2), True),
        (TimeWindow(10, 2), TimeWindow(10, 4), True),
        (TimeWindow(4, 2), TimeWindow(8, 3), False),
        (TimeWindow(8, 2), TimeWindow(4, 4), False),
        (TimeWindow(24, 8), TimeWindow(32, 4), False),
        (TimeWindow(4, 2, lag=1), TimeWindow(8, 4, lag=1), True),
        (TimeWindow(4, 2, lag=1), TimeWindow(8, 4), False),
        (TimeWindow(4, 2), TimeWindow(8, 4, offset=1), False),
        (TimeWindow(4, 2, offset=1), TimeWindow(8, 4, offset=3), True),
        (TimeWindow(4, 4, offset=2), TimeWindow(8, 8, offset=2), True),
        (TimeWindow(4, 4, offset=2), TimeWindow(8, 8, offset=4), False),
    ],
)
def test_the_wider_window_whose_slide_is_a_multiple_encloses(inner: TimeWindow, outer: TimeWindow, nests: bool) -> None:
    assert is_subsumable(inner, outer) is nests


def test_offsets_that_differ_by_the_slide_spell_one_window() -> None:
    assert canonical(TimeWindow(9, 4, offset=6)) == canonical(TimeWindow(9, 4, offset=-2)) == TimeWindow(9, 4, offset=2)


def test_a_window_that_slides_more_finely_than_a_narrower_one_seeds_another_group() -> None:
    """The seed's example z<32, 4> after v<24, 8>."""
    assert subsume_windows(windows((20, 4), (24, 8), (32, 4))) == [windows((20, 4), (24, 8)), windows((32, 4))]


def test_the_sweep_prefers_the_group_with_the_greatest_base_slide() -> None:
    assert subsume_windows(windows((3, 1), (4, 6), (9, 6))) == [windows((3, 1), (4, 6), (9, 6))]
    assert subsume_windows(windows((3, 4), (4, 3), (9, 12))) == [windows((3, 4), (9, 12)), windows((4, 3))]


def test_a_rider_takes_no_place_in_the_chain() -> None:
    """<10, 4> and <10, 6> do not nest in each other, nor <12, 2> in either; all three go with <10, 2>."""
    pool = windows((10, 2), (10, 4), (10, 6), (12, 2))
    assert subsume_windows(pool) == subsume_nearest(pool) == minimum_groups(pool) == [pool]
    assert len(minimum_cover(pool).chains) == 3


def test_the_nearest_slide_leaves_room_that_the_base_slide_takes() -> None:
    """<6, 12> fits behind <3, 12> and behind <5, 3>; behind the latter it shuts <8, 6> out."""
    pool = windows((1, 2), (3, 12), (5, 3), (6, 12), (8, 6))
    assert subsume_windows(pool) == [windows((1, 2), (3, 12)), windows((5, 3), (6, 12)), windows((8, 6))]
    assert subsume_nearest(pool) == [windows((1, 2), (3, 12), (6, 12)), windows((5, 3), (8, 6))]


def test_the_minimum_takes_back_what_a_sweep_cannot() -> None:
    """<4, 12> follows the nearer slide of <3, 3>, and only then comes <6, 3>."""
    pool = windows((2, 2), (3, 3), (4, 12), (6, 3))
    assert subsume_nearest(pool) == [windows((2, 2)), windows((3, 3), (4, 12)), windows((6, 3))]
    assert minimum_groups(pool) == [windows((2, 2), (4, 12)), windows((3, 3), (6, 3))]
    assert minimum_cover(pool).antichain in (windows((2, 2), (3, 3)), windows((2, 2), (6, 3)), windows((4, 12), (6, 3)))


def test_an_empty_pool_has_no_groups() -> None:
    assert subsume_windows([]) == subsume_nearest([]) == minimum_groups([]) == []
    assert minimum_cover([]).antichain == []
