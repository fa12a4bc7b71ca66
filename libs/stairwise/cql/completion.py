"""What may come next in a statement that is being typed: the parser is asked, so it is what the grammar says.

    SELECT COUNT(*) FROM trades [RANGE 1 ▮        the parser accepts UNIT: MILLISECONDS, SECONDS, MINUTES, ...
    SELECT COUNT(*) FR▮                           before the word: FROM and AS, of which FROM begins like it
    SEAL STREAM ▮                                 a NAME, behind STREAM: that of a stream

The words before the cursor tell which names fit; nothing is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from stairwise.aggregates.catalogue import AGGREGATES
from stairwise.cql.parser import lark
from stairwise.cql.source import statements
from stairwise.errors import StatementError
from stairwise.expressions.functions import SCALARS
from stairwise.schema import Type

UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
SIZE_UNITS = ("BYTES", "KB", "MB", "GB", "KiB", "MiB", "GiB")
TYPES = tuple(type_.value for type_ in Type if type_ is not Type.HUGEINT)
FUNCTIONS = tuple(sorted({*SCALARS, *AGGREGATES}))

_CLAUSES = frozenset({"SELECT", "FROM", "ON", "WHERE", "GROUP", "HAVING"})
_SENTINEL = "x"
"""A word at the cursor, which vanishes where the cursor is in a comment."""
_WORD_BEGUN = re.compile(r"\w+$", re.ASCII)


@dataclass(frozen=True)
class Known:
    """The names that there are: streams with their columns, and queries."""

    streams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    queries: Sequence[str] = ()


def completions(text: str, known: Known) -> list[str]:
    """What the word that ``text`` ends with can become; with a blank at the end, what the next word can be."""
    begun = _WORD_BEGUN.search(text)
    word = begun.group() if begun is not None else ""
    before = _last_statement(text[: len(text) - len(word)])
    if before is None:
        return []
    tokens, accepted = _accepted(lark(), before)
    words: list[str] = []
    if "NAME" in accepted:
        words += _names(tokens, known)
    words += UNITS if "UNIT" in accepted else ()
    words += SIZE_UNITS if "SIZE_UNIT" in accepted else ()
    words += sorted(token for token in accepted if token in _keywords())
    return _beginning_with(word, words)


def _last_statement(text: str) -> str | None:
    """The statement that the text ends in; None inside a string or a comment."""
    try:
        *_, last = statements(text + _SENTINEL)
    except (StatementError, ValueError):
        return None
    return last.text.removesuffix(_SENTINEL) if last.text.endswith(_SENTINEL) else None


def _accepted(parser: Lark, text: str) -> tuple[list[Token], set[str]]:
    """The tokens so far, and the kinds that may follow; none where the text is wrong already."""
    state = parser.parse_interactive(text)
    tokens: list[Token] = []
    try:
        for token in state.iter_parse():
            tokens.append(token)
    except UnexpectedInput:
        return tokens, set()
    return tokens, set(state.accepts())  # type: ignore[no-untyped-call]


def _names(tokens: Sequence[Token], known: Known) -> list[str]:
    """The names that fit behind the last words; none where the user makes one up."""
    words = [str(token).upper() for token in tokens]
    first, last = (words[0], words[-1]) if words else ("", "")
    clause = next((word for word in reversed(words) if word in _CLAUSES), "")
    is_named = last in ("STREAM", "TABLE") and first != "CREATE"
    if last == "DESCRIBE":
        return [_written(name) for name in (*known.streams, *known.queries)]
    if is_named or last in ("FROM", "JOIN") or (last == "," and clause == "FROM"):
        return [_written(name) for name in known.streams]
    if last == "EXPLAIN" or (last == "QUERY" and first in ("DROP", "RESTART")):
        return [_written(name) for name in known.queries]
    if not clause:
        return list(TYPES) if tokens and tokens[-1].type in ("NAME", "QUOTED") and "(" in words else []
    if last in (")", "]", "AS") or tokens[-1].type in ("NAME", "QUOTED"):
        return []
    return [*_columns(tokens, known), *FUNCTIONS]


def _columns(tokens: Sequence[Token], known: Known) -> list[str]:
    """The columns of the streams that the statement names; of all streams, while it names none."""
    named = [known.streams[name] for token in tokens if (name := _read(str(token))) in known.streams]
    return sorted({_written(column) for columns in named or known.streams.values() for column in columns})


def _beginning_with(word: str, words: Iterable[str]) -> list[str]:
    """Keywords in the case in which they were begun."""
    lower = word.islower()
    shaped = (w.lower() if lower and w.isupper() and w.lower().startswith(word) else w for w in words)
    return list(dict.fromkeys(w for w in shaped if w.lower().startswith(word.lower()) and w != word))


def _written(name: str) -> str:
    """A name as one has to write it."""
    return name if _name_pattern().fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _read(written: str) -> str:
    return written[1:-1].replace('""', '"') if written.startswith('"') else written


@cache
def _keywords() -> frozenset[str]:
    """The grammar's terminals that are words, which go by their own names."""
    return frozenset(t.name for t in lark().terminals if t.name == t.pattern.value)


@cache
def _name_pattern() -> re.Pattern[str]:
    """What is a name without quotes."""
    pattern = next(t.pattern.to_regexp() for t in lark().terminals if t.name == "NAME")
    return re.compile(pattern, re.ASCII)
