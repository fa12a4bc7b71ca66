"""Mutated statements: whatever is done to them, they are understood or refused with a StatementError, and quickly."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable

import pytest

from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query, resolve_stream, resolve_table
from stairwise.errors import StatementError
from stairwise.plan.explain import explain
from tests.unit.cql.fuzz_statements import GOLDEN, GOOD
from tests.unit.cql.market import STREAMS

MUTATIONS = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 1_000

TOKEN = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)
POOL = sorted({token for text in [*GOOD, *GOLDEN] for token in TOKEN.findall(text)})
CHARACTERS = "'\"();[]{}-/*+.,%_\\\0\n\u00a0\u0660ſé日\U0001f600 aZ09"

Mutation = Callable[[random.Random, str], str]


def _tokens(change: Callable[[random.Random, list[str]], None]) -> Mutation:
    def mutate(rng: random.Random, text: str) -> str:
        tokens = TOKEN.findall(text) or [""]
        change(rng, tokens)
        return "".join(tokens)

    return mutate


def _delete(rng: random.Random, tokens: list[str]) -> None:
    del tokens[rng.randrange(len(tokens))]


def _duplicate(rng: random.Random, tokens: list[str]) -> None:
    tokens.insert(rng.randrange(len(tokens)), rng.choice(tokens))


def _swap(rng: random.Random, tokens: list[str]) -> None:
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]


def _foreign(rng: random.Random, tokens: list[str]) -> None:
    tokens[rng.randrange(len(tokens))] = rng.choice(POOL)


def _repeat_many(rng: random.Random, tokens: list[str]) -> None:
    tokens[rng.randrange(len(tokens))] *= rng.choice([10, 1_000, 20_000])


def _nest(rng: random.Random, tokens: list[str]) -> None:
    depth = rng.choice([5, 45, 60, 5_000])
    opening, closing = rng.choice([("(", ")"), ("[", "]"), ("CASE WHEN ", " THEN 1 END"), ("ABS(", ")"), ("NOT ", "")])
    i = rng.randrange(len(tokens))
    tokens[i] = opening * depth + tokens[i] + closing * depth


def _long_list(rng: random.Random, tokens: list[str]) -> None:
    i = rng.randrange(len(tokens))
    joint = rng.choice([", ", " + ", " AND ", " || ", " UNION ALL ", ";", " "])
    tokens[i] = joint.join([tokens[i]] * rng.choice([3, 70, 3_000]))


def _character(rng: random.Random, text: str) -> str:
    i = rng.randrange(len(text) + 1)
    return text[:i] + rng.choice(CHARACTERS) + text[i + rng.choice([0, 1]) :]


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


GENTLE: list[Mutation] = [*map(_tokens, (_delete, _duplicate, _swap, _foreign)), _character, _cut]
ROUGH: list[Mutation] = [*map(_tokens, (_repeat_many, _nest, _long_list))]


def mutated(rng: random.Random) -> str:
    text = rng.choice(GOOD if rng.random() < 0.5 else GOLDEN)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        text = rng.choice(GENTLE)(rng, text)
    return rng.choice(ROUGH)(rng, text) if rng.random() < 0.15 else text


def understand(text: str) -> None:
    """Parse, resolve and explain a script over the market's streams and what it declares."""
    streams = dict(STREAMS)
    for statement in parse_script(text):
        match statement:
            case ast.CreateStream():
                stream = resolve_stream(statement)
                streams[stream.name] = stream
            case ast.CreateTable():
                table = resolve_table(statement)
                streams[table.name] = table
            case ast.SelectStatement():
                explain(resolve_query("q", statement, streams), {})
            case ast.CreateQuery(select=select) | ast.Explain(target=ast.SelectStatement() as select):
                explain(resolve_query("q", select, streams), {})


@pytest.mark.parametrize("text", [*GOOD, *GOLDEN])
def test_the_statements_to_be_mutated_are_good(text: str) -> None:
    understand(text)


def test_mutated_statements_raise_nothing_but_statement_errors() -> None:
    rng = random.Random("stairwise")
    understood = 0
    for number in range(MUTATIONS):
        text = mutated(rng)
        try:
            understand(text)
            understood += 1
        except StatementError as error:
            assert error.line >= 1  # noqa: PT017
            assert error.column >= 1  # noqa: PT017
            str(error)
        except Exception as error:
            pytest.fail(f"mutation {number} escapes as {error!r}:\n{text[:2_000]}")
    assert 0 < understood < MUTATIONS
