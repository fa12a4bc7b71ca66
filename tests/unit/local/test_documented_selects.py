"""Every SELECT of docs/cql.md prints on the local engine what the oracle reads in it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from tests.oracle import run
from tests.unit.local.lines import engine_lines

PAGE = (Path(__file__).parents[3] / "docs" / "cql.md").read_text(encoding="utf-8")
(DECLARED, *EXAMPLES) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DECLARED = DECLARED.replace("page STRING)", "page STRING, at TIMESTAMP) TIMESTAMP BY at")
"""With a time for the one stream that takes it from Kafka."""
START = 1_769_860_770_000
"""2026-01-31T11:59:30Z: inside and outside of what the examples speak of."""


def scripts() -> Iterator[str]:
    """Each SELECT that answers exactly, behind the declarations that it needs."""
    for example in EXAMPLES:
        statements = parse_script(example)
        tables = [s.source.text for s in statements if isinstance(s, ast.CreateTable)]
        for statement in statements:
            select = statement.select if isinstance(statement, ast.CreateQuery) else statement
            if isinstance(select, ast.SelectStatement) and not re.search(r"APPROX_|FROM odd|FROM team", select.text):
                yield ";\n".join([DECLARED.rstrip().rstrip(";"), *tables, select.text])


def rows(chance: random.Random, count: int, time: str, **columns: list[Any]) -> list[dict[str, Any]]:
    times = sorted(START + chance.randrange(90) * 1000 + chance.choice([0, 0, 250]) for _ in range(count))
    return [{time: ts} | {name: chance.choice(values) for name, values in columns.items()} for ts in times]


@pytest.mark.parametrize(
    "script", list(scripts()), ids=lambda script: re.sub(r"\s+", " ", script.split(";\n")[-1])[:80]
)
def test_a_select_of_the_reference_prints_what_the_oracle_reads_in_it(script: str) -> None:
    chance, tickers = random.Random(script), ["A", "B", "XY"]
    prices, counts = [9.5, 10.0, 101.5, 0.5, -1.0, None], [1, 2, 7, 1200, -3, None]
    retail = [True, False, None]
    messages = {
        "trades": rows(chance, 25, "ts", ticker=tickers, price=prices, qty=counts, retail=retail),
        "quotes": rows(chance, 15, "ts", ticker=[*tickers, None], price=prices, depth=counts),
        "halted": rows(chance, 8, "at", ticker=[*tickers, None]),
        "clicks": rows(chance, 20, "at", user=["u", "v", "w"], page=["/", "/a"]),
        "companies": rows(chance, 4, "since", ticker=tickers, name=["old", "new"]),
        "limits": [{"ticker": "A", "most": 1}, {"ticker": "B", "most": 5}],
    }
    assert engine_lines(script, messages, chance=chance) == run(script, messages)
