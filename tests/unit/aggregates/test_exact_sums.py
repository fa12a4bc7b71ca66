"""The exact arithmetic under the sums: one spelling for every number, and one rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates import rationals
from stairwise.aggregates.limbs import Accumulator
from stairwise.aggregates.rounding import nearest, quotient, to_double

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NEAR_ONE = st.builds(lambda e, k: float(np.ldexp(1 + k * 2.0**-52, e)), st.integers(-30, 30), st.integers(0, 5))
SIGNED = st.builds(lambda x, negative: -x if negative else x, NEAR_ONE, st.booleans())
SMALL = st.builds(lambda k, e: float(np.ldexp(k, e)), st.integers(-9, 9), st.integers(-110, 5))


def digits(values: list[float]) -> list[dict[str, int]]:
    total = Accumulator(1)
    total.add_doubles(np.array(values), np.zeros(len(values), np.int64))
    return total.to_lists()[0].as_py()  # type: ignore[no-any-return]


def test_digits_are_balanced_and_zeros_are_left_out() -> None:
    assert digits([1234.5]) == [{"limb": -1, "digit": -(2**31)}, {"limb": 0, "digit": 1235}]
    assert digits([2.0**64, -1.0]) == [{"limb": 0, "digit": -1}, {"limb": 2, "digit": 1}]
    assert digits([1.0, -1.0]) == []


@given(values=st.lists(FINITE, max_size=30), order=st.randoms())
def test_a_sum_has_one_spelling_whatever_the_order(values: list[float], order: object) -> None:
    shuffled = list(values)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digits(values) == digits(shuffled)
    exact = sum((d["digit"] * Fraction(2) ** (32 * d["limb"]) for d in digits(values)), Fraction(0))
    assert exact == sum(map(Fraction, values), Fraction(0))


@given(pairs=st.lists(st.tuples(FINITE, FINITE), max_size=20))
def test_products_are_added_exactly(pairs: list[tuple[float, float]]) -> None:
    total = Accumulator(2)
    left, right = (np.array([p[i] for p in pairs], np.float64) for i in (0, 1))
    total.add_products(left, right, np.ones(len(pairs), np.int64))
    sums = rationals.sums(total.to_lists())
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    assert sums.digits[0] == 0
    assert sums.digits[1] * Fraction(2) ** sums.exponent == exact


@given(values=st.lists(st.one_of(FINITE, SIGNED, SMALL), max_size=12))
def test_the_nearest_double_is_that_of_the_exact_sum(values: list[float]) -> None:
    total = Accumulator(3)
    total.add_doubles(np.array(values, np.float64), np.full(len(values), 1))
    assert nearest(total.to_lists()).tolist() == [0.0, to_double(sum(map(Fraction, values), Fraction(0))), 0.0]


@given(
    rows=st.lists(
        st.tuples(st.lists(st.one_of(SIGNED, SMALL), min_size=4, max_size=4), st.integers(1, 20)),
        min_size=1,
        max_size=9,
    )
)
def test_a_quotient_of_pairs_of_doubles_is_rounded_once(rows: list[tuple[list[float], int]]) -> None:
    def exactly(row: int) -> Fraction:
        terms, divisor = rows[row]
        return sum(map(Fraction, terms), Fraction(0)) / divisor

    terms = [np.array([r[0][i] for r in rows]) for i in range(4)]
    divisors, none = np.array([r[1] for r in rows]), np.zeros(len(rows), np.int64)
    found = quotient(terms, divisors, none, np.ones(len(rows), np.bool_), exactly)
    assert found.tolist() == [to_double(exactly(row)) for row in range(len(rows))]


@pytest.mark.parametrize("groups", [1, 1000])
def test_rows_beyond_what_a_double_can_count_are_added_in_parts(groups: int) -> None:
    """More than 2^20 rows of the largest digit."""
    count = 2**20 + 2**18
    total = Accumulator(groups)
    total.add_doubles(np.full(count, 2.0**32 - 1 + 2.0**-20), np.zeros(count, np.int64))
    sums = rationals.sums(total.to_lists())
    assert sums.digits[0] * Fraction(2) ** sums.exponent == count * (2**32 - 1 + Fraction(1, 2**20))


def test_sums_of_different_shapes_are_combined() -> None:
    parts = [[1e300, 1.0], [-1e300], [], [2.0**40, 0.5], [3.0]]
    total = Accumulator(1)
    lists = [Accumulator(1) for _ in parts]
    for accumulator, values in zip(lists, parts, strict=True):
        accumulator.add_doubles(np.array(values), np.zeros(len(values), np.int64))
    total.add_lists(pa.concat_arrays([a.to_lists() for a in lists]), np.zeros(len(parts), np.int64))
    assert nearest(total.to_lists()).tolist() == [2.0**40 + 4.5]
