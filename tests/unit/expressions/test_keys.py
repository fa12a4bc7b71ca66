"""Rows ordered and grouped by their keys."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.order import sort_indices


def test_null_comes_first_nan_last_and_both_zeros_are_equal() -> None:
    column = pa.array([math.nan, 1.0, None, -0.0, math.inf, 0.0, -math.inf])
    assert sort_indices([column]).tolist() == [2, 6, 3, 5, 1, 4, 0]


def test_strings_sort_by_their_utf8_bytes() -> None:
    column = pa.array(["é", "z", "Z", "😀", "", None, "ｱ"])
    assert sort_indices([column]).tolist() == [5, 4, 2, 1, 0, 6, 3]


def test_later_keys_decide_between_equal_earlier_ones() -> None:
    assert sort_indices([pa.array([1, 0, 1, None]), pa.array(["b", "a", None, "z"])]).tolist() == [3, 1, 2, 0]


def test_no_rows_have_an_order_and_no_groups() -> None:
    empty = pa.array([], pa.string())
    assert sort_indices([empty]).tolist() == []
    codes, first = encode([empty, pa.array([], pa.float64())])
    assert (codes.tolist(), first.tolist()) == ([], [])


def test_codes_count_keys_in_order_of_first_appearance() -> None:
    codes, first = encode([pa.array(["a", "b", "a", None, "b", None])])
    assert codes.dtype == np.int64
    assert codes.tolist() == [0, 1, 0, 2, 1, 2]
    assert first.tolist() == [0, 1, 3]


def test_nulls_nans_and_zeros_are_grouped_together() -> None:
    codes, _ = encode([pa.array([0.0, -0.0, math.nan, -math.nan, None, None])])
    assert codes.tolist() == [0, 0, 1, 1, 2, 2]


def test_several_keys_make_a_group_together() -> None:
    codes, first = encode([pa.array([1, 1, 2, 1]), pa.array(["x", "y", "x", "x"]), pa.array([True] * 4)])
    assert codes.tolist() == [0, 1, 2, 0]
    assert first.tolist() == [0, 1, 2]


def test_a_slice_is_encoded_as_the_rows_it_shows() -> None:
    codes, first = encode([pa.array(["x", "a", "b", "a"]).slice(1), pa.array([9, 1, 1, 1]).slice(1)])
    assert codes.tolist() == [0, 1, 0]
    assert first.tolist() == [0, 1]
