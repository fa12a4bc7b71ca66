"""The oracle shares the grammar with the engines, and nothing behind it."""

from __future__ import annotations

import ast
from pathlib import Path

import tests.oracle

SHARED = {"stairwise.cql", "stairwise.cql.parser", "stairwise.cql.source", "stairwise.schema"}
"""``stairwise.cql`` for the module ``ast`` alone."""


def test_the_oracle_imports_the_parser_and_the_words_for_types_and_times_alone() -> None:
    for file in Path(tests.oracle.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith(("stairwise", "services")) for alias in node.names), file.name
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("stairwise", "services")):
                assert node.module in SHARED, file.name
                assert node.module != "stairwise.cql" or [alias.name for alias in node.names] == ["ast"], file.name
