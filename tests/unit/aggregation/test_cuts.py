"""Slices end at the edges that windows can have."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregation.cuts import Cuts, Eras, cuts_at, edges_of
from stairwise.schema import DAWN
from stairwise.windows.spec import TimeWindow

windows = st.builds(
    TimeWindow, st.integers(1, 40), st.integers(1, 15), st.integers(0, 9), st.integers(0, 20)
) | st.builds(TimeWindow, st.integers(1, 10**7), st.integers(10**6, 10**7), st.integers(0, 9), st.integers(0, 20))
times = st.lists(st.integers(-(10**8), 10**8) | st.integers(-50, 50), min_size=1, max_size=30)


def cuts_of(pool: list[TimeWindow]) -> Cuts:
    return cuts_at(edge for window in pool for edge in edges_of(window))


@given(st.lists(windows, min_size=1, max_size=6), times)
def test_every_front_and_rear_is_a_cut_and_rows_go_to_the_next_one(pool: list[TimeWindow], at: list[int]) -> None:
    cuts = cuts_of(pool)
    ends = cuts.ends(np.array(at))
    assert ends.tolist() == [cuts.end(t) for t in at]
    assert (ends >= np.array(at)).all()
    for window in pool:
        tau = at[0] + (window.offset - at[0]) % window.slide
        for edge in (tau - window.lag, tau - window.lag - window.range):
            assert cuts.end(edge) == edge


@given(st.lists(windows, min_size=1, max_size=3), st.lists(windows, min_size=1, max_size=3), times)
def test_other_cuts_hold_above_their_beginning_which_is_a_cut(
    before: list[TimeWindow], after: list[TimeWindow], at: list[int]
) -> None:
    eras = Eras()
    eras.change(cuts_of(before), DAWN)
    begin = eras.end(0)
    eras.change(cuts_of(after), begin)
    for t, end in zip(at, eras.ends(np.array(at)).tolist(), strict=True):
        rule = cuts_of(before if t <= begin else after)
        assert end == (min(rule.end(t), begin) if t <= begin else rule.end(t))
        assert eras.end(t) == end


def test_edges_far_apart_are_not_taken_for_a_grid() -> None:
    cuts = cuts_of([TimeWindow(10_000, 10_000), TimeWindow(10_000, 10_000, offset=1)])
    assert cuts.grid is None
    assert cuts.between(0, 20_001).tolist() == [1, 10_000, 10_001, 20_000, 20_001]
