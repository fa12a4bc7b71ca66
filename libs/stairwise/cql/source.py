"""Where things stand in a script: spans, positions, and the cut of a script into statements.

A script is cut at its semicolons before anything is parsed, by one linear scan that also counts what a
hostile author could make too much of: characters, tokens, nesting. What passes is small enough for all that
follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stairwise.errors import StatementError

MAX_SCRIPT = 8_000_000
"""Characters of a script."""
MAX_STATEMENTS = 20_000
"""Statements of a script."""
MAX_STATEMENT = 100_000
"""Characters of a statement."""
MAX_TOKENS = 8_000
"""Words, numbers, strings and signs of a statement."""
MAX_NESTING = 50
"""How deep brackets and CASE may stand inside each other."""

_LONGEST_LINE_SHOWN = 500
_LONGEST_TEXT_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a statement."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(self.start, other.end)


@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """One statement of a script: the characters ``start`` to ``end`` (exclusive)."""

    script: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.script[self.start : self.end]

    def slice(self, span: Span) -> str:
        return self.script[self.start + span.start : self.start + span.end]

    def error(self, span: Span, message: str, *, expected: str = "", hint: str = "") -> StatementError:
        """The error that points at ``span``."""
        return _error_at(
            self.script, self.start + span.start, self.start + span.end, message, expected=expected, hint=hint
        )


def _error_at(script: str, start: int, end: int, message: str, *, expected: str = "", hint: str = "") -> StatementError:
    begin_of_line = script.rfind("\n", 0, start) + 1
    end_of_line = script.find("\n", start)
    line = script[begin_of_line : end_of_line if end_of_line >= 0 else len(script)].rstrip("\r")
    return StatementError(
        message,
        line=script.count("\n", 0, start) + 1,
        column=start - begin_of_line + 1,
        text=script[start : min(end, start + _LONGEST_TEXT_SHOWN)],
        expected=expected,
        hint=hint,
        source_line=line.replace("\t", " ") if len(line) <= _LONGEST_LINE_SHOWN else "",
    )


# Possessive quantifiers (++ and *+) keep an unterminated string or comment from being scanned over and over.
_PIECE = re.compile(
    r"""
      (?P<blank> \s++ | --[^\n]*+ | /\*(?:[^*]++|\*(?!/))*+\*/ )
    | (?P<string> '(?:[^']++|'')*+' | "(?:[^"]++|"")*+" )
    | (?P<open> [(\[] | \bCASE\b )
    | (?P<close> [)\]] | \bEND\b )
    | (?P<semicolon> ; )
    | (?P<unfinished> ' | " | /\* )
    | (?P<other> \w++ | . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE | re.ASCII,
)

_UNFINISHED = {"'": "string", '"': "quoted name", "/*": "comment"}


def statements(script: str) -> Iterator[Source]:
    """The statements of a script, without the blanks and comments around them; empty ones are left out."""
    if len(script) > MAX_SCRIPT:
        raise _error_at(
            script,
            0,
            0,
            f"the script is longer than {MAX_SCRIPT:,} characters",
            hint="send it in several parts",
        )
    try:
        script.encode()
    except UnicodeEncodeError as error:
        raise _error_at(script, error.start, error.end, "this is no text: half of a character") from None
    start: int | None = None
    end = tokens = nesting = found = 0
    for piece in _PIECE.finditer(script):
        kind = piece.lastgroup
        if kind == "blank":
            continue
        if kind == "semicolon":
            if start is not None:
                yield Source(script, start, end)
            start, tokens, nesting = None, 0, 0
            continue
        if start is None:
            start = piece.start()
            found += 1
            if found > MAX_STATEMENTS:
                said = f"the script has more than {MAX_STATEMENTS:,} statements"
                raise _error_at(script, start, piece.end(), said, hint="send it in several parts")
        end = piece.end()
        tokens += 1
        if kind == "open":
            nesting += 1
        elif kind == "close":
            nesting -= 1
        elif kind == "unfinished":
            what = _UNFINISHED[piece.group()]
            raise _error_at(script, piece.start(), end, f"this {what} does not end", hint=f"close the {what}")
        if tokens > MAX_TOKENS or end - start > MAX_STATEMENT or nesting > MAX_NESTING:
            raise _error_at(script, piece.start(), end, _too_much(tokens, nesting))
    if start is not None:
        yield Source(script, start, end)


def _too_much(tokens: int, nesting: int) -> str:
    if nesting > MAX_NESTING:
        return f"brackets and CASE nest deeper than {MAX_NESTING} levels"
    if tokens > MAX_TOKENS:
        return f"the statement has more than {MAX_TOKENS:,} words and signs"
    return f"the statement is longer than {MAX_STATEMENT:,} characters"
