"""docs/cql.md: every example holds, what it shows is what comes out, and nothing of the language is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stairwise.aggregates.catalogue import AGGREGATES, AggregateFunction
from stairwise.algebra.query import Select
from stairwise.cql import aggregation, expressions, resolve, select, source, window_clauses
from stairwise.cql.script import Catalogue, Explained
from stairwise.errors import StatementError
from stairwise.expressions.functions import SCALARS, Scalar, Takes
from stairwise.join.explain import explain_join
from stairwise.plan.explain import explain

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "cql.md").read_text(encoding="utf-8")
GRAMMAR = (ROOT / "libs" / "stairwise" / "cql" / "grammar.lark").read_text(encoding="utf-8")

BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(DECLARATIONS, *EXAMPLES) = (text for kind, text in BLOCKS if kind == "sql")
EXPLANATION, JOIN, ERROR = (text for kind, text in BLOCKS if kind == "text")


def catalogue() -> Catalogue:
    made = Catalogue()
    made.execute(DECLARATIONS)
    made.failed = frozenset({"volumes"})
    return made


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_holds(example: str) -> None:
    assert catalogue().execute(example)


def test_the_explanation_is_the_one_that_is_given() -> None:
    (change,) = catalogue().execute(next(e for e in EXAMPLES if e.startswith("EXPLAIN SELECT")))
    assert isinstance(change, Explained)
    assert explain(change.query, {}) == EXPLANATION.rstrip("\n")


def test_the_explanation_of_a_join_is_the_one_that_is_given() -> None:
    _, example = (e for e in EXAMPLES if e.startswith("EXPLAIN SELECT"))
    (change,) = catalogue().execute(example)
    assert isinstance(change, Explained)
    assert isinstance(change.query.relation, Select)
    assert list(explain_join(change.query.relation, moves=False)) == JOIN.splitlines()


def test_the_error_is_the_one_that_is_given() -> None:
    with pytest.raises(StatementError) as caught:
        catalogue().execute("SELECT prise FROM trades")
    assert str(caught.value) == ERROR.rstrip("\n")


@pytest.mark.parametrize("function", [*SCALARS, *AGGREGATES])
def test_every_function_has_an_example(function: str) -> None:
    call = rf"\b{function}\b" if function.startswith("WINDOW_") else rf"\b{function}\("
    assert any(re.search(call, example) for example in EXAMPLES)


def row(function: Scalar | AggregateFunction) -> str:
    """What the page says of a function, as a line of its table."""
    takes = [one.value if isinstance(one, Takes) else one.expected for one in function.takes]
    takes += [function.parameter.value] if isinstance(function, AggregateFunction) and function.parameter else []
    return f"| `{function.example}` | {'; '.join(takes) or 'nothing'} | {function.gives} |"


@pytest.mark.parametrize("functions", [SCALARS, AGGREGATES], ids=["of a row", "aggregates"])
def test_the_tables_of_functions_are_those_of_the_catalogue(functions: dict[str, Scalar | AggregateFunction]) -> None:
    assert "\n".join(map(row, functions.values())) in PAGE


@pytest.mark.parametrize("keyword", sorted(set(re.findall(r'"([A-Z]+)"i', GRAMMAR))))
def test_every_keyword_has_an_example(keyword: str) -> None:
    assert any(re.search(rf"\b{keyword}\b", example) for example in EXAMPLES)


def test_every_reserved_word_is_listed() -> None:
    match = re.search(r"NAME: /\(\?!\(\?:([A-Z|]+)\)", GRAMMAR)
    assert match is not None
    listed = re.search(r"Only these words need quotes to be names: ([A-Z,\s]+)\.", PAGE)
    assert listed is not None
    assert re.split(r",\s+", listed[1]) == match[1].split("|")


@pytest.mark.parametrize(
    "limit",
    [
        source.MAX_SCRIPT,
        source.MAX_STATEMENT,
        source.MAX_STATEMENTS,
        source.MAX_TOKENS,
        source.MAX_NESTING,
        expressions.MAX_DEPTH,
        expressions.MAX_LIST,
        select.MAX_OUTPUTS,
        select.MAX_INPUTS,
        select.MAX_KEYS,
        select.MAX_LIMIT,
        aggregation.MAX_AGGREGATES,
        resolve.MAX_SET_OPERATIONS,
        resolve.MAX_COLUMNS,
        resolve.MAX_PARTITIONS,
        window_clauses.MAX_ROWS,
        window_clauses.MAX_LEVELS,
    ],
)
def test_every_limit_is_listed(limit: int) -> None:
    limits = PAGE[PAGE.index("## Limits") :]
    assert re.search(rf"\b{limit:,}\b", limits)
