"""The oracle's expressions: SQL's NULL logic and arithmetic without wrong numbers."""

from __future__ import annotations

import math

import pytest

from stairwise.cql.query import Call, Const, Expr, Field, Value
from stairwise.schema import Type
from tests.oracle.expressions import evaluate, holds

BIG = 2**63 - 1
N, T, F = None, True, False


def constant(value: Value) -> Const:
    types = {bool: Type.BOOLEAN, int: Type.BIGINT, float: Type.DOUBLE, str: Type.STRING}
    return Const(value, types.get(type(value), Type.BIGINT))


def call(op: str, *values: Value, type_: Type | None = None) -> Value:
    args: tuple[Expr, ...] = tuple(constant(value) for value in values)
    return evaluate(Call(op, args, type_ or args[0].type), ())


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("+", (BIG, 1), None),
        ("-", (-BIG - 1, 1), None),
        ("*", (2**32, 2**32), None),
        ("*", (2**31, 2**31), 2**62),
        ("+", (1, None), None),
        ("/", (7, 2), 3),
        ("/", (-7, 2), -3),
        ("/", (-BIG - 1, -1), None),
        ("/", (7, 0), None),
        ("/", (7.0, 0.0), None),
        ("/", (7.0, -0.0), None),
        ("/", (1e308, 1e-10), math.inf),
        ("%", (-7, 2), -1),
        ("%", (7, -2), 1),
        ("%", (-BIG - 1, -1), 0),
        ("%", (7, 0), None),
        ("%", (-7.5, 2.0), -1.5),
        ("neg", (-BIG - 1,), None),
        ("abs", (-BIG - 1,), None),
        ("abs", (-2.5,), 2.5),
    ],
)
def test_arithmetic_answers_null_rather_than_a_wrong_number(op: str, args: tuple[Value, ...], expected: Value) -> None:
    assert call(op, *args, type_=Type.DOUBLE if isinstance(args[0], float) else Type.BIGINT) == expected


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("=", (1, 1), T),
        ("=", (1, N), N),
        ("=", (math.nan, math.nan), T),
        ("=", (-0.0, 0.0), T),
        ("<", (math.inf, math.nan), T),
        ("<>", ("a", "b"), T),
        ("<", ("Z", "a"), T),
        ("<", ("\ufffd", "\U00010000"), T),
        (">=", (F, T), F),
        ("in", (1, 2, 1), T),
        ("in", (1, 2, N), N),
        ("in", (N, 2), N),
        ("in", (1, 2, 3), F),
        ("and", (F, N), F),
        ("and", (T, N), N),
        ("or", (T, N), T),
        ("or", (F, N), N),
        ("not", (N,), N),
        ("is_null", (N,), T),
        ("is_null", (0,), F),
    ],
)
def test_conditions_have_three_values(op: str, args: tuple[Value, ...], expected: Value) -> None:
    assert call(op, *args, type_=Type.BOOLEAN) is expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "a_c", True),
        ("abc", "a_", False),
        ("a\nb", "a%b", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("50%", "50%", True),
        ("a\\", "a\\", True),
        ("", "%", True),
    ],
)
def test_like_has_two_wild_cards_and_no_escape(text: str, pattern: str, expected: bool) -> None:
    assert call("like", text, pattern, type_=Type.BOOLEAN) is expected


def test_case_takes_the_first_branch_that_is_true() -> None:
    assert call("case", None, 1, False, 2, True, 3, 4, type_=Type.BIGINT) == 3
    assert call("case", None, 1, False, 2, 4, type_=Type.BIGINT) == 4


def test_coalesce_takes_the_first_value() -> None:
    assert call("coalesce", None, None, 3, 4, type_=Type.BIGINT) == 3
    assert call("coalesce", None, None, type_=Type.BIGINT) is None


@pytest.mark.parametrize(
    ("value", "expected"), [(2.5, 3.0), (-2.5, -3.0), (0.4, 0.0), (0.49999999999999994, 0.0), (1e300, 1e300)]
)
def test_round_takes_halves_away_from_zero(value: float, expected: float) -> None:
    assert call("round", value) == expected


def test_functions_of_texts_count_and_map_characters() -> None:
    assert call("length", "aé€", type_=Type.BIGINT) == 3
    assert call("upper", "aéß") == "AÉß"
    assert call("concat", "a", "b", "c") == "abc"
    assert call("concat", "a", None) is None


def test_functions_of_doubles_follow_ieee_at_their_edges() -> None:
    assert math.isnan(call("sqrt", -1.0))  # type: ignore[arg-type]
    assert call("ln", 0.0) == -math.inf
    assert call("exp", 1e9) == math.inf
    assert call("floor", -1.5) == -2.0
    assert call("ceil", math.inf) == math.inf


def test_a_condition_that_is_null_lets_nothing_through() -> None:
    field = Field(0, "x", Type.BOOLEAN)
    assert [holds(field, (value,)) for value in (True, False, None)] == [True, False, False]
    assert holds(None, ())
