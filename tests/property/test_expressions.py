"""Expressions against a naive evaluator that computes one row at a time with Python's own numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cmp_to_key

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from stairwise.expressions.codes import encode
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.order import sort_indices
from stairwise.expressions.tree import Call, Const, Expr, Field, Value
from stairwise.schema import Type

FIELDS = [
    Field(0, "a", Type.BIGINT),
    Field(1, "b", Type.BIGINT),
    Field(2, "x", Type.DOUBLE),
    Field(3, "y", Type.DOUBLE),
    Field(4, "s", Type.STRING),
    Field(5, "p", Type.BOOLEAN),
    Field(6, "t", Type.TIMESTAMP),
    Field(7, "h", Type.HUGEINT),
]
INT64 = st.one_of(
    st.integers(-4, 4),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, 2**32, -(2**32), 2**31, 3037000499, 3037000500]),
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, math.inf, -math.inf, math.nan]),
    st.floats(allow_nan=True, allow_infinity=True),
)
TEXTS = st.text(st.sampled_from("ab%_\\\nñ😀Z"), max_size=4)
VALUES: dict[Type, st.SearchStrategy[Value]] = {
    Type.BIGINT: INT64,
    Type.TIMESTAMP: INT64,
    Type.DOUBLE: DOUBLES,
    Type.STRING: TEXTS,
    Type.BOOLEAN: st.booleans(),
    Type.HUGEINT: st.one_of(INT64, st.integers(1 - 10**38, 10**38 - 1)),
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


def leaves(type_: Type) -> st.SearchStrategy[Expr]:
    fields = [f for f in FIELDS if f.type is type_]
    constants = st.one_of(st.none(), VALUES[type_]).map(lambda v: Const(v, type_))
    return st.one_of(st.sampled_from(fields), constants)


@st.composite
def expressions(draw: st.DrawFn, type_: Type, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves(type_))

    def sub(t: Type) -> Expr:
        return draw(expressions(t, depth - 1))

    def any_type() -> Type:
        return draw(st.sampled_from(list(Type)))

    shape = draw(st.sampled_from(["case", "coalesce", "own", "own", "own"]))
    if shape == "case":
        pairs: list[Expr] = []
        for _ in range(draw(st.integers(1, 2))):
            pairs += [sub(Type.BOOLEAN), sub(type_)]
        return Call("case", (*pairs, sub(type_)), type_)
    if shape == "coalesce":
        return Call("coalesce", tuple(sub(type_) for _ in range(draw(st.integers(1, 3)))), type_)
    match type_:
        case Type.BIGINT:
            op = draw(st.sampled_from(["+", "-", "*", "/", "%", "neg", "abs", "length", "floor"]))
            if op == "length":
                return Call(op, (sub(Type.STRING),), type_)
            if op == "floor":
                return Call(op, (sub(Type.DOUBLE),), type_)
        case Type.HUGEINT:
            op = draw(st.sampled_from(["+", "-", "*", "/", "%", "neg", "abs", "to_hugeint"]))
            if op == "to_hugeint":
                return Call(op, (sub(Type.BIGINT),), type_)
        case Type.DOUBLE:
            op = draw(st.sampled_from(["+", "-", "*", "/", "%", "neg", "abs", "floor", "ceil", "to_double"]))
            if op == "to_double":
                source = draw(st.sampled_from([Type.BIGINT, Type.HUGEINT, Type.TIMESTAMP]))
                return Call(op, (sub(source),), type_)
        case Type.STRING:
            return Call("concat", tuple(sub(type_) for _ in range(draw(st.integers(1, 3)))), type_)
        case Type.TIMESTAMP:
            return draw(leaves(type_))
        case Type.BOOLEAN:
            op = draw(st.sampled_from(["compare", "and", "or", "not", "is_null", "in", "like"]))
            if op == "compare":
                over = any_type()
                return Call(draw(st.sampled_from(COMPARISONS)), (sub(over), sub(over)), type_)
            if op == "in":
                over = any_type()
                count = draw(st.integers(1, 7))
                return Call("in", (sub(over), *(draw(leaves(over)) for _ in range(count))), type_)
            if op == "like":
                return Call("like", (sub(Type.STRING), Const(draw(TEXTS), Type.STRING)), type_)
            if op == "is_null":
                return Call(op, (sub(any_type()),), type_)
            if op == "not":
                return Call(op, (sub(type_),), type_)
            return Call(op, tuple(sub(type_) for _ in range(draw(st.integers(2, 3)))), type_)
    arity = 1 if op in ("neg", "abs", "floor", "ceil") else 2
    return Call(op, tuple(sub(type_) for _ in range(arity)), type_)


ANY_EXPRESSION = st.sampled_from(list(Type)).flatmap(expressions)
ROW = st.tuples(*(st.one_of(st.none(), VALUES[f.type]) for f in FIELDS))
ROWS = st.lists(ROW, max_size=6)


def columns_of(rows: Sequence[Sequence[Value]]) -> list[pa.Array]:
    def stored(field: Field, value: Value) -> object:
        return Decimal(value) if field.type is Type.HUGEINT and value is not None else value

    return [pa.array([stored(f, row[f.index]) for row in rows], f.type.arrow) for f in FIELDS]


# The naive evaluator.


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1 by the total order; neither is NULL."""

    def key(value: Value) -> tuple[int, object]:
        if isinstance(value, str):
            return 0, value.encode()
        return (1, 0) if value != value else (0, value)

    a, b = key(left), key(right)
    return (a > b) - (a < b)  # type: ignore[operator]


def fits(value: int, type_: Type) -> bool:
    return abs(value) < 10**38 if type_ is Type.HUGEINT else -(2**63) <= value < 2**63


def arithmetic(call: Call, args: list[Value], faults: Faults) -> Value:
    if None in args:
        return None
    first, second = args[0], args[-1]
    if call.op in "/%" and second == 0:
        faults.division += 1
        return None
    if call.args[0].type is Type.DOUBLE:
        if call.type is Type.BIGINT:
            whole = math.floor(first) if math.isfinite(first) else None
            if whole is None or not fits(whole, Type.BIGINT):
                faults.overflow += 1
                return None
            return whole
        return floating(call.op, first, second)
    match call.op:
        case "+":
            result = first + second
        case "-":
            result = first - second
        case "*":
            result = first * second
        case "/":
            result = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        case "%":
            result = abs(first) % abs(second) * (-1 if first < 0 else 1)
        case "neg":
            result = -first
        case _:
            result = abs(first)
    if not fits(result, call.type):
        faults.overflow += 1
        return None
    return result


def floating(op: str, first: float, second: float) -> float:
    match op:
        case "+":
            return first + second
        case "-":
            return first - second
        case "*":
            return first * second
        case "/":
            return first / second
        case "%":
            return math.fmod(first, second) if math.isfinite(first) and second == second else math.nan
        case "neg":
            return -first
        case "abs":
            return abs(first)
    if not math.isfinite(first):
        return first
    return math.copysign(float(math.floor(first) if op == "floor" else math.ceil(first)), first)


def naive(expr: Expr, row: Sequence[Value], faults: Faults) -> Value:
    if isinstance(expr, Field):
        return row[expr.index]
    if isinstance(expr, Const):
        return expr.value
    if expr.op == "case":
        *pairs, otherwise = expr.args
        for when, then in zip(pairs[::2], pairs[1::2], strict=True):
            if naive(when, row, faults) is True:
                return naive(then, row, faults)
        return naive(otherwise, row, faults)
    if expr.op == "coalesce":
        for arg in expr.args:
            value = naive(arg, row, faults)
            if value is not None:
                return value
        return None
    args = [naive(arg, row, faults) for arg in expr.args]
    match expr.op:
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "not":
            return None if args[0] is None else not args[0]
        case "is_null":
            return args[0] is None
        case "in":
            first, *members = args
            if first is None:
                return None
            if any(m is not None and order(first, m) == 0 for m in members):
                return True
            return None if None in members else False
        case "like":
            text, pattern = args
            parts = {"%": ".*", "_": "."}
            regex = "".join(parts.get(c, re.escape(c)) for c in pattern)
            return None if text is None else re.fullmatch(regex, text, re.DOTALL) is not None
        case "length":
            return None if args[0] is None else len(args[0])
        case "concat":
            return None if None in args else "".join(args)
        case "to_double":
            return None if args[0] is None else float(args[0])
        case "to_hugeint":
            return args[0]
        case op if op in COMPARISONS:
            if None in args:
                return None
            way = order(*args)
            return {
                "=": way == 0,
                "<>": way != 0,
                "<": way < 0,
                "<=": way <= 0,
                ">": way > 0,
                ">=": way >= 0,
            }[op]
    return arithmetic(expr, args, faults)


def same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return left == right and (left is None) == (right is None)


@given(expr=ANY_EXPRESSION, rows=ROWS)
def test_a_column_of_values_and_its_faults_are_those_of_row_by_row_evaluation(
    expr: Expr, rows: list[tuple[Value, ...]]
) -> None:
    expected_faults, faults = Faults(), Faults()
    expected = [naive(expr, row, expected_faults) for row in rows]
    result = evaluate(expr, columns_of(rows), len(rows), faults)
    result.validate(full=True)
    assert result.type == expr.type.arrow
    found = [int(v) if isinstance(v, Decimal) else v for v in result.to_pylist()]
    assert all(map(same, found, expected)), (found, expected)
    assert faults == expected_faults


@given(expr=expressions(Type.BOOLEAN), rows=ROWS, skip=st.integers(0, 3))
@example(Call("like", (Const("a\\", Type.STRING), Const("%\\", Type.STRING)), Type.BOOLEAN), [(None,) * 8], 0)
def test_a_slice_of_a_batch_evaluates_as_the_rows_it_shows(
    expr: Expr, rows: list[tuple[Value, ...]], skip: int
) -> None:
    kept = rows[skip:]
    sliced = [column.slice(skip) for column in columns_of(rows)]
    expected = [naive(expr, row, Faults()) is True for row in kept]
    assert selects(expr, sliced, len(kept)).tolist() == expected


def row_order(indices: Sequence[int], types: Sequence[Type]) -> object:
    def compare(left: tuple[Value, ...], right: tuple[Value, ...]) -> int:
        for i in indices:
            a, b = left[i], right[i]
            way = (a is not None) - (b is not None) if a is None or b is None else order(a, b)
            if way:
                return way
        return 0

    return cmp_to_key(compare)


KEYS = st.lists(st.sampled_from([f.index for f in FIELDS]), min_size=1, max_size=3, unique=True)


@given(rows=ROWS, keys=KEYS)
def test_sorting_puts_null_first_nan_last_strings_by_bytes_and_is_stable(
    rows: list[tuple[Value, ...]], keys: list[int]
) -> None:
    columns = columns_of(rows)
    key = row_order(keys, [f.type for f in FIELDS])
    expected = sorted(range(len(rows)), key=lambda i: key(rows[i]))  # type: ignore[operator]
    assert sort_indices([columns[i] for i in keys]).tolist() == expected


@given(rows=ROWS, keys=KEYS, copies=st.integers(1, 3))
def test_encoding_gives_equal_keys_equal_codes_in_order_of_first_appearance(
    rows: list[tuple[Value, ...]], keys: list[int], copies: int
) -> None:
    rows = rows * copies
    columns = columns_of(rows)

    def spelled(value: Value) -> Value:
        return "NaN" if value != value else value

    known: dict[tuple[object, ...], int] = {}
    expected = [known.setdefault(tuple(spelled(row[i]) for i in keys), len(known)) for row in rows]
    codes, first = encode([columns[i] for i in keys])
    assert codes.tolist() == expected
    assert first.tolist() == [expected.index(g) for g in range(len(known))]
