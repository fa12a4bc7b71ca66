"""Each aggregate in a case that can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from stairwise.aggregates.catalogue import algebra_for
from stairwise.aggregates.contract import Algebra, ItemAlgebra, Kind, Rows, SubtractableAlgebra, identity
from stairwise.errors import StairwiseError
from stairwise.expressions.tree import Aggregate, Field, Value
from stairwise.schema import Type

BIGINT, DOUBLE, STRING, BOOLEAN, HUGEINT = Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.HUGEINT


def call(
    function: str, over: Type | None, result: Type, parameter: float | None = None, distinct: bool = False
) -> Aggregate:
    return Aggregate(function, (Field(0, "x", over),) if over else (), result, distinct, parameter)


def lift(spec: Aggregate, values: Sequence[Value], codes: Sequence[int], groups: int) -> pa.RecordBatch:
    count = len(values)
    rows = Rows(np.arange(count) * 1000, np.zeros(count, np.int32), np.arange(count))
    args = [pa.array(values, spec.args[0].type.arrow)] if spec.args else []
    return algebra_for(spec).lift(args, rows, np.array(codes, np.int64), groups)


def answer(spec: Aggregate, values: Sequence[Value], at: int = 0) -> Value:
    """Of one group."""
    column = algebra_for(spec).lower(lift(spec, values, [0] * len(values), 1), at)
    assert column.type == spec.type.arrow
    return column[0].as_py()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("spec", "values", "expected"),
    [
        (call("COUNT", None, BIGINT), [1, None, 3], 3),
        (call("COUNT", BIGINT, BIGINT), [1, None, 3], 2),
        (call("COUNT", STRING, BIGINT, distinct=True), ["a", "b", None, "a"], 2),
        (call("COUNT", DOUBLE, BIGINT, distinct=True), [0.0, -0.0, math.nan, math.nan], 2),
        (call("SUM", BIGINT, HUGEINT), [2**63 - 1] * 3, Decimal(3 * (2**63 - 1))),
        (call("SUM", BIGINT, HUGEINT), [None], None),
        (call("SUM", BIGINT, HUGEINT, distinct=True), [5, 5, 7], Decimal(12)),
        (call("AVG", BIGINT, DOUBLE), [2**53, 2**53 + 1], 2.0**53),
        (call("SUM", DOUBLE, DOUBLE), [1e300, 1.0, -1e300], 1.0),
        (call("SUM", DOUBLE, DOUBLE), [0.1] * 10, 1.0),
        (call("SUM", DOUBLE, DOUBLE), [1.7976931348623157e308] * 2, math.inf),
        (call("SUM", DOUBLE, DOUBLE), [1.7976931348623157e308] * 2 + [-1.7976931348623157e308], 1.7976931348623157e308),
        (call("SUM", DOUBLE, DOUBLE), [5e-324, 5e-324], 1e-323),
        (call("SUM", DOUBLE, DOUBLE), [math.inf, 1.0], math.inf),
        (call("SUM", DOUBLE, DOUBLE), [], None),
        (call("AVG", DOUBLE, DOUBLE), [1.7976931348623157e308] * 2, 1.7976931348623157e308),
        (call("AVG", DOUBLE, DOUBLE), [5e-324, 0.0], 0.0),
        (call("AVG", DOUBLE, DOUBLE), [5e-324, 1e-323], 1e-323),
        (call("MIN", STRING, STRING), ["b", "é", None, "Z"], "Z"),
        (call("MAX", STRING, STRING), ["b", "é", None, "Z"], "é"),
        (call("MIN", DOUBLE, DOUBLE), [math.nan, 3.0], 3.0),
        (call("MIN", BIGINT, BIGINT), [2**63 - 1], 2**63 - 1),
        (call("MAX", BOOLEAN, BOOLEAN), [False, True, None], True),
        (call("FIRST", BIGINT, BIGINT), [None, 2, 3], None),
        (call("LAST", BIGINT, BIGINT), [None, 2, 3], 3),
        (call("VARIANCE", BIGINT, DOUBLE), [1, 2, 3, 4], 5 / 3),
        (call("VARIANCE", DOUBLE, DOUBLE), [1e15 + 0.5, 1e15, 1e15 - 0.5], 0.25),
        (call("STDDEV", BIGINT, DOUBLE), [1, 3], math.sqrt(2.0)),
        (call("VARIANCE", BIGINT, DOUBLE), [7, None], None),
        (call("VARIANCE", DOUBLE, DOUBLE), [1.0, math.inf], math.nan),
        (call("VARIANCE", DOUBLE, DOUBLE), [1e300, -1e300], math.inf),
        (call("QUANTILE", BIGINT, DOUBLE, 0.5), [40, 10, 20, 80], 30.0),
        (call("QUANTILE", DOUBLE, DOUBLE, 0.1), [float(i) for i in range(11)], 1.0),
        (call("QUANTILE", DOUBLE, DOUBLE, 1.0), [1.0, math.nan], math.nan),
        (call("QUANTILE", DOUBLE, DOUBLE, 0.5), [None], None),
        (call("APPROX_COUNT_DISTINCT", STRING, BIGINT), ["a", "b", "a", None, ""], 3),
    ],
)
def test_the_answer_of_one_group(spec: Aggregate, values: list[Value], expected: Value) -> None:
    assert repr(answer(spec, values)) == repr(expected)


def test_both_infinities_or_a_nan_make_a_sum_nan() -> None:
    spec = call("SUM", DOUBLE, DOUBLE)
    assert math.isnan(answer(spec, [math.inf, -math.inf]))  # type: ignore[arg-type]
    assert math.isnan(answer(spec, [math.inf, math.nan]))  # type: ignore[arg-type]


def test_the_line_through_the_values_is_given_per_second_and_at_the_report_time() -> None:
    """Rows stand a second apart from 0, and rise by 2 a second from 10."""
    values: list[Value] = [10.0, 12.0, None, 16.0]
    assert answer(call("REGR_SLOPE", DOUBLE, DOUBLE), values, at=60_000) == 2.0
    assert answer(call("REGR_INTERCEPT", DOUBLE, DOUBLE), values, at=60_000) == 130.0
    assert answer(call("REGR_SLOPE", BIGINT, DOUBLE), [5]) is None


def test_first_and_last_follow_the_order_of_the_stream_not_that_of_arrival() -> None:
    rows = Rows(np.array([5, 3, 3, 5]), np.array([0, 1, 0, 0], np.int32), np.array([7, 1, 9, 8]))
    values = [pa.array(["a", "b", "c", "d"])]
    for function, expected in (("FIRST", "c"), ("LAST", "d")):
        algebra = algebra_for(call(function, STRING, STRING))
        partial = algebra.lift(values, rows, np.zeros(4, np.int64), 1)
        assert algebra.lower(partial, 0).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (call("TOP", STRING, STRING, 2), [("b", 3), ("a", 2)]),
        (call("FREQUENT", STRING, STRING, 0.2), [("b", 3), ("a", 2), ("d", 2)]),
        (call("FREQUENT", STRING, STRING, 0.375), []),
        (call("RECURRING", STRING, STRING), [("b", 3), ("a", 2), ("d", 2), ("c", 1)]),
    ],
)
def test_items_come_by_count_then_value(spec: Aggregate, expected: list[tuple[str, int]]) -> None:
    values: list[Value] = ["d", "b", "a", "b", None, "c", "a", "d", "b"]
    algebra = algebra_for(spec)
    assert isinstance(algebra, ItemAlgebra)
    found = algebra.items(lift(spec, values, [0] * len(values), 1), 0)
    assert list(zip(found.item.to_pylist(), found.count.to_pylist(), strict=True)) == expected


EVERY = [
    call("COUNT", None, BIGINT),
    call("SUM", BIGINT, HUGEINT),
    call("AVG", DOUBLE, DOUBLE),
    call("MIN", STRING, STRING),
    call("LAST", BOOLEAN, BOOLEAN),
    call("STDDEV", DOUBLE, DOUBLE),
    call("QUANTILE", BIGINT, DOUBLE, 0.9),
    call("COUNT", STRING, BIGINT, distinct=True),
    call("REGR_SLOPE", BIGINT, DOUBLE),
    call("APPROX_QUANTILE", DOUBLE, DOUBLE, 0.5),
    call("APPROX_COUNT_DISTINCT", STRING, BIGINT),
    call("TOP", STRING, STRING, 3),
]
SOME: dict[Type, list[Value]] = {
    BIGINT: [3, None, -(2**63), 9, 9, 2**62],
    DOUBLE: [1.5, None, 1e300, -0.0, 0.1, 7.25],
    STRING: ["é", None, "b", "", "b", "zz"],
    BOOLEAN: [True, None, False, False, True, True],
}


def some(spec: Aggregate) -> list[Value]:
    return SOME[spec.args[0].type if spec.args else BIGINT]


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.function)
def test_a_group_without_rows_is_the_identity(spec: Aggregate) -> None:
    algebra = algebra_for(spec)
    partial = lift(spec, some(spec), [2, 2, 2, 0, 0, 0], 4)
    assert partial.slice(1, 1).equals(identity(algebra, 1))
    together = algebra.combine(pa.concat_batches([partial, identity(algebra, 4)]), np.tile(np.arange(4), 2), 4)
    assert together.equals(partial)
    assert (algebra.lower(identity(algebra, 1), 0)[0].as_py() or 0) == 0


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.function)
def test_there_may_be_no_groups_at_all(spec: Aggregate) -> None:
    algebra = algebra_for(spec)
    nothing = lift(spec, [], [], 0)
    assert nothing.num_rows == 0
    assert algebra.combine(nothing, np.empty(0, np.int64), 0).equals(nothing)
    assert len(algebra.lower(nothing, 0)) == 0


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.function)
def test_slices_of_partials_and_bytes_read_back_are_partials(spec: Aggregate) -> None:
    algebra = algebra_for(spec)
    partial = lift(spec, some(spec), [0, 1, 1, 2, 2, 3], 4)
    read = pa.ipc.read_record_batch(partial.serialize(), partial.schema)
    assert algebra.lower(read, 0).equals(algebra.lower(partial, 0))
    part = partial.slice(1, 2)
    assert algebra.lower(part, 0).equals(algebra.lower(partial, 0).slice(1, 2))
    copy = pa.concat_batches([part.slice(0, 1), part.slice(1)])
    assert algebra.combine(part, np.array([1, 0]), 2).equals(algebra.combine(copy, np.array([1, 0]), 2))
    if isinstance(algebra, SubtractableAlgebra):
        assert algebra.subtract(part, part).equals(identity(algebra, 2))


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.function)
def test_a_slice_of_a_column_lifts_as_the_rows_it_shows(spec: Aggregate) -> None:
    algebra = algebra_for(spec)
    values, codes = some(spec), np.array([0, 1, 0, 1])
    rows = Rows(np.arange(4), np.zeros(4, np.int32), np.arange(4))
    args = [pa.array(values, spec.args[0].type.arrow)] if spec.args else []
    shown = [pa.array(values[2:], arg.type) for arg in args]
    sliced = algebra.lift([arg.slice(2) for arg in args], rows, codes, 2)
    assert sliced.equals(algebra.lift(shown, rows, codes, 2))


@pytest.mark.parametrize("spec", EVERY, ids=lambda s: s.function)
def test_every_algebra_says_what_it_is(spec: Aggregate) -> None:
    algebra: Algebra = algebra_for(spec)
    assert isinstance(algebra.kind, Kind)
    assert algebra == algebra_for(spec)
    assert algebra.subtractable == isinstance(algebra, SubtractableAlgebra)


def test_sum_and_average_share_a_partial() -> None:
    total, average = algebra_for(call("SUM", DOUBLE, DOUBLE)), algebra_for(call("AVG", DOUBLE, DOUBLE))
    assert total.family == average.family
    assert total.state == average.state


def test_distinct_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(StairwiseError, match="FIRST does not take DISTINCT"):
        algebra_for(call("FIRST", BIGINT, BIGINT, distinct=True))


@pytest.mark.parametrize("count", [1_000, 10_000, 200_000])
@pytest.mark.parametrize("over", [BIGINT, DOUBLE, STRING])
def test_many_distinct_values_are_counted_within_three_standard_errors(count: int, over: Type) -> None:
    spec = call("APPROX_COUNT_DISTINCT", over, BIGINT)
    numbers = np.arange(count) * 7
    column = pa.array(numbers).cast(over.arrow)
    algebra = algebra_for(spec)
    partial = algebra.lift([column], Rows(numbers, numbers, numbers), np.zeros(count, np.int64), 1)
    assert algebra.lower(partial, 0)[0].as_py() == pytest.approx(count, rel=3 * 1.04 / 64)
