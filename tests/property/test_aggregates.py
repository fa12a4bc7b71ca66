"""Every aggregate against its definition in exact fractions, and the laws that make partials shareable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates.catalogue import algebra_for
from stairwise.aggregates.contract import Algebra, ItemAlgebra, Rows, SubtractableAlgebra, identity
from stairwise.aggregates.sketches import RELATIVE_ERROR
from stairwise.expressions.tree import Aggregate, Const, Field
from stairwise.schema import Type
from tests.oracle import aggregates as oracle
from tests.oracle.aggregates import Member
from tests.oracle.expressions import Typed, literal
from tests.oracle.values import Value, canonical

NUMBERS = (Type.BIGINT, Type.DOUBLE)
ANY = (Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.TIMESTAMP)


def call(
    function: str, over: Type | None, result: Type | None = None, q: float | None = None, distinct: bool = False
) -> Aggregate:
    args = () if over is None else (Field(0, "x", over),)
    return Aggregate(function, args, result or over or Type.BIGINT, distinct, q)


def two(function: str, first: Type, second: Type, result: Type) -> Aggregate:
    return Aggregate(function, (Field(0, "x", first), Field(1, "y", second)), result)


def _sums(distinct: bool) -> list[Aggregate]:
    return [
        call("SUM", Type.BIGINT, Type.HUGEINT, distinct=distinct),
        call("SUM", Type.DOUBLE, distinct=distinct),
        *(call(f, t, Type.DOUBLE, distinct=distinct) for f in ("AVG", "VARIANCE", "STDDEV") for t in NUMBERS),
    ]


EXACT = [
    call("COUNT", None),
    *(call("COUNT", t, Type.BIGINT, distinct=d) for t in ANY for d in (False, True)),
    *_sums(distinct=False),
    *_sums(distinct=True),
    *(call(f, t) for f in ("MIN", "MAX", "FIRST", "LAST") for t in ANY),
    *(call("QUANTILE", t, Type.DOUBLE, q) for t in NUMBERS for q in (0.0, 0.1, 0.5, 0.95, 1.0, 1e-20)),
    *(call(f, t, Type.DOUBLE) for f in ("REGR_SLOPE", "REGR_INTERCEPT") for t in NUMBERS),
]
OF_TWO = [
    *(two(f, a, b, Type.DOUBLE) for f in ("COVAR_POP", "COVAR_SAMP", "CORR") for a in NUMBERS for b in NUMBERS),
    *(two(f, a, b, a) for f in ("MIN_BY", "MAX_BY") for a in ANY for b in ANY if b is not Type.BOOLEAN),
    Aggregate("STRING_AGG", (Field(0, "x", Type.STRING), Const("+", Type.STRING)), Type.STRING),
    *(two(f, a, Type.BOOLEAN, a) for f in ("FIRST", "LAST") for a in ANY),
]
"""FIRST and LAST with a condition are those with FILTER."""
EXACT += OF_TWO
SKETCHES = [
    *(call("APPROX_QUANTILE", t, Type.DOUBLE, q) for t in NUMBERS for q in (0.0, 0.5, 0.99, 1.0)),
    *(call("APPROX_COUNT_DISTINCT", t, Type.BIGINT) for t in ANY),
]
ITEMS = [
    *(call("TOP", t, q=2.0) for t in ANY),
    *(call("FREQUENT", t, q=0.2) for t in ANY),
    *(call("RECURRING", t) for t in ANY),
]


def by_function(specs: Sequence[Aggregate]) -> list[object]:
    """One test case for each function, which draws its types and parameters."""
    names = dict.fromkeys(("DISTINCT " if s.distinct else "") + s.function for s in specs)
    return [
        pytest.param([s for s in specs if ("DISTINCT " if s.distinct else "") + s.function == name], id=name)
        for name in names
    ]


def drawn(data: st.DataObject, specs: Sequence[Aggregate]) -> tuple[Aggregate, list[Row]]:
    spec = data.draw(st.sampled_from(specs))
    types = [arg.type for arg in spec.args]
    return spec, data.draw(streams(*types or [Type.BIGINT]))


DOUBLES = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, 0.1, 1e300, -1e300, 1e-300, 5e-324, 1.7976931348623157e308, 1 + 2**-52, 2.0**-53, 0.5]
    ),
    st.floats(-1000, 1000).map(lambda x: round(x, 2)),
    st.floats(allow_nan=False, allow_infinity=False),
)
INT64 = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1, -(2**31)]),
)
VALUES: dict[Type, st.SearchStrategy[Value]] = {
    Type.BIGINT: INT64,
    Type.TIMESTAMP: INT64,
    Type.DOUBLE: st.one_of(*[DOUBLES] * 9, st.sampled_from([math.nan, math.inf, -math.inf])),
    Type.STRING: st.text(st.sampled_from("abñ😀"), max_size=3),
    Type.BOOLEAN: st.booleans(),
}
TIMES = st.one_of(st.integers(0, 5), st.integers(1_700_000_000_000, 1_700_000_100_000), st.integers(-(2**62), 2**62))


@dataclass(frozen=True)
class Row:
    """A row with the group and the batch that it is dealt to."""

    group: int
    value: Value
    time: int
    partition: int
    sequence: int
    batch: int
    second: Value = None


def streams(type_: Type, second_type: Type = Type.BOOLEAN) -> st.SearchStrategy[list[Row]]:
    """Rows in any order of arrival, few enough of them and of their values that groups and batches meet often."""
    group, partition, batch = st.integers(0, GROUPS - 2), st.integers(0, 2), st.integers(0, 3)
    value = st.one_of(st.none(), VALUES[type_], VALUES[type_])
    second = st.one_of(st.none(), VALUES[second_type], VALUES[second_type])
    rows = st.lists(st.tuples(group, value, TIMES, partition, batch, second), max_size=16)
    copies = st.lists(st.integers(0, 15), max_size=8)

    def dealt(drawn: list[tuple[int, Value, int, int, int, Value]], again: list[int]) -> list[Row]:
        drawn = drawn + [drawn[i % len(drawn)] for i in again if drawn]
        return [Row(g, v, t, p, sequence, b, s) for sequence, (g, v, t, p, b, s) in enumerate(drawn)]

    return st.builds(dealt, rows, copies)


GROUPS = 4
AT = 1_700_000_050_000


def columns(rows: Sequence[Row], spec: Aggregate) -> tuple[list[pa.Array], Rows, np.ndarray]:
    values = [[r.value for r in rows], [r.second for r in rows]][: len(spec.args)]
    args = [pa.array(column, arg.type.arrow) for column, arg in zip(values, spec.args, strict=True)]
    places = Rows(
        np.array([r.time for r in rows], np.int64),
        np.array([r.partition for r in rows], np.int32),
        np.array([r.sequence for r in rows], np.int64),
    )
    return args, places, np.array([r.group for r in rows], np.int64)


def lifted(algebra: Algebra, rows: Sequence[Row], spec: Aggregate) -> pa.RecordBatch:
    args, places, codes = columns(rows, spec)
    partial = algebra.lift(args, places, codes, GROUPS)
    partial.validate(full=True)
    assert partial.schema == algebra.state
    assert partial.num_rows == GROUPS
    return partial


def merged(algebra: Algebra, partials: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    codes = np.tile(np.arange(GROUPS), len(partials))
    partial = algebra.combine(pa.concat_batches(partials), codes, GROUPS)
    partial.validate(full=True)
    assert partial.schema == algebra.state
    return partial


def bits(column: pa.RecordBatch | pa.Array) -> str:
    """Everything that tells two values apart, the sign of zero included."""
    return repr(column.to_pylist())


def members(rows: Sequence[Row], group: int) -> list[Member]:
    mine = [r for r in rows if r.group == group]
    return [Member((r.value, r.second), r.time) for r in sorted(mine, key=lambda r: (r.time, r.partition, r.sequence))]


def definition(spec: Aggregate, rows: Sequence[Row], group: int) -> Value:
    mine = members(rows, group)
    if spec.function in ("FIRST", "LAST"):
        if len(spec.args) > 1:
            mine = [member for member in mine if member.values[1] is True]
        ends = mine[:1] if spec.function == "FIRST" else mine[-1:]
        return canonical(ends[0].values[0]) if ends else None
    return oracle.aggregate(as_defined(spec), mine, AT)


def as_defined(spec: Aggregate) -> oracle.Aggregate:
    """The same to the oracle: over the values of a row, its parameter as it is written."""
    argument = Typed(spec.args[0].type, lambda row: row[0]) if spec.args else None
    second = Typed(spec.args[1].type, lambda row: row[1]) if len(spec.args) > 1 else None
    if second is not None and isinstance(spec.args[1], Const):
        second = literal(Type.STRING, spec.args[1].value)
    parameter = Fraction(repr(spec.parameter or 0.0))
    return oracle.Aggregate(spec.function, argument, spec.type, spec.distinct, parameter, second)


@pytest.mark.parametrize("specs", by_function(EXACT))
@given(data=st.data())
def test_an_exact_aggregate_is_its_definition_to_the_last_bit(specs: list[Aggregate], data: st.DataObject) -> None:
    spec, rows = drawn(data, specs)
    algebra = algebra_for(spec)
    answer = algebra.lower(lifted(algebra, rows, spec), AT)
    assert answer.type == spec.type.arrow
    found = [int(v) if spec.type is Type.HUGEINT and v is not None else v for v in answer.to_pylist()]
    assert repr(found) == repr([definition(spec, rows, group) for group in range(GROUPS)])


@pytest.mark.parametrize("specs", by_function([*EXACT, *SKETCHES, *ITEMS]))
@given(data=st.data())
def test_no_split_or_order_of_rows_changes_a_bit_of_the_partial(specs: list[Aggregate], data: st.DataObject) -> None:
    spec, rows = drawn(data, specs)
    algebra = algebra_for(spec)
    whole = lifted(algebra, rows, spec)
    batches = [lifted(algebra, [r for r in rows if r.batch == b], spec) for b in range(4)]
    flat = merged(algebra, [batches[i] for i in data.draw(st.permutations(range(4)))])
    nested = merged(algebra, [merged(algebra, batches[:2]), merged(algebra, batches[2:]), identity(algebra, GROUPS)])
    assert bits(flat) == bits(whole)
    assert bits(nested) == bits(whole)
    assert bits(algebra.lower(flat, AT)) == bits(algebra.lower(whole, AT))


@given(data=st.data())
def test_groups_can_be_merged_into_coarser_ones(data: st.DataObject) -> None:
    spec, rows = drawn(data, [*EXACT, *SKETCHES, *ITEMS])
    algebra = algebra_for(spec)
    into = data.draw(st.lists(st.integers(0, 1), min_size=GROUPS, max_size=GROUPS))
    coarse = algebra.combine(lifted(algebra, rows, spec), np.array(into), 2)
    args, places, codes = columns(rows, spec)
    assert bits(coarse) == bits(algebra.lift(args, places, np.array(into)[codes], 2))


SUBTRACTABLE = [s for s in [*EXACT, *SKETCHES, *ITEMS] if algebra_for(s).subtractable]


@pytest.mark.parametrize("specs", by_function(SUBTRACTABLE))
@given(data=st.data())
def test_subtracting_a_part_leaves_the_other_part_to_the_last_bit(specs: list[Aggregate], data: st.DataObject) -> None:
    spec, rows = drawn(data, specs)
    algebra = algebra_for(spec)
    assert isinstance(algebra, SubtractableAlgebra)
    kept = lifted(algebra, [r for r in rows if r.batch < 2], spec)
    gone = lifted(algebra, [r for r in rows if r.batch >= 2], spec)
    assert bits(algebra.subtract(merged(algebra, [kept, gone]), gone)) == bits(kept)


@pytest.mark.parametrize("specs", by_function(ITEMS))
@given(data=st.data())
def test_items_come_by_count_then_value(specs: list[Aggregate], data: st.DataObject) -> None:
    spec, rows = drawn(data, specs)
    algebra = algebra_for(spec)
    assert isinstance(algebra, ItemAlgebra)
    partial = lifted(algebra, rows, spec)
    found = algebra.items(partial, AT)
    assert found.item.type == spec.type.arrow
    expected = [(g, *entry) for g in range(GROUPS) for entry in oracle.items(as_defined(spec), members(rows, g), 1)]
    shown = zip(found.group.tolist(), found.item.to_pylist(), found.count.to_pylist(), strict=True)
    assert repr(list(shown)) == repr(expected)
    shares = [sum(1 for g, *_ in expected if g == group) for group in range(GROUPS)]
    assert algebra.lower(partial, AT).to_pylist() == shares


@pytest.mark.parametrize("specs", by_function([s for s in SKETCHES if s.function == "APPROX_QUANTILE"]))
@given(data=st.data())
def test_an_approximate_quantile_is_within_one_percent(specs: list[Aggregate], data: st.DataObject) -> None:
    spec, rows = drawn(data, specs)
    algebra = algebra_for(spec)
    answers = algebra.lower(lifted(algebra, rows, spec), AT).to_pylist()
    for group, answer in enumerate(answers):
        values = [float(r.value) for r in rows if r.group == group and r.value is not None]  # type: ignore[arg-type]
        values.sort(key=lambda v: (v != v, v))
        if not values:
            assert answer is None
            continue
        exact = values[math.floor(Fraction(repr(spec.parameter)) * (len(values) - 1))]
        if not math.isfinite(exact):
            assert repr(answer) == repr(exact)
        elif abs(exact) < 2**-1022:
            assert answer == 0
        else:
            assert abs(answer - exact) <= RELATIVE_ERROR * abs(exact)


@given(data=st.data())
def test_few_distinct_values_are_counted_almost_exactly(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from([s for s in SKETCHES if s.function == "APPROX_COUNT_DISTINCT"]))
    rows = data.draw(streams(spec.args[0].type))
    algebra = algebra_for(spec)
    answers = algebra.lower(lifted(algebra, rows, spec), AT).to_pylist()
    for group, answer in enumerate(answers):
        exact = len({canonical(r.value) for r in rows if r.group == group and r.value is not None})
        assert abs(answer - exact) <= 1
