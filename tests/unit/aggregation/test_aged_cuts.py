"""Slices by age: which cuts are still asked for, and what is left of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregation.aged_cuts import aged_cuts
from stairwise.aggregation.operator import SharedAggregation
from stairwise.operators.due import Due, frames_of
from stairwise.plan.signature import signature_of
from stairwise.reports.contract import Life
from stairwise.schema import DAWN, DUSK
from stairwise.state.pages import from_page
from stairwise.state.store import MemoryStore
from stairwise.windows.spec import TimeWindow
from tests.property.shared import batch_of
from tests.property.test_sharing import declared

windows = st.builds(TimeWindow, st.integers(1, 40), st.integers(1, 12), st.integers(0, 9), st.integers(0, 11))
lives = st.builds(Life, st.just(DAWN), st.just(DUSK), st.one_of(st.just(DAWN), st.integers(60, 100)))


@given(st.lists(st.tuples(windows, lives), min_size=1, max_size=5), st.integers(100, 130))
def test_a_cut_is_asked_for_as_long_as_a_report_to_come_has_an_edge_there(
    asked: list[tuple[TimeWindow, Life]], watermark: int
) -> None:
    due = Due()
    edges = set()
    for window, life in asked:
        due.add(window, life)
        for time in range(watermark + 1, watermark + 120):
            if (time - window.offset) % window.slide == 0:
                front = time - window.lag
                edges |= {front, max(front - window.range, life.horizon)} if front > life.horizon else set()
    found = aged_cuts(due.layout).at_or_after(np.arange(watermark), watermark)
    for instant, cut in enumerate(found.tolist()):
        assert cut <= min(edge for edge in edges if edge >= instant)  # what is kept beyond need does no harm


@pytest.mark.parametrize(
    ("joins", "horizon"),
    [
        (TimeWindow(60, 20), 960),  # the next rear of its like
        (TimeWindow(40, 20), 960),
        (TimeWindow(100, 40), 960),
        (TimeWindow(4, 2), 960),  # it does not reach so far: nothing that it asks for is gone
        (TimeWindow(30, 2), 998),  # rears every 2 are there as far as RANGE 4 reaches
        (TimeWindow(60, 20, lag=7), 1003),  # nobody else has its edges
        (TimeWindow(9, 3), 1003),
    ],
)
def test_a_query_that_joins_sees_back_to_the_oldest_cut_from_which_on_all_its_edges_are_asked_for(
    joins: TimeWindow, horizon: int
) -> None:
    due = Due()
    due.add(TimeWindow(60, 20), Life())
    due.add(TimeWindow(4, 2), Life())
    assert aged_cuts(due.layout).horizon(frames_of(joins), 1_000, 1_003, DAWN) == horizon


def test_the_levels_of_a_window_keep_what_each_asks_for_and_no_more() -> None:
    window = "RANGES 1 HOUR, 10 MINUTES, 1 MINUTE SLIDES 5 MINUTES, 1 MINUTE, 1 SECOND"
    stream, queries = declared([(window, "SUM(x)")], "")
    signature = signature_of(queries[0])
    assert signature is not None
    store = MemoryStore()
    operator = SharedAggregation(signature, queries, store)
    for minute in range(150):
        first = 60 * minute
        operator.insert(batch_of(stream, [(1_000 * (first + s), "a", 1, None) for s in range(60)], first))
        list(operator.advance(1_000 * (first + 59) - 4))
        operator.flush()
    granules = 60 + 9 + 10  # of seed 003, instead of 3,600 seconds
    kept = sum(from_page(page).num_rows for _, page in store.scan(b"c"))
    assert len(operator._slices.ends) <= kept <= 2 * granules
    again = SharedAggregation(signature, queries, store)
    assert again._slices.ends.tolist() == operator._slices.ends.tolist()
