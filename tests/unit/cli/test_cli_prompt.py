"""The prompt, as a person at a terminal has it: a pseudo-terminal, a real readline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal

TALK = r"""
from stairwise.cli.prompt import scripts
from stairwise.cql.completion import Known
known = Known({"trades": ["ts", "ticker"]}, ["volumes"])
for script in scripts(("\\streams", "\\subscribe"), lambda: known):
    print(f"<{script!r}>", flush=True)
print("<ended>", flush=True)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(TALK, tmp_path)
    terminal.expect("stairwise> ")
    yield terminal
    terminal.close()


def test_a_statement_may_span_lines_and_ends_with_a_semicolon(terminal: Terminal) -> None:
    terminal.type("SELECT COUNT(*)\n")
    terminal.expect("... ")
    terminal.type("FROM trades [NOW];\n")
    terminal.expect("<'SELECT COUNT(*)\\nFROM trades [NOW];'>")
    terminal.type("\\streams\n")
    terminal.expect("<'\\\\streams'>")


def test_tab_completes_keywords_and_names(terminal: Terminal) -> None:
    terminal.type("SEA\tSTR\ttr\t;\n")
    terminal.expect("<'SEAL STREAM trades ;'>")
    terminal.type("SELECT ticker\n")
    terminal.expect("... ")
    terminal.type("FR\ttra\t[NOW];\n")
    terminal.expect("<'SELECT ticker\\nFROM trades [NOW];'>")
    terminal.type("\\sub\tvol\t\n")
    terminal.expect("<'\\\\subscribe")


def test_ctrl_c_forgets_what_was_typed_and_ctrl_d_ends(terminal: Terminal) -> None:
    terminal.type("SELECT nonsense\n")
    terminal.expect("... ")
    terminal.interrupt("stairwise> ")
    terminal.type("DROP QUERY q;\n")
    terminal.expect("<'DROP QUERY q;'>")
    terminal.expect("stairwise> ")
    terminal.type("\x04")
    terminal.expect("<ended>")
    assert terminal.process.wait(30) == 0


def test_history_is_there_again_and_nobody_else_s_business(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("DROP QUERY remembered;\n")
    terminal.expect("<'DROP QUERY remembered;'>")
    terminal.expect("stairwise> ")
    terminal.type("exit\n")
    terminal.expect("<ended>")
    assert terminal.process.wait(30) == 0
    assert (tmp_path / "stairwise" / "history").stat().st_mode & 0o077 == 0
    again = Terminal(TALK, tmp_path)
    again.expect("stairwise> ")
    again.type("\x10\x10\n")  # Ctrl-P, twice: "exit" was the last
    again.expect("<'DROP QUERY remembered;'>")
    again.close()
