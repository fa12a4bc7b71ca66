"""The golden cases through the whole system: Kafka, ingest, Spark, results, a subscription.

All cases run at once in the one system, each under names of its own. Their streams get one partition, as `run` gives
them, so that the same rows are late.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass

import pytest

from stairwise.client import Client
from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.script import Catalogue, QueryCreated
from stairwise.reports.lines import line_dicts
from tests.e2e.conftest import System
from tests.golden.cases import GoldenCase, golden_cases

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]

CASES = golden_cases()


@dataclass(frozen=True)
class Renamed:
    """A case under names that no other case has."""

    case: GoldenCase

    def name(self, name: str) -> str:
        return f"g_{self.case.name}_{name}"

    @property
    def queries(self) -> list[str]:
        """The case's own names of its queries, in order of definition."""
        return [c.query.name for c in Catalogue().execute(self.case.script) if isinstance(c, QueryCreated)]

    @property
    def statements(self) -> list[str]:
        queries = iter(self.queries)
        return [self._statement(s, queries) for s in parse_script(self.case.script) if not isinstance(s, ast.Explain)]

    def _statement(self, statement: ast.Statement, queries: Iterator[str]) -> str:
        match statement:
            case ast.CreateStream() | ast.CreateTable():
                return self._replaced(statement.source.text, statement.name) + " PARTITIONS 1"
            case ast.SelectStatement():
                return f"CREATE QUERY {self.name(next(queries))} AS " + self._select(statement)
            case ast.CreateQuery(select=select):
                next(queries)
                return self._replaced(self._select(select), statement.name)
        raise AssertionError(f"a golden case cannot have {statement}")

    def _select(self, select: ast.SelectStatement) -> str:
        """The statement with its streams renamed; columns that go by a stream's own name find it as an alias."""
        text = select.source.text
        for source in reversed(sources(select.relation)):
            if source.alias is None:
                end = source.stream.span.end if source.window is None else text.index("]", source.stream.span.end) + 1
                text = f'{text[:end]} AS "{source.stream.text}"{text[end:]}'
            text = self._replaced(text, source.stream)
        return text

    def _replaced(self, text: str, name: ast.Name) -> str:
        return text[: name.span.start] + self.name(name.text) + text[name.span.end :]


def sources(relation: ast.Relation) -> list[ast.SourceClause]:
    """Where a relation names streams, from left to right."""
    if isinstance(relation, ast.SetOperation):
        return sources(relation.left) + sources(relation.right)
    return list(relation.sources)


@pytest.fixture(scope="module")
def running(system: System) -> Iterator[Client]:
    """Every case declared, fed and sealed."""
    with Client.connect(directory=system.directory) as client:
        renamed = [Renamed(case) for case in CASES]
        client.execute(";\n".join(statement for case in renamed for statement in case.statements))
        declared = {s.name: s.declaration for s in client.streams() if s.name.startswith("g_")}
        inputs = [(case.name(stream), rows) for case in renamed for stream, rows in case.case.messages.items()]
        with futures.ThreadPoolExecutor(16) as pool:
            for kind in ("table", "stream"):  # an update counts from its time on if it is there before the rows of then
                some = [pair for pair in inputs if declared[pair[0]].kind == kind]
                list(pool.map(lambda pair: client.publish(*pair), some))
        client.execute(";".join(f"SEAL {stream.kind.upper()} {name}" for name, stream in declared.items()))
        yield client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_system_gives_the_golden_lines(running: Client, case: GoldenCase) -> None:
    renamed = Renamed(case)
    lines = []
    for order, query in enumerate(renamed.queries):
        with running.subscribe(renamed.name(query), "earliest") as updates:
            for number, update in enumerate(updates):
                lines += [(line["time"], order, number, line) for line in line_dicts(query, update.emission())]
    assert [line for *_, line in sorted(lines, key=lambda item: item[:3])] == case.expected
