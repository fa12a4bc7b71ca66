"""Streams and tables as their CREATE statements declare them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from stairwise.cql import ast
from stairwise.schema import Duration, Type
from tests.oracle.literals import length

_PER_SECOND = {"SECONDS": 1, "MILLISECONDS": 10**3, "MICROSECONDS": 10**6, "NANOSECONDS": 10**9}


@dataclass(frozen=True)
class Stream:
    name: str
    columns: tuple[tuple[str, Type], ...]
    timestamp_by: str | None
    per_second: int
    """What the numbers in its time column count."""
    lateness: Duration = 0
    granule: Duration = 1000
    partition_by: str | None = None
    keys: tuple[str, ...] = ()
    """Of a table, the columns by which a row replaces an earlier one."""
    retroactive: bool = True

    @property
    def is_table(self) -> bool:
        return bool(self.keys)

    def places(self, names: Iterable[str]) -> list[int]:
        """Where some of its columns stand in a row."""
        columns = [name for name, _ in self.columns]
        return [columns.index(name) for name in names]


def options_of(given: Iterable[ast.Option]) -> dict[str, Any]:
    return {option.keyword: option.value for option in given}


def declared(statement: ast.CreateStream | ast.CreateTable) -> Stream:
    options = options_of(statement.options)
    time = options.get("TIMESTAMP")
    unit = "MILLISECONDS" if time is None or time.unit is None else time.unit.text
    return Stream(
        statement.name.text,
        tuple((column.name.text, Type[column.type.text.upper()]) for column in statement.columns),
        None if time is None else time.name.text,
        _PER_SECOND[unit],
        length(options["LATENESS"]) if "LATENESS" in options else 0,
        length(options["GRANULE"]) if "GRANULE" in options else 1000,
        options["PARTITION"].text if "PARTITION" in options else None,
        tuple(key.text for key in options.get("KEY", ())),
        "NON" not in options,
    )


def altered(stream: Stream, statement: ast.AlterStream) -> Stream:
    """Of what ALTER STREAM changes, only LATENESS has to do with answers; DEFAULT is 0."""
    options = options_of(statement.options)
    if "LATENESS" not in options:
        return stream
    return replace(stream, lateness=0 if options["LATENESS"] is None else length(options["LATENESS"]))
