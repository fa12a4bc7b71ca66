"""The prompt of `stairwise sql`: lines with history and completion, gathered into scripts."""

from __future__ import annotations

import os
import re
import readline
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from stairwise.cql.completion import Known, completions

PROMPT, GO_ON = "stairwise> ", "       ... "
LEAVING = ("\\q", "quit", "exit")
MOST_LINES = 10_000
"""How many lines the history keeps."""

_QUIET_PARTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""Where a semicolon does not end a statement: literals, quoted names, comments."""


def scripts(commands: tuple[str, ...], known: Callable[[], Known]) -> Iterator[str]:
    """What is typed, a script or a command with a backslash at a time, until Ctrl-D. Ctrl-C forgets the lines so far.

    ``known`` is asked for names when Tab is first pressed in a script.
    """
    completer = _Completer(commands, known)
    with _history(), _completing(completer):
        while (script := _script(completer)) is not None:
            yield script


def _script(completer: _Completer) -> str | None:
    """The next one; None at the end."""
    script = ""
    while not script.strip() or not (script.lstrip().startswith("\\") or is_complete(script)):
        try:
            completer.begin(script + "\n" if script else "")
            line = input(GO_ON if script else PROMPT)
            if not script and line.strip().lower().rstrip(";") in LEAVING:
                return None
            script = f"{script}\n{line}" if script else line
        except EOFError:
            click.echo()
            return None
        except KeyboardInterrupt:
            click.echo()
            script = ""
    return script.strip()


def is_complete(script: str) -> bool:
    """Does a script end with a semicolon that ends a statement?"""
    rest = _QUIET_PARTS.sub(lambda part: "" if part[0].startswith(("--", "/*")) else "x", script)
    return rest.rstrip().endswith(";") and not re.search(r"""['"]|/\*""", rest)


class _Completer:
    """Answers readline: the n-th word that can stand where the cursor is."""

    def __init__(self, commands: tuple[str, ...], ask: Callable[[], Known]) -> None:
        self._commands = commands
        self._ask = ask
        self._known: Known | None = None
        self._before = ""
        self._found: list[str] = []

    def begin(self, before: str) -> None:
        """The lines above the one that is edited."""
        self._before = before
        if not before:
            self._known = None  # what was defined meanwhile is asked for again

    def complete(self, word: str, number: int) -> str | None:
        if number == 0:
            self._found = self.find(readline.get_line_buffer()[: readline.get_endidx()])
        return self._found[number] if number < len(self._found) else None

    def find(self, line: str) -> list[str]:
        if self._known is None:
            self._known = self._ask()
        if line.startswith("\\") and not self._before:
            command, blank, argument = line.partition(" ")
            if not blank:
                return [c for c in self._commands if c.startswith(command)]
            return [query + " " for query in self._known.queries if query.startswith(argument)]
        return [found + " " for found in completions(self._before + line, self._known)]


@contextmanager
def _completing(completer: _Completer) -> Iterator[None]:
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(completer.complete)
    readline.set_completer_delims(" \t\n,;()[]=<>+-*/%|'")
    # macOS's readline is libedit, which has a language of its own.
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)


@contextmanager
def _history() -> Iterator[None]:
    """What was typed before is there again, and what is typed now is kept, for this user's eyes only."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = state / "stairwise" / "history"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        readline.read_history_file(path)
    readline.set_history_length(MOST_LINES)
    try:
        yield
    finally:
        path.touch(0o600)
        readline.write_history_file(path)
