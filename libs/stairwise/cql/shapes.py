"""Statements that differ in digits alone are parsed once: thousands of queries of one shape cost little more than one.

    CREATE QUERY q17 AS SELECT k FROM s [RANGE 25 SECONDS]      CREATE QUERY q00 AS SELECT k FROM s [RANGE 00 SECONDS]
    CREATE QUERY q42 AS SELECT k FROM s [RANGE 10 SECONDS]      is the shape of both: the same tokens in the same places

No token of the grammar depends on which digit stands in it, so both have the tree of their shape, but for names,
numbers, strings and durations with digits. A shape is a function that makes the tree of a text: it makes those anew,
and what they stand in, and shares the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from stairwise.cql import ast
from stairwise.cql.source import Source, Span

LONGEST = 500
"""Characters of a statement that has a shape; longer ones nest deeper than is worth while."""
MOST = 1_024
"""How many shapes are remembered."""

Maker = Callable[[str], Any]
_ZEROS = str.maketrans("123456789", "000000000")
_COUNT = re.compile(r"[\d.]+")


class _NoShapeError(Exception):
    """Something in the tree holds digits, and cannot be read off its place in the text."""


def parsed(text: str, parse: Callable[[str], ast.Statement]) -> ast.Statement:
    """The tree of a statement, which ``parse`` is asked for where its shape is new; raises what that raises."""
    made = _shape(text.translate(_ZEROS), parse) if len(text) <= LONGEST else None
    statement: ast.Statement = parse(text) if made is None else made(text)
    return statement


@lru_cache(MOST)
def _shape(zeros: str, parse: Callable[[str], ast.Statement]) -> Maker | None:
    """The shape of a text whose digits are all 0; None where it has none."""
    tree = parse(zeros)
    try:
        return _maker(tree, zeros) or (lambda _: tree)
    except _NoShapeError:
        return None


def _maker(node: Any, zeros: str) -> Maker | None:
    """What makes a part of the tree anew; None where it holds no digits, and can be shared."""
    if isinstance(node, tuple):
        makers = [_maker(each, zeros) for each in node]
        return None if not any(makers) else _sequence(tuple, node, makers)
    if isinstance(node, str):
        if "0" in node:
            raise _NoShapeError
        return None
    if isinstance(node, Source | Span) or not is_dataclass(node):
        return None
    read, span = _READERS.get(type(node)), getattr(node, "span", None)
    if read is not None and span is not None and "0" in zeros[span.start : span.end]:
        if read(node, zeros) != node:
            raise _NoShapeError
        return lambda text: read(node, text)
    kind: Any = type(node)
    values = [getattr(node, field.name) for field in fields(node)]
    makers = [_maker(value, zeros) for value in values]
    return None if not any(makers) else _sequence(lambda made: kind(*made), values, makers)


def _sequence(make: Callable[[list[Any]], Any], values: Any, makers: list[Maker | None]) -> Maker:
    changing = [(index, maker) for index, maker in enumerate(makers) if maker is not None]

    def made(text: str) -> Any:
        parts = list(values)
        for index, maker in changing:
            parts[index] = maker(text)
        return make(parts)

    return made


def _name(node: ast.Name, text: str) -> ast.Name:
    said = text[node.span.start : node.span.end]
    return ast.Name(said[1:-1].replace('""', '"') if said.startswith('"') else said, node.span, node.quoted)


def _number(node: ast.Number, text: str) -> ast.Number:
    return ast.Number(text[node.span.start : node.span.end], node.span)


def _string(node: ast.String, text: str) -> ast.String:
    return ast.String(text[node.span.start + 1 : node.span.end - 1].replace("''", "'"), node.span)


def _measure(node: ast.Duration | ast.Size, text: str) -> ast.Duration | ast.Size:
    count = _COUNT.match(text, node.span.start, node.span.end)
    return type(node)(count.group() if count else "", node.unit, node.span)


_READERS: dict[type, Callable[[Any, str], Any]] = {
    ast.Name: _name,
    ast.Number: _number,
    ast.String: _string,
    ast.Duration: _measure,
    ast.Size: _measure,
}
