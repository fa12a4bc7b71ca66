"""Text to statements: ``parse_script`` is the way in. Lark does the parsing, from grammar.lark."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import resources

from lark import Lark
from lark.exceptions import UnexpectedInput

from stairwise.cql import ast
from stairwise.cql.build import SyntaxBuilder
from stairwise.cql.complaints import syntax_error
from stairwise.cql.shapes import parsed
from stairwise.cql.source import Source, statements


def parse_script(text: str) -> tuple[ast.Statement, ...]:
    """The statements of a script, separated by semicolons. A bad one raises ``StatementError``."""
    return tuple(_parse_statement(source) for source in statements(text))


def _parse_statement(source: Source) -> ast.Statement:
    try:
        statement = parsed(source.text, _parse)
    except UnexpectedInput:
        raise syntax_error(lark(), source) from None
    return _with_source(statement, source)


def _parse(text: str) -> ast.Statement:
    statement: ast.Statement = lark().parse(text)  # type: ignore[assignment]
    return statement


def _with_source(statement: ast.Statement, source: Source) -> ast.Statement:
    """The statement, and the SELECT inside it, with the text that later errors point into."""
    if isinstance(statement, ast.CreateQuery):
        return replace(statement, source=source, select=replace(statement.select, source=source))
    if isinstance(statement, ast.Explain) and isinstance(statement.target, ast.SelectStatement):
        return replace(statement, source=source, target=replace(statement.target, source=source))
    return replace(statement, source=source)


@cache
def lark() -> Lark:
    """Built on first use (tens of milliseconds) and shared from then on; parsing leaves no state in it."""
    grammar = resources.files("stairwise.cql").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        transformer=SyntaxBuilder(),
        maybe_placeholders=True,
        g_regex_flags=re.ASCII,
    )
