"""docs/lookups.md: every SELECT in it is a lookup."""

from __future__ import annotations

import re

import pytest

from stairwise.cql.script import Catalogue
from stairwise.lookups.statement import read_lookup
from stairwise.platform.config import SOURCE_TREE

PAGE = (SOURCE_TREE / "docs" / "lookups.md").read_text()
STATEMENTS = re.findall(r'"(SELECT [^"]*[^".])"', PAGE)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_of_the_page_is_a_lookup(statement: str) -> None:
    streams = Catalogue()
    streams.execute("CREATE STREAM trades (ts TIMESTAMP, ticker STRING, price DOUBLE, qty BIGINT) TIMESTAMP BY ts;")
    assert read_lookup(statement, streams.streams).needs


def test_the_page_has_statements() -> None:
    assert len(STATEMENTS) >= 4
