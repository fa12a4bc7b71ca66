"""Which column a name means: the inputs of a SELECT side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from stairwise.algebra.query import Input
from stairwise.cql import ast
from stairwise.cql.other_dialects import COLUMNS
from stairwise.cql.source import Source
from stairwise.errors import nearest
from stairwise.expressions.tree import Field


@dataclass(frozen=True)
class NameScope:
    """The inputs that an expression can see; their columns count through from the first input's first."""

    inputs: tuple[Input, ...]

    def fields(self, of: Input | None = None) -> Iterator[tuple[Input, Field]]:
        """The columns of all inputs, or of one."""
        index = 0
        for input_ in self.inputs:
            for column in input_.stream.columns:
                if of is None or of is input_:
                    yield input_, Field(index, column.name, column.type)
                index += 1

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[Input, Field]]]:
        found: dict[str, list[tuple[Input, Field]]] = {}
        for input_, field in self.fields():
            found.setdefault(field.name, []).append((input_, field))
        return found

    def find(self, name: str, of: Input | None = None) -> list[tuple[Input, Field]]:
        """Every column of that name, in order."""
        return [(i, f) for i, f in self._by_name.get(name, ()) if of is None or of is i]

    def input(self, source: Source, alias: ast.Name) -> Input:
        for input_ in self.inputs:
            if input_.alias == alias.text:
                return input_
        renamed = {i.stream.name: i.alias for i in self.inputs}.get(alias.text)
        hint = (
            f"it is called {renamed!r} here"
            if renamed
            else nearest(alias.text, [i.alias for i in self.inputs], "input")
        )
        raise source.error(alias.span, f"there is no {alias.text!r} in FROM", hint=hint)

    def resolve(self, source: Source, column: ast.ColumnRef) -> Field:
        """The one column that is meant, or an error that names the nearest or asks which."""
        qualifier = None if column.qualifier is None else self.input(source, column.qualifier)
        found = self.find(column.name.text, qualifier)
        if len(found) == 1:
            return found[0][1]
        if found:
            choices = " or ".join(f"{input_.alias}.{column.name.text}" for input_, _ in found)
            raise source.error(column.span, f"{column.name.text!r} could mean several columns", hint=f"write {choices}")
        where = f"stream {qualifier.stream.name!r} has" if qualifier else "there is"
        known = [field.name for _, field in self.fields(qualifier)]
        hint = nearest(column.name.text, dict.fromkeys(known), "column")
        if column.name.quoted:
            hint += "; strings stand in 'single' quotes"
        raise source.error(
            column.name.span,
            f"{where} no column {column.name.text!r}",
            hint=COLUMNS.get(column.name.text.upper(), hint),
        )
