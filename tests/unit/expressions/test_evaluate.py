"""What expressions say in the cases that SQL users look up."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Call, Const, Expr, Field, Value
from stairwise.schema import Type

A = Field(0, "a", Type.BIGINT)
B = Field(1, "b", Type.BIGINT)
X = Field(0, "x", Type.DOUBLE)
S = Field(0, "s", Type.STRING)
LEAST, MOST = -(2**63), 2**63 - 1


def integer(value: int | None) -> Const:
    return Const(value, Type.BIGINT)


def double(value: float) -> Const:
    return Const(value, Type.DOUBLE)


def call(op: str, *args: Expr, type_: Type | None = None) -> Call:
    return Call(op, args, type_ or args[0].type)


def rows(expr: Expr, *columns: list[Value], faults: Faults | None = None) -> list[Value]:
    """The expression over columns of the types of its fields."""
    fields: dict[int, Type] = {}

    def visit(node: Expr) -> None:
        if isinstance(node, Field):
            fields[node.index] = node.type
        elif isinstance(node, Call):
            for arg in node.args:
                visit(arg)

    visit(expr)
    arrays = [pa.array(values, fields.get(i, Type.BIGINT).arrow) for i, values in enumerate(columns)]
    result = evaluate(expr, arrays, len(columns[0]) if columns else 1, faults)
    assert result.type == expr.type.arrow
    return result.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("+", MOST, 1, None),
        ("+", LEAST, -1, None),
        ("+", MOST, LEAST, -1),
        ("-", LEAST, 1, None),
        ("-", 0, LEAST, None),
        ("*", 3037000500, 3037000500, None),
        ("*", 3037000499, 3037000499, 3037000499**2),
        ("*", -1, LEAST, None),
        ("*", LEAST, -1, None),
        ("/", LEAST, -1, None),
        ("/", -7, 2, -3),
        ("/", 7, -2, -3),
        ("%", -7, 2, -1),
        ("%", 7, -2, 1),
        ("%", LEAST, -1, 0),
        ("%", LEAST, 10, -8),
    ],
)
def test_bigint_arithmetic_is_exact_or_null(op: str, left: int, right: int, expected: int | None) -> None:
    faults = Faults()
    column = rows(call(op, A, B), [left, 1], [right, 1], faults=faults)
    constant = rows(call(op, integer(left), integer(right)))
    assert column[0] == constant[0] == expected
    assert faults == Faults(overflow=int(expected is None))


def test_division_by_zero_is_null_and_counted_once_a_row_for_both_numeric_types() -> None:
    faults = Faults()
    assert rows(call("/", A, B), [1, None, 0], [0, 0, 0], faults=faults) == [None, None, None]
    assert rows(call("%", A, integer(0)), [5, 6], faults=faults) == [None, None]
    assert rows(call("/", double(1.0), X), [0.0, -0.0, 4.0], faults=faults) == [None, None, 0.25]
    assert faults == Faults(division=2 + 2 + 2)


def test_the_opposite_of_the_least_bigint_overflows() -> None:
    faults = Faults()
    assert rows(call("neg", A), [LEAST, 5, None], faults=faults) == [None, -5, None]
    assert rows(call("abs", A), [LEAST, -5, None], faults=faults) == [None, 5, None]
    assert faults == Faults(overflow=2)


def test_a_fault_counts_only_in_rows_that_take_the_branch() -> None:
    """CASE WHEN b <> 0 THEN a / b ELSE a + 1 END"""
    guarded = call(
        "case",
        call("<>", B, integer(0), type_=Type.BOOLEAN),
        call("/", A, B),
        call("+", A, integer(1)),
        type_=Type.BIGINT,
    )
    faults = Faults()
    assert rows(guarded, [6, MOST, MOST], [0, 0, 2], faults=faults) == [7, None, MOST // 2]
    assert faults == Faults(overflow=1)


def test_coalesce_asks_its_later_arguments_only_where_the_earlier_ones_are_null() -> None:
    faults = Faults()
    assert rows(call("coalesce", A, call("/", integer(1), B)), [1, None], [0, 0], faults=faults) == [1, None]
    assert faults == Faults(division=1)


def test_a_constant_fault_counts_in_every_row() -> None:
    faults = Faults()
    assert rows(call("/", integer(1), integer(0)), [1, 2, 3], faults=faults) == [None] * 3
    assert faults.total == 3


def test_nan_equals_nan_and_is_greater_than_everything() -> None:
    values: list[Value] = [math.nan, math.inf, 1.0, None]
    for op, expected in (("=", [True, False, False, None]), (">", [False, False, False, None])):
        assert rows(call(op, X, double(math.nan), type_=Type.BOOLEAN), values) == expected
    assert rows(call("<", X, double(math.nan), type_=Type.BOOLEAN), values) == [False, True, True, None]
    assert rows(call("=", double(0.0), double(-0.0), type_=Type.BOOLEAN)) == [True]


@pytest.mark.parametrize(
    ("members", "expected"),
    [([1, 2], [True, False, None]), ([1, None], [True, None, None]), ([], [False, False, False])],
)
def test_in_follows_sqls_null_rules(members: list[int | None], expected: list[bool | None]) -> None:
    expr = call("in", A, *(integer(m) for m in members), type_=Type.BOOLEAN)
    assert rows(expr, [1, 3, None]) == expected


def test_a_long_list_of_constants_has_the_same_rules() -> None:
    expr = call("in", A, *(integer(m) for m in range(10)), integer(None), type_=Type.BOOLEAN)
    assert rows(expr, [1, 30, None]) == [True, None, None]


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%", "abc", True),
        ("a_c", "añc", True),
        ("a_c", "ac", False),
        ("%", "", True),
        ("", "x", False),
        ("a\\%", "a\\bc", True),
        ("a\\%", "a%", False),
        ("a.c", "abc", False),
        ("a%c", "a\nc", True),
    ],
)
def test_like_knows_percent_and_underscore_and_no_escape(pattern: str, text: str, matches: bool) -> None:
    assert rows(call("like", S, Const(pattern, Type.STRING), type_=Type.BOOLEAN), [text, None]) == [matches, None]


def test_hugeint_arithmetic_keeps_38_digits_and_overflows_beyond() -> None:
    most = Const(10**38 - 1, Type.HUGEINT)
    one = call("to_hugeint", integer(1), type_=Type.HUGEINT)
    faults = Faults()
    assert rows(call("-", most, one), faults=faults) == [Decimal(10**38 - 2)]
    assert rows(call("+", most, one), faults=faults) == [None]
    assert rows(call("*", most, most), faults=faults) == [None]
    assert rows(call("/", most, Const(-(10**20), Type.HUGEINT)), faults=faults) == [Decimal(-(10**18) + 1)]
    assert rows(call("%", most, Const(0, Type.HUGEINT)), faults=faults) == [None]
    assert rows(call("<", one, most, type_=Type.BOOLEAN)) == [True]
    assert faults == Faults(overflow=2, division=1)


@pytest.mark.parametrize(
    "value", [10**38 - 1, -(10**38) + 1, 2**64 - 1, 2**63, 2**53 + 1, 2**100 + 2**47, -(2**90) - 1]
)
def test_hugeint_becomes_the_nearest_double(value: int) -> None:
    assert rows(call("to_double", Const(value, Type.HUGEINT), type_=Type.DOUBLE)) == [float(value)]


@pytest.mark.parametrize("type_", [Type.BIGINT, Type.HUGEINT])
def test_the_excess_of_an_integer_tells_on_which_side_of_its_nearest_double_it_lies(type_: Type) -> None:
    integers = [0, 2**53, 2**53 + 1, -(2**53) - 1, 2**53 + 3, 2**63 - 1, 2**63 - 1024, -(2**63), None]
    integers += [10**38 - 1, 1 - 10**38, 2**100, 2**100 + 1] if type_ is Type.HUGEINT else []
    expected = [None if i is None else (i > int(float(i))) - (i < int(float(i))) for i in integers]
    excess = call("excess", Field(0, "x", type_), type_=Type.BIGINT)
    assert rows(excess, [Decimal(i) if i is not None and type_ is Type.HUGEINT else i for i in integers]) == expected
    assert rows(call("excess", Const(2**53 + 1, type_), type_=Type.BIGINT)) == [1]


def test_functions_of_doubles_and_text() -> None:
    values: list[Value] = [2.5, -2.5, 0.5, None]
    assert rows(call("round", X), values) == [3.0, -3.0, 1.0, None]
    assert rows(call("floor", X), values) == [2.0, -3.0, 0.0, None]
    assert rows(call("floor", X, type_=Type.BIGINT), [1e300, math.nan, 2.5], faults=(f := Faults())) == [None, None, 2]
    assert f == Faults(overflow=2)
    assert rows(call("length", S, type_=Type.BIGINT), ["añ😀", "", None]) == [3, 0, None]
    assert rows(call("concat", S, Const("!", Type.STRING)), ["a", None]) == ["a!", None]
    assert rows(call("upper", S), ["abcñ", None]) == ["ABCÑ", None]


@pytest.mark.parametrize(
    "expr", [A, integer(1), call("+", A, B), Call("case", (call("is_null", A, type_=Type.BOOLEAN), A, B), Type.BIGINT)]
)
def test_a_batch_without_rows_gives_a_column_without_rows(expr: Expr) -> None:
    assert rows(expr, [], []) == []


def test_a_predicate_selects_only_what_is_true() -> None:
    column = pa.array([1, 3, None])
    assert selects(call(">", A, integer(2), type_=Type.BOOLEAN), [column], 3).tolist() == [False, True, False]
