"""Names say one thing: a class name occurs once, and a module is called what it holds."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
VOCABULARIES = {"stairwise/cql/ast.py", "stairwise/plan/logical.py"}
"""Nodes of trees, which are always written with the name of their module: ``ast.Select``, ``logical.Select``."""
SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}


def modules() -> Iterator[Path]:
    for folder in (ROOT / "libs" / "stairwise", ROOT / "services"):
        yield from (path for path in folder.rglob("*.py") if "stairwise/v1" not in path.as_posix())


def test_a_public_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for path in modules():
        if any(path.as_posix().endswith(vocabulary) for vocabulary in VOCABULARIES):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_nodes_of_trees_are_written_with_their_module() -> None:
    taken = [
        f"{path.relative_to(ROOT)}: {alias.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in ("stairwise.cql.ast", "stairwise.plan.logical")
        for alias in node.names
        if alias.name[0].isupper() and alias.name != "Plan"
    ]
    assert taken == []


def test_a_module_is_called_what_it_holds() -> None:
    assert [path for path in modules() if SAY_NOTHING & {path.stem, path.parent.name}] == []
