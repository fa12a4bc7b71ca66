"""Recurring items by bitmaps over nested windows are those that a look into every step finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates.contract import NO_ROWS
from stairwise.aggregates.items import Choice, ItemCounts
from stairwise.aggregates.recurrence import recurring

GROUPS = 3
ALGEBRA = ItemCounts(pa.int64(), Choice.RECURRING)

steps_drawn = st.lists(
    st.lists(st.tuples(st.integers(0, GROUPS - 1), st.none() | st.integers(-2, 2)), max_size=8), min_size=1, max_size=5
)
"""What each step adds: rows with a group and a value."""


def partial(rows: list[tuple[int, int | None]]) -> pa.RecordBatch:
    values = pa.array([value for _, value in rows], pa.int64())
    return ALGEBRA.lift([values], NO_ROWS, np.array([group for group, _ in rows], np.int64), GROUPS)


@given(steps_drawn)
def test_an_item_recurs_if_every_step_has_it_and_counts_over_all(steps: list[list[tuple[int, int | None]]]) -> None:
    nested = [partial([row for step in steps[: i + 1] for row in step]) for i in range(len(steps))]
    expected = [
        [
            {"item": item, "count": sum(step.count((group, item)) for step in steps)}
            for item in range(-2, 3)
            if all((group, item) in step for step in steps)
        ]
        for group in range(GROUPS)
    ]
    assert recurring(ALGEBRA, nested).column(0).to_pylist() == expected
