"""Each window's scope on a timeline that fits on one line; seconds are written as S."""

from __future__ import annotations

import numpy as np
import pytest

from stairwise.schema import DAWN, DUSK
from stairwise.windows.scope import (
    LevelScope,
    Scope,
    due_levels,
    horizon_scope,
    horizon_steps,
    landmark_scope,
    level_scope,
    level_steps,
    partitioned_scope,
    retained,
    rows_scope,
    time_scope,
    time_scopes,
)
from stairwise.windows.spec import (
    LandmarkWindow,
    Level,
    MultiWindow,
    PartitionedWindow,
    RowsWindow,
    TimeWindow,
)

S = 1000
NESTED = MultiWindow((Level(4 * S, 1 * S), Level(8 * S, 2 * S), Level(16 * S, 4 * S)))


def test_a_time_window_excludes_its_rear_and_includes_its_front() -> None:
    scope = time_scope(TimeWindow(range=8 * S, slide=2 * S), 10 * S)
    assert scope == Scope(2 * S, 10 * S)
    assert 2 * S not in scope
    assert 2 * S + 1 in scope
    assert 10 * S in scope
    assert 10 * S + 1 not in scope


def test_a_lag_moves_both_bounds_back() -> None:
    assert time_scope(TimeWindow(8 * S, 2 * S, lag=3 * S), 10 * S) == Scope(-1 * S, 7 * S)


def test_a_horizon_cuts_the_rear_and_leaves_the_window_half_filled() -> None:
    window = TimeWindow(8 * S, 2 * S)
    assert time_scope(window, 10 * S, horizon=5 * S) == Scope(5 * S, 10 * S)
    assert time_scope(window, 14 * S, horizon=5 * S) == Scope(6 * S, 14 * S)


def test_a_window_wholly_behind_the_horizon_holds_nothing() -> None:
    scope = time_scope(TimeWindow(8 * S, 2 * S, lag=20 * S), 10 * S, horizon=5 * S)
    assert scope.is_empty
    assert scope.rows(np.array([-12 * S, 0, 6 * S])) == slice(2, 2)


def test_scopes_at_many_times_equal_those_at_each() -> None:
    window = TimeWindow(8 * S, 2 * S, lag=1 * S)
    taus = np.arange(0, 40 * S, 2 * S)
    rears, fronts = time_scopes(window, taus, horizon=3 * S)
    assert [Scope(*bounds) for bounds in zip(rears.tolist(), fronts.tolist(), strict=True)] == [
        time_scope(window, tau, 3 * S) for tau in taus.tolist()
    ]


def test_a_range_longer_than_time_itself_does_not_wrap_round() -> None:
    rears, _ = time_scopes(TimeWindow(2**63, 1), np.array([0, DUSK - 1]))
    assert rears.tolist() == [DAWN, -1]
    assert time_scope(TimeWindow(2**63, 1), 0) == Scope(DAWN, 0)


def test_rows_of_a_scope_are_a_slice_of_sorted_times_with_ties() -> None:
    times = np.array([1, 2, 2, 2, 3, 5, 5, 8])
    assert Scope(1, 3).rows(times) == slice(1, 5)
    assert Scope(2, 5).rows(times) == slice(4, 7)
    assert Scope(8, 9).rows(times) == slice(8, 8)
    assert Scope(DAWN, DUSK).rows(times) == slice(0, 8)


@pytest.mark.parametrize(
    ("start", "end", "tau", "first", "last"),
    [
        (5, None, 9, 5, 9),
        (None, 7, 6, DAWN + 1, 6),
        (None, 7, 9, DAWN + 1, 7),
        (5, 7, 6, 5, 6),
        (5, 7, 10, 5, 7),
    ],
)
def test_landmark_bounds_are_inclusive(start: int | None, end: int | None, tau: int, first: int, last: int) -> None:
    scope = landmark_scope(LandmarkWindow(start, end, slide=1), tau)
    assert (scope.rear + 1, scope.front) == (first, last)


def test_a_landmark_ahead_of_time_is_empty() -> None:
    assert landmark_scope(LandmarkWindow(5, None, slide=1), 4).is_empty


def test_retain_keeps_the_last_rows_of_a_landmark() -> None:
    assert retained(LandmarkWindow(5, None, 1, retain=3), slice(2, 10)) == slice(7, 10)
    assert retained(LandmarkWindow(5, None, 1, retain=3), slice(8, 10)) == slice(8, 10)
    assert retained(LandmarkWindow(5, None, 1), slice(2, 10)) == slice(2, 10)


def test_a_rows_window_holds_the_last_n_and_fewer_at_first() -> None:
    window = RowsWindow(rows=3, row_slide=1)
    assert rows_scope(window, 0) == slice(0, 0)
    assert rows_scope(window, 2) == slice(0, 2)
    assert rows_scope(window, 7) == slice(4, 7)


def test_a_rows_window_does_not_see_rows_below_the_horizon() -> None:
    window = RowsWindow(rows=3, row_slide=1)
    assert rows_scope(window, 7, visible=6) == slice(6, 7)
    assert rows_scope(window, 7, visible=9) == slice(7, 7)


def test_a_partitioned_window_holds_the_last_n_of_each_partition_in_stream_order() -> None:
    codes = np.array([0, 1, 0, 0, 2, 1, 0, 1])
    assert partitioned_scope(PartitionedWindow(("a",), 2, S), codes).tolist() == [3, 4, 5, 6, 7]
    assert partitioned_scope(PartitionedWindow(("a",), 9, S), codes).tolist() == list(range(8))
    assert partitioned_scope(PartitionedWindow(("a",), 2, S), codes[:0]).tolist() == []


def test_levels_report_when_their_slide_divides_the_time_finest_first() -> None:
    assert [due.level for due in due_levels(NESTED, 16 * S)] == [0, 1, 2]
    assert [due.level for due in due_levels(NESTED, 18 * S)] == [0, 1]
    assert due_levels(NESTED, 17 * S) == (LevelScope(0, Scope(13 * S, 17 * S)),)


def test_the_steps_of_a_level_are_disjoint_and_make_it_up() -> None:
    steps = level_steps(NESTED, 2, 20 * S)
    assert steps == (Scope(16 * S, 20 * S), Scope(12 * S, 16 * S), Scope(4 * S, 12 * S))
    assert level_scope(NESTED, 2, 20 * S) == Scope(steps[-1].rear, steps[0].front)


def test_steps_below_the_horizon_are_empty() -> None:
    steps = level_steps(NESTED, 2, 20 * S, horizon=14 * S)
    assert steps[:2] == (Scope(16 * S, 20 * S), Scope(14 * S, 16 * S))
    assert steps[2].is_empty


def test_a_continuous_horizon_is_one_scope_without_levels() -> None:
    window = MultiWindow(NESTED.levels, horizon=5 * S)
    assert horizon_scope(window, 17 * S) == Scope(12 * S, 17 * S)
    assert horizon_steps(window, 17 * S) == (Scope(13 * S, 17 * S), Scope(12 * S, 13 * S))
    with pytest.raises(ValueError, match="by levels"):
        horizon_scope(NESTED, 17 * S)
