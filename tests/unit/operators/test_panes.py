"""Panes are cut where windows can begin and end, and runs of them are taken from a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.operators import panes as panes_module
from stairwise.operators.build import operator_for
from stairwise.operators.expansion import Expansion
from stairwise.operators.panes import cut_of
from stairwise.operators.store import MemoryStore
from stairwise.schema import DUSK
from stairwise.windows.spec import TimeWindow
from tests.oracle import evaluate, from_json
from tests.unit.operators.feeding import batch, query_of, shown

WINDOWS = st.builds(
    lambda range_, slide, lag, offset: TimeWindow(range_, slide, lag, offset % slide),
    st.integers(1, 40),
    st.integers(1, 15),
    st.integers(0, 20),
    st.integers(0, 14),
)


@given(WINDOWS, st.integers(-50, 50), st.lists(st.integers(-120, 120), min_size=1))
def test_a_window_is_a_run_of_whole_panes(window: TimeWindow, number: int, times: list[int]) -> None:
    cut = cut_of(window)
    tau = number * window.slide + window.offset
    first, last = (int(bound[0]) for bound in cut.span(np.array([tau]), np.array([0])))
    panes = cut.pane_of(np.array(times))
    front = tau - window.lag
    inside = [front - window.range < t <= front for t in times]
    assert [first <= pane <= last for pane in panes.tolist()] == inside


@given(WINDOWS, st.lists(st.integers(-120, 120), min_size=1))
def test_a_pane_ends_with_its_last_instant(window: TimeWindow, times: list[int]) -> None:
    cut = cut_of(window)
    ends = cut.end_of(cut.pane_of(np.array(times)))
    assert (ends >= times).all()
    assert (cut.pane_of(ends) == cut.pane_of(np.array(times))).all()
    assert (cut.pane_of(ends + 1) == cut.pane_of(np.array(times)) + 1).all()


@pytest.mark.parametrize("flat", [1, 1000])
@pytest.mark.parametrize("window", ["RANGE 37s SLIDE 1s", "RANGE 64s SLIDE 2s", "RANGE 21s SLIDE 4s LAG 3s"])
def test_the_tree_gives_what_the_panes_give(flat: int, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes_module, "FLAT", flat)
    query = query_of(f"SELECT k, COUNT(*), SUM(x), MIN(d), LAST(x) FROM s [{window}] GROUP BY k")
    messages = [
        {"ts": 900 * i + i % 5 * 800, "k": "abc"[i * i % 3], "x": i, "d": i % 7 / 4} for i in range(200) if i % 40 < 25
    ]
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    lines = []
    for start in range(0, len(messages), 7):
        part = messages[start : start + 7]
        operator.insert(batch(query.streams[0], part, first=start))
        lines += shown(operator, expansion, part[0]["ts"] - 5000)
    lines += shown(operator, expansion, DUSK)
    rows = [from_json(query.streams[0], m, sequence=i) for i, m in enumerate(messages)]
    assert lines == evaluate(query, {"s": rows})
