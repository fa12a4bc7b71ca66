"""The verbs that talk to a running system: how they are called, and what they say without one."""

from __future__ import annotations

import time
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from stairwise.cli.demo import Names
from stairwise.cli.file_rows import FileRows
from stairwise.cli.main import VERBS, cli, main
from stairwise.cli.prompt import is_complete
from stairwise.cli.publish import _paced
from stairwise.cli.session import Connection, connection_options
from stairwise.cli.subscribe import Start
from stairwise.client import Credentials
from stairwise.cql.parser import parse_script
from stairwise.schema import Column, Stream, Type


@pytest.mark.parametrize(
    "arguments",
    [["sql", "--streams"], ["subscribe", "q"], ["publish", "s", __file__], ["sql", "-e", "DROP QUERY q;"]],
)
def test_without_a_system_every_verb_says_how_to_start_one(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("REGISTRY", "RESULTS", "BROKERS"):
        monkeypatch.delenv(f"STAIRWISE_{variable}", raising=False)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--dir", str(tmp_path)])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "no system is running" in said
    assert "stairwise up" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["subscribe"],
        ["subscribe", "q", "--from", "yesterday"],
        ["subscribe", "q", "--limit", "0"],
        ["publish", "s", "/no/such/file"],
        ["publish", "s", __file__, "--rate", "0"],
        ["sql", "-e", "SELECT 1", __file__],
        ["demo", "--reports", "0"],
    ],
)
def test_a_wrong_call_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("1700000000000", 1700000000000),
        ("-5", -5),
        ("2023-11-14T22:13:20Z", 1700000000000),
    ],
)
def test_where_to_begin(said: str, meant: str | int) -> None:
    assert Start().convert(said, None, None) == meant


@pytest.mark.parametrize(
    "script",
    ["SELECT 1;", "a;\nb ; \n", "SELECT ';' ;", "a; -- the end", "SELECT 'it''s';", 'SELECT "a;b";', "a /* ; */;"],
)
def test_a_script_that_is_complete(script: str) -> None:
    assert is_complete(script)


@pytest.mark.parametrize(
    "script", ["", "SELECT 1", "SELECT ';", 'SELECT "a;', "SELECT 1 -- ;", "/* a; ", "a; b", "SELECT 'a;'"]
)
def test_a_script_that_goes_on(script: str) -> None:
    assert not is_complete(script)


def test_lines_are_published_as_they_are_without_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"a": 1}\r\n\n  \nnot json\n{"b": 2}')
    source = FileRows(Stream("s", (Column("a", Type.BIGINT),)), str(tmp_path / "rows.jsonl"))
    assert [line for some in source.portions() for line in some] == [b'{"a": 1}', b"not json", b'{"b": 2}']


def test_a_rate_is_kept() -> None:
    begun = time.monotonic()
    lines = [line for block in _paced(iter([[b"x"] * 30, [b"y"] * 30]), 200) for line in block]
    assert lines == [b"x"] * 30 + [b"y"] * 30
    assert time.monotonic() - begun >= 50 / 200  # the last beat need not be waited for


def test_a_second_demo_takes_names_of_its_own() -> None:
    first, second = Names(1), Names(2)
    assert first.stream == "trades"
    assert not {first.stream, *first.queries} & {second.stream, *second.queries}


def test_the_demo_s_script_is_cql() -> None:
    assert len(parse_script(Names(2).script)) == 4


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_what_makes_it_complete(shell: str) -> None:
    printed = CliRunner().invoke(cli, ["completion", shell])
    assert printed.exit_code == 0
    assert "_STAIRWISE_COMPLETE" in printed.output


def test_a_shell_is_offered_verbs_and_options_and_no_error_without_a_system(tmp_path: Path) -> None:
    complete = ShellComplete(cli, {}, "stairwise", "_STAIRWISE_COMPLETE")
    assert {"sql", "subscribe", "explain"} <= {item.value for item in complete.get_completions([], "")}
    assert [item.value for item in complete.get_completions(["subscribe"], "--pl")] == ["--plot"]
    assert complete.get_completions(["subscribe", "--dir", str(tmp_path)], "vol") == []


CONNECTING = (["sql"], ["subscribe"], ["publish"], ["explain"], ["dlq", "show"], ["dlq", "replay"])


@pytest.mark.parametrize("verb", CONNECTING, ids=" ".join)
def test_every_verb_that_connects_can_be_told_how(verb: list[str]) -> None:
    shown = CliRunner().invoke(cli, [*verb, "--help"]).output
    for option in ("--dir", "--registry", "--results", "--brokers", "--tls-ca", "--tls-cert", "--token-file"):
        assert option in shown


def test_options_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("from the file\n")
    monkeypatch.setenv("STAIRWISE_REGISTRY", "127.0.0.1:1")
    monkeypatch.delenv("STAIRWISE_TOKEN", raising=False)
    seen: list[Connection] = []

    @click.command()
    @connection_options
    def look(connection: Connection) -> None:
        seen.append(connection)

    arguments = ["--registry", "127.0.0.1:2", "--token-file", str(token)]
    assert CliRunner().invoke(look, arguments).exit_code == 0
    with seen[0].client() as client:
        assert client.addresses.registry == "127.0.0.1:2"
    assert Credentials.from_environment(seen[0].said).token == "from the file"


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("dlq", "down", "status")])
def test_help_shows_how_a_verb_is_typed(verb: str) -> None:
    assert f"stairwise {verb}" in CliRunner().invoke(cli, [verb, "--help"]).output.split("Options:")[0]
