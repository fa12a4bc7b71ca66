"""Statements of one shape are parsed once, and each has the tree that it would have had alone."""

from __future__ import annotations

import random
import re

import pytest

from stairwise.cql import ast
from stairwise.cql.parser import lark, parse_script
from stairwise.cql.shapes import LONGEST, parsed
from stairwise.errors import StatementError
from tests.golden.cases import golden_cases
from tests.unit.cql.test_docs import BLOCKS

STATEMENTS = [
    "SELECT a1, 'x7''8', \"n\"\"5\" FROM s2 [RANGE 10s SLIDE 2.5 SECONDS] WHERE a1 > - 3 AND b2 <= -47.5e10",
    "SELECT x FROM s [FROM -17 UNTIL 2034] /* 12 */ -- 34",
    "CREATE STREAM s1 (a BIGINT) RETAIN 10 MINUTES AT MOST 64MB",
    "SELECT REGR_SLOPE(c1) AS r2 FROM team2.s3 [ROWS 100 SLIDE 10] WHERE t = TIMESTAMP '2026-01-31T12:00:00Z'",
    "SELECT x FROM s [RANGES 60s, 10s SLIDES 10s, 10s WEIGHTED BY (-1, 0.5)]",
]


def alone(text: str) -> ast.Statement:
    return lark().parse(text)  # type: ignore[return-value]


def texts() -> list[str]:
    scripts = [
        *STATEMENTS,
        *(text for kind, text in BLOCKS if kind == "sql"),
        *(case.script for case in golden_cases()),
    ]
    return [statement.source.text for script in scripts for statement in parse_script(script)]


@pytest.mark.parametrize("text", sorted(set(texts())))
def test_whatever_digits_stand_in_a_statement_its_tree_is_its_own(text: str) -> None:
    chosen = random.Random(text)
    for other in (text, *(re.sub(r"\d", lambda _: chosen.choice("123456789"), text) for _ in range(3))):
        assert parsed(other, alone) == alone(other)


def test_a_shape_is_parsed_once() -> None:
    asked: list[str] = []

    def asking(text: str) -> ast.Statement:
        asked.append(text)
        return alone(text)

    for number in range(100, 200):
        text = f"CREATE QUERY q{number} AS SELECT SUM(x) AS t FROM s [RANGE {number} SECONDS] WHERE x > {number}"
        assert parsed(text, asking) == alone(text)
    assert len(asked) == 1
    long = f"SELECT {'x' * LONGEST} FROM s"
    assert parsed(long, asking) == alone(long)


def test_an_error_shows_the_statement_as_it_was_written() -> None:
    with pytest.raises(StatementError) as refused:
        parse_script("SELECT 12 34 FROM s56")
    assert refused.value.text == "34"
