"""Tables: what a stream is joined with, in both meanings of an update, against the oracle and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stairwise.cli.run import run as run_command
from stairwise.cql.script import Catalogue
from stairwise.errors import AlreadyExistsError, NotFoundError, StatementError
from stairwise.plan.explain import explain
from tests.oracle import run
from tests.unit.local.lines import engine_lines

TRADES = "CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts GRANULE 10ms;"
COMPANIES = "CREATE TABLE companies (ticker STRING, name STRING, since TIMESTAMP) KEY (ticker) TIMESTAMP BY since"
JOIN = "SELECT c.name, t.qty FROM trades [RANGE 30ms SLIDE 10ms] t JOIN companies c ON t.ticker = c.ticker"
LAST = "SELECT c.name, t.qty FROM companies c, trades [RANGE 30ms SLIDE 10ms] t WHERE t.ticker = c.ticker"
TWICE = (
    "SELECT c.name, t.qty, u.qty AS other FROM trades [TUMBLE 30ms] t, companies c, trades [TUMBLE 30ms] u"
    " WHERE t.ticker = c.ticker AND u.qty = t.qty"
)
MESSAGES: dict[str, list[dict[str, Any]]] = {
    "trades": [
        {"ts": 5, "ticker": "A", "qty": 1},
        {"ts": 12, "ticker": "B", "qty": 2},
        {"ts": 14, "ticker": None, "qty": 3},
        {"ts": 25, "ticker": "A", "qty": 4},
        {"ts": 60, "ticker": "A", "qty": 5},
    ],
    "companies": [
        {"ticker": "A", "name": "Later", "since": 22},
        {"ticker": "A", "name": "First", "since": -1000},
        {"ticker": "B", "name": "Bee", "since": 40},
    ],
}


def lines(script: str) -> list[tuple[int, int, str, int]]:
    found = engine_lines(script, MESSAGES)
    assert found == run(script, MESSAGES)
    return [(line["time"], line["diff"], line["row"]["name"], line["row"]["qty"]) for line in found]


def test_an_update_of_a_table_changes_what_was_joined_before() -> None:
    assert lines(f"{TRADES}{COMPANIES};{JOIN};") == [
        (10, 1, "First", 1),
        (30, -1, "First", 1),
        (30, 1, "Later", 1),
        (30, 1, "Later", 4),
        (40, -1, "Later", 1),
        (40, 1, "Bee", 2),
        (50, -1, "Bee", 2),
        (60, -1, "Later", 4),
        (60, 1, "Later", 5),
    ]


def test_an_update_of_a_non_retroactive_table_leaves_earlier_rows_as_they_are() -> None:
    assert lines(f"{TRADES}{COMPANIES} NON RETROACTIVE;{JOIN};") == [
        (10, 1, "First", 1),
        (30, 1, "Later", 4),
        (40, -1, "First", 1),
        (60, -1, "Later", 4),
        (60, 1, "Later", 5),
    ]


@pytest.mark.parametrize("retroactive", ["", "NON RETROACTIVE"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT c.name, COUNT(*) FROM trades [ROWS 3] t, companies c WHERE t.ticker = c.ticker GROUP BY c.name",
        "SELECT DISTINCT c.name FROM trades [TUMBLE 20ms] t, companies c WHERE c.name LIKE 'L%'",
        "SELECT t.qty, u.qty AS other, c.name FROM trades [RANGE 40ms SLIDE 20ms] t, trades [RANGE 10ms] u, companies c"
        " WHERE t.ticker = u.ticker AND c.ticker = u.ticker",
        "SELECT t.ticker FROM trades [RANGE 30ms] t EXCEPT"
        " SELECT t.ticker FROM trades [RANGE 30ms] t JOIN companies c ON t.ticker = c.ticker",
    ],
)
def test_tables_join_with_every_window_and_operator(select: str, retroactive: str) -> None:
    script = f"{TRADES}{COMPANIES} {retroactive};{select};"
    assert engine_lines(script, MESSAGES) == run(script, MESSAGES)
    assert engine_lines(script, MESSAGES, remake=True) == run(script, MESSAGES)


@pytest.mark.parametrize("join", [JOIN, JOIN.replace(" t JOIN companies c ON", " t, companies c WHERE"), LAST, TWICE])
def test_rows_of_a_table_without_times_hold_for_ever(join: str, tmp_path: Path) -> None:
    (tmp_path / "q.cql").write_text(
        f"{TRADES} CREATE TABLE companies (ticker STRING, name STRING) KEY (ticker); {join};"
    )
    (tmp_path / "trades.csv").write_text("ts,ticker,qty\n-7,A,1\n5,B,2\n")
    (tmp_path / "companies.csv").write_text("ticker,name\nA,Old\nA,New\n")
    files = [f"{name}={tmp_path / name}.csv" for name in ("trades", "companies")]
    done = CliRunner().invoke(
        run_command, [str(tmp_path / "q.cql"), "--data", files[0], "--data", files[1], "--format", "jsonl", "-q"]
    )
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if '"New"' in line] == done.stdout.splitlines() != []


def test_explain_shows_what_an_update_does_to_results() -> None:
    catalogue = Catalogue()
    catalogue.execute(f"{TRADES}{COMPANIES};CREATE QUERY q AS {JOIN};")
    assert "STR" in explain(catalogue.queries["q"], {})


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (a BIGINT)", "has no key"),
        ("CREATE TABLE t (a BIGINT) KEY (b)", "no column 'b'"),
        ("SELECT name FROM companies", "a table alone never reports"),
        ("SELECT c.name FROM trades [NOW] t, companies [NOW] c", "is a table, which has no window"),
        ("SELECT c.name FROM trades t, companies c", "'trades' has no window"),
    ],
)
def test_what_is_not_defined_for_tables_is_refused_with_a_reason(statement: str, message: str) -> None:
    catalogue = Catalogue()
    catalogue.execute(f"{TRADES}{COMPANIES};")
    with pytest.raises(StatementError, match=message):
        catalogue.execute(statement)


def test_a_table_is_dropped_as_a_table_with_the_queries_that_read_it() -> None:
    catalogue = Catalogue()
    catalogue.execute(f"{TRADES}{COMPANIES};{JOIN};")
    with pytest.raises(NotFoundError):
        catalogue.execute("DROP STREAM companies")
    with pytest.raises(AlreadyExistsError):
        catalogue.execute("CREATE STREAM companies (a BIGINT)")
    catalogue.execute("DROP TABLE companies")
    assert not catalogue.queries
    assert list(catalogue.streams) == ["trades"]
