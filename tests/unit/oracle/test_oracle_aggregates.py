"""The oracle's aggregates on values worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest

from stairwise.schema import Type
from tests.oracle.aggregates import Aggregate, Member, aggregate, items
from tests.oracle.expressions import Typed
from tests.oracle.values import Value

INF, NAN = math.inf, math.nan
ONLY_VALUE = Typed(Type.DOUBLE, lambda row: row[0])


def over(
    function: str,
    values: Sequence[Value],
    *,
    type_: Type = Type.DOUBLE,
    parameter: str = "0",
    distinct: bool = False,
    times: Sequence[int] | None = None,
    tau: int = 0,
) -> Value:
    spec = Aggregate(function, ONLY_VALUE, type_, distinct, Fraction(parameter))
    times = range(len(values)) if times is None else times
    return aggregate(spec, [Member((v,), t) for v, t in zip(values, times, strict=True)], tau)


def same(a: Value, b: Value) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or (a == b and type(a) is type(b))


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("SUM", [1e100, 1.0, -1e100], 1.0),
        ("SUM", [0.1] * 10, 1.0),
        ("SUM", [1.7e308, 1.7e308], INF),
        ("SUM", [1.7e308, 1.7e308, -1.7e308], 1.7e308),
        ("SUM", [INF, 1.0], INF),
        ("SUM", [INF, -INF], NAN),
        ("SUM", [NAN, INF], NAN),
        ("SUM", [None, None], None),
        ("AVG", [1.7e308, 1.7e308], 1.7e308),
        ("AVG", [1.0, None, 2.0], 1.5),
        ("AVG", [], None),
        ("MIN", [3.0, NAN, 1.0], 1.0),
        ("MAX", [3.0, NAN, 1.0], NAN),
        ("MIN", [None], None),
        ("VARIANCE", [1.0, 2.0, 3.0, 4.0], 5 / 3),
        ("VARIANCE", [1e16, 1e16 + 2], 2.0),
        ("VARIANCE", [1.0], None),
        ("VARIANCE", [1.0, INF], NAN),
        ("STDDEV", [1.0, 3.0], math.sqrt(2.0)),
        ("FIRST", [2.0, None], 2.0),
        ("FIRST", [None, 2.0], None),
        ("LAST", [1.0, 2.0], 2.0),
        ("LAST", [1.0, None], None),
        ("LAST", [], None),
        ("APPROX_COUNT_DISTINCT", [1.0, 1.0, 2.0, None], 2),
        ("COUNT", [1.0, None, NAN], 2),
    ],
)
def test_aggregates(function: str, values: list[Value], expected: Value) -> None:
    assert same(over(function, values), expected)


def test_tenths_add_up_because_rounding_comes_last() -> None:
    assert sum([0.1] * 10) != 1.0
    assert over("SUM", [0.1] * 10) == 1.0


def test_the_sum_of_bigints_outgrows_64_bits() -> None:
    assert over("SUM", [2**63 - 1] * 4, type_=Type.HUGEINT) == 4 * (2**63 - 1)


def test_count_distinct_knows_one_nan_and_one_zero() -> None:
    assert over("COUNT", [NAN, -NAN, 0.0, -0.0, None], distinct=True) == 2


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.5),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(i) for i in range(101)], 0.29, 29.0),
        ([1.0, 2.0], 0.25, 1.25),
        ([1.0, 2.0], 0.0, 1.0),
        ([1.0, 2.0], 1.0, 2.0),
        ([1.0, INF], 0.5, INF),
        ([-INF, INF], 0.5, NAN),
        ([-INF, -INF], 0.5, -INF),
        ([1.0, NAN], 0.5, NAN),
        ([], 0.5, None),
        ([7.0], 0.9, 7.0),
    ],
)
def test_quantiles_interpolate_between_neighbours(values: list[float], q: float, expected: Value) -> None:
    assert same(over("QUANTILE", values, parameter=str(q)), expected)


def test_a_line_is_fitted_against_seconds_before_the_report() -> None:
    """y = 5 + 2t at t = −3, −2, −1 seconds before τ = 10 s."""
    times, values = [7000, 8000, 9000], [-1.0, 1.0, 3.0]
    assert over("REGR_SLOPE", values, times=times, tau=10_000) == 2.0
    assert over("REGR_INTERCEPT", values, times=times, tau=10_000) == 5.0


def test_a_line_needs_two_different_times() -> None:
    assert over("REGR_SLOPE", [1.0, 2.0], times=[5, 5], tau=9) is None
    assert over("REGR_INTERCEPT", [1.0], times=[5], tau=9) is None
    assert same(over("REGR_SLOPE", [1.0, INF], times=[5, 6], tau=9), NAN)


def chosen(function: str, values: str, parameter: str) -> list[tuple[Value, int]]:
    spec = Aggregate(function, ONLY_VALUE, Type.STRING, parameter=Fraction(parameter))
    return items(spec, [Member((None if v == "-" else v,), 0) for v in values], steps=1)


def test_top_breaks_ties_by_item() -> None:
    assert chosen("TOP", "cabcab-", "2") == [("a", 2), ("b", 2)]
    assert chosen("TOP", "cabc", "9") == [("c", 2), ("a", 1), ("b", 1)]


def test_frequent_means_more_than_the_share() -> None:
    assert chosen("FREQUENT", "aaabbccccc--", "0.3") == [("c", 5)]
    assert chosen("FREQUENT", "aaabbccccc--", "0.29") == [("c", 5), ("a", 3)]
