"""The oracle's expressions: types that meet, SQL's NULL logic and arithmetic without wrong numbers."""

from __future__ import annotations

import math

import pytest

from stairwise.cql.parser import parse_script
from stairwise.schema import Type
from tests.oracle.expressions import Column, Reader, Typed
from tests.oracle.values import Value

COLUMNS: dict[str, tuple[Type, Value]] = {
    "big": (Type.BIGINT, 2**63 - 1),
    "least": (Type.BIGINT, -(2**63)),
    "odd": (Type.BIGINT, 2**53 + 1),
    "none": (Type.BIGINT, None),
    "sum": (Type.HUGEINT, 2**100),
    "nan": (Type.DOUBLE, math.nan),
    "inf": (Type.DOUBLE, math.inf),
    "even": (Type.DOUBLE, 2.0**53),
    "unknown": (Type.BOOLEAN, None),
    "at": (Type.TIMESTAMP, 1500),
}


def read(text: str) -> Typed:
    (statement,) = parse_script(f"SELECT {text} FROM s")
    return Reader([Column("s", name, type_) for name, (type_, _) in COLUMNS.items()]).read(
        statement.relation.items[0].expression
    )


def value(text: str) -> Value:
    return read(text).of([value for _, value in COLUMNS.values()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("big + 1", None),
        ("least - 1", None),
        ("4294967296 * 4294967296", None),
        ("2147483648 * 2147483648", 2**62),
        ("1 + none", None),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("least / -1", None),
        ("7 / 0", None),
        ("7.0 / 0.0", None),
        ("7.0 / -0.0", None),
        ("1e308 / 1e-10", math.inf),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("least % -1", 0),
        ("7 % 0", None),
        ("-7.5 % 2.0", -1.5),
        ("- least", None),
        ("- 9223372036854775808", -(2**63)),
        ("ABS(least)", None),
        ("ABS(-2.5)", 2.5),
    ],
)
def test_arithmetic_answers_null_rather_than_a_wrong_number(text: str, expected: Value) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 = 1", True),
        ("1 = none", None),
        ("nan = nan", True),
        ("-0.0 = 0.0", True),
        ("inf < nan", True),
        ("'a' <> 'b'", True),
        ("'Z' < 'a'", True),
        ("'\ufffd' < '\U00010000'", True),
        ("1 IN (2, 1)", True),
        ("1 IN (2, NULL)", None),
        ("none IN (2)", None),
        ("1 IN (2, 3)", False),
        ("1 NOT IN (2, NULL)", None),
        ("1 NOT IN (2, 3)", True),
        ("2 BETWEEN 1 AND none", None),
        ("0 BETWEEN 1 AND none", False),
        ("2 NOT BETWEEN 3 AND 4", True),
        ("FALSE AND unknown", False),
        ("TRUE AND unknown", None),
        ("TRUE OR unknown", True),
        ("FALSE OR unknown", None),
        ("NOT unknown", None),
        ("none IS NULL", True),
        ("0 IS NULL", False),
        ("0 IS NOT NULL", True),
    ],
)
def test_conditions_have_three_values(text: str, expected: Value) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("odd = even", False),
        ("odd > even", True),
        ("odd IN (9007199254740992, 0.5)", False),
        ("even IN (9007199254740993)", False),
        ("sum > 1.5", True),
        ("odd + 0.0 = even", True),
        ("COALESCE(odd, 0.5) = even", True),
    ],
)
def test_numbers_compare_as_they_are_and_widen_only_where_they_become_one_column(text: str, expected: bool) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1 + 2", Type.BIGINT),
        ("1 + 2.0", Type.DOUBLE),
        ("sum + 1", Type.DOUBLE),
        ("- sum", Type.DOUBLE),
        ("COALESCE(sum, 1)", Type.HUGEINT),
        ("CASE WHEN TRUE THEN 1 ELSE 0.5 END", Type.DOUBLE),
        ("CASE WHEN TRUE THEN at ELSE 0 END", Type.TIMESTAMP),
        ("CASE WHEN TRUE THEN NULL END", None),
        ("FLOOR(1)", Type.DOUBLE),
        ("LENGTH('a')", Type.BIGINT),
        ("CAST(at AS DOUBLE)", Type.DOUBLE),
    ],
)
def test_types_meet_in_the_wider_one(text: str, type_: Type | None) -> None:
    assert read(text).type is type_


def test_literals_become_instants_beside_one() -> None:
    assert value("at = 1500")
    assert value("at = '1970-01-01T01:00:01.5+01:00'")
    assert value("at IN ('1970-01-01T00:00:00Z', 1500)")
    assert value("COALESCE(NULL, at)") == 1500
    assert value("TIMESTAMP '1970-01-01T00:00:01.500999Z'") == 1500


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
    assert value(f"'{text}' LIKE '{pattern}'") is expected
    assert value(f"'{text}' NOT LIKE '{pattern}'") is not expected


def test_case_takes_the_first_branch_that_is_true() -> None:
    assert value("CASE WHEN unknown THEN 1 WHEN FALSE THEN 2 WHEN TRUE THEN 3 ELSE 4 END") == 3
    assert value("CASE WHEN unknown THEN 1 WHEN FALSE THEN 2 ELSE 4 END") == 4
    assert value("CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END") == "two"


def test_coalesce_takes_the_first_value() -> None:
    assert value("COALESCE(none, none, 3, 4)") == 3
    assert value("COALESCE(none, NULL)") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2.5", 3.0), ("-2.5", -3.0), ("0.4", 0.0), ("0.49999999999999994", 0.0), ("1e300", 1e300)],
)
def test_round_takes_halves_away_from_zero(text: str, expected: float) -> None:
    assert value(f"ROUND({text})") == expected


def test_functions_of_texts_count_and_map_characters() -> None:
    assert value("LENGTH('aé€')") == 3
    assert value("UPPER('aéß')") == "AÉß"
    assert value("CONCAT('a', 'b', 'c')") == value("'a' || 'b' || 'c'") == "abc"
    assert value("CONCAT('a', NULL)") is None


def test_functions_of_doubles_follow_ieee_at_their_edges() -> None:
    assert math.isnan(value("SQRT(-1.0)"))  # type: ignore[arg-type]
    assert value("LN(0.0)") == -math.inf
    assert value("EXP(1e9)") == math.inf
    assert value("FLOOR(-1.5)") == -2.0
    assert value("CEIL(inf)") == math.inf
