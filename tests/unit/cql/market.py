"""The streams that the CQL tests speak of, and short ways to resolve a statement over them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stairwise.algebra.query import Query, Relation, Select
from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query, resolve_stream
from stairwise.errors import StatementError
from stairwise.schema import Stream
from stairwise.windows.spec import Window

DECLARATIONS = """
CREATE STREAM trades (ts TIMESTAMP, ticker STRING NOT NULL, price DOUBLE, qty BIGINT, odd BOOLEAN)
  TIMESTAMP BY ts LATENESS 2 SECONDS;
CREATE STREAM quotes (ts TIMESTAMP, ticker STRING, price DOUBLE, level BIGINT) TIMESTAMP BY ts GRANULE 100 ms;
CREATE STREAM halted (at TIMESTAMP, ticker STRING) TIMESTAMP BY at;
CREATE STREAM words (word STRING, n BIGINT);
"""


def streams() -> dict[str, Stream]:
    declared = (s for s in parse_script(DECLARATIONS) if isinstance(s, ast.CreateStream))
    return {stream.name: stream for stream in map(resolve_stream, declared)}


STREAMS = streams()


def query(text: str) -> Query:
    (statement,) = parse_script(text)
    assert isinstance(statement, ast.SelectStatement)
    return resolve_query("q1", statement, STREAMS)


def relation(text: str) -> Relation:
    return query(text).relation


def select(text: str) -> Select:
    found = relation(text)
    assert isinstance(found, Select)
    return found


def window(clause: str) -> Window | None:
    return select(f"SELECT COUNT(*) AS n FROM trades {clause}").inputs[0].window


def expect_refusal(marked: str, message: str, hint: str, resolve: Callable[[str], object] = query) -> StatementError:
    """A statement is refused with an error that points at what stands between « and »."""
    start = marked.index("«")
    found = marked[start + 1 : marked.index("»")]
    with pytest.raises(StatementError) as caught:
        resolve(marked.replace("«", "").replace("»", ""))
    error = caught.value
    assert (error.line, error.column) == (
        marked.count("\n", 0, start) + 1,
        start - (marked.rfind("\n", 0, start) + 1) + 1,
    )
    assert error.text == found[:80]
    assert message in error.message
    assert hint in error.hint
    return error
