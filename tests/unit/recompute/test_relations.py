"""The relational algebra over many cells at once: differences of bags, duplicates, joins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.expressions.ranges import expand_ranges
from stairwise.recompute.cell_join import match
from stairwise.reports.cells import Cells, distinct
from stairwise.reports.multisets import copy_number, difference

ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), max_size=12)
Rows = list[tuple[int, str | None]]


def cells(rows: Rows) -> Cells:
    of = np.array([cell for cell, _ in rows], np.int64)
    return Cells(of, pa.RecordBatch.from_arrays([pa.array([v for _, v in rows], pa.string())], names=["v"]))


def listed(found: Cells) -> Rows:
    return list(zip(found.of.tolist(), found.rows.column(0).to_pylist(), strict=True))


@given(ROWS, ROWS)
def test_difference_is_that_of_multisets_cell_by_cell(left: Rows, right: Rows) -> None:
    here, there = difference(cells(left), cells(right))
    assert Counter(listed(cells(left).keep(here))) == Counter(left) - Counter(right)
    assert Counter(listed(cells(right).keep(there))) == Counter(right) - Counter(left)


@given(ROWS)
def test_distinct_keeps_each_row_once_in_its_cell(rows: Rows) -> None:
    assert listed(distinct(cells(rows))) == list(dict.fromkeys(rows))


def test_of_equal_rows_the_first_ones_meet() -> None:
    stays, _ = difference(cells([(0, "a"), (0, "b"), (0, "a")]), cells([(0, "a")]))
    assert stays.tolist() == [False, True, True]


def test_copies_are_numbered_in_their_order() -> None:
    assert copy_number(np.array([1, 0, 1, 1, 0])).tolist() == [0, 0, 1, 2, 1]


@given(ROWS, ROWS)
def test_match_pairs_equal_keys_of_one_cell_and_never_null(left: Rows, right: Rows) -> None:
    one, other = cells(left), cells(right)
    at, there = match(one.of, [one.rows.column(0)], other.of, [other.rows.column(0)])
    expected = Counter((i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b and a[1] is not None)
    assert Counter(zip(at.tolist(), there.tolist(), strict=True)) == expected


def test_ranges_are_laid_end_to_end() -> None:
    assert expand_ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]
