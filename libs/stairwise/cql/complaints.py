"""What to say about text that is no statement: what was possible, in words, and a guess at what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Set

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from stairwise.cql.other_dialects import dialect_hint, forgotten_semicolon
from stairwise.cql.source import Source, Span
from stairwise.errors import StatementError

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a name",
    "STRING": "a string",
    "INTEGER": "a whole number",
    "DECIMAL": "a number",
    "UNIT": "a unit such as SECONDS",
    "DURATION": "a duration such as 10 SECONDS",
    "SIZE_UNIT": "a unit such as MB",
    "SIZE": "a size such as 64 MB",
    "COMPARISON": "a comparison",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "a window such as [RANGE 60 SECONDS SLIDE 10 SECONDS]",
    "RSQB": "']'",
    "COMMA": "','",
    "DOT": "'.'",
    "STAR": "'*'",
    "MINUS": "'-'",
    "PLUS": "'+'",
    "COLONS": "'::'",
    "ORDER_BY": "ORDER BY",
    "IF_EXISTS": "IF EXISTS",
    "IF_NOT_EXISTS": "IF NOT EXISTS",
    "OR_REPLACE": "OR REPLACE",
    "$END": "the end of the statement",
}

# Sets of tokens that are one thing to a reader; the first that fits takes its tokens out of the list.
_GROUPS: tuple[tuple[Set[str], Set[str], str], ...] = (
    (
        {"NAME", "INTEGER", "STRING", "CASE"},
        {
            "NAME",
            "QUOTED",
            "INTEGER",
            "DECIMAL",
            "STRING",
            "CASE",
            "LPAR",
            "MINUS",
            "PLUS",
            "NOT",
            "NULL",
            "TRUE",
            "FALSE",
        },
        "an expression",
    ),
    ({"DURATION"}, {"DURATION", "INTEGER", "DECIMAL"}, "a duration such as 10 SECONDS"),
    ({"SIZE"}, {"SIZE", "INTEGER", "DECIMAL"}, "a size such as 64 MB"),
    (
        {"STRING", "INTEGER", "TIMESTAMP"},
        {"STRING", "INTEGER", "TIMESTAMP", "MINUS"},
        "an instant, in milliseconds or as '2026-01-31T12:00:00Z'",
    ),
    (
        {"PLUS", "MINUS", "SLASH"},
        {
            "PLUS",
            "MINUS",
            "STAR",
            "SLASH",
            "PERCENT",
            "CONCAT",
            "COLONS",
            "COMPARISON",
            "AND",
            "OR",
            "IS",
            "IN",
            "LIKE",
            "BETWEEN",
            "NOT",
        },
        "an operator",
    ),
)

_SHOWN = 11


def syntax_error(lark: Lark, source: Source) -> StatementError:
    """The error for a statement that Lark refuses: parsed again, step by step, to see what was possible."""
    parser = lark.parse_interactive(source.text)
    problem: UnexpectedInput | None = None
    try:
        for _ in parser.iter_parse():
            pass
        parser.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        problem = error
    accepted = parser.accepts()  # type: ignore[no-untyped-call]
    expected = _in_words(accepted)

    if isinstance(problem, UnexpectedToken) and problem.token.type != "$END":
        token: Token = problem.token
        start = token.start_pos or 0
        span = Span(start, start + len(token))
        hint = _hint(source, span, accepted)
        return source.error(span, f"{str(token)!r} does not fit here", expected=expected, hint=hint)
    if isinstance(problem, UnexpectedCharacters):
        start = problem.pos_in_stream or 0
        span = Span(start, start + 1)
        return source.error(
            span,
            f"{source.slice(span)!r} does not fit here",
            expected=expected,
            hint=_sign_hint(source, span) or dialect_hint(source.text, span),
        )
    end = len(source.text)
    span = Span(end, end)
    return source.error(span, "the statement ends too early", expected=expected, hint=_hint(source, span, accepted))


def _in_words(accepted: Collection[str]) -> str:
    left = set(accepted)
    words: list[str] = []
    for needed, taken, word in _GROUPS:
        if needed <= left:
            left -= taken
            words.append(word)
    words += sorted({_WORDS.get(token, token) for token in left}, key=_plain_last)
    if len(words) > _SHOWN:
        words = [*words[:_SHOWN], "..."]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _plain_last(word: str) -> tuple[bool, str]:
    """Keywords first, signs after them, the end last: the order in which a reader looks for a mistake."""
    return (not word[:1].isupper(), word)


_WORD = re.compile(r"\w+")


def _hint(source: Source, span: Span, accepted: Collection[str]) -> str:
    """A likely mistake: a word of another dialect, a reserved or misspelt word, here or just before."""
    found = source.slice(span)
    before = _word_before(source.text, span.start)
    known = forgotten_semicolon(source.text, span) or dialect_hint(source.text, span)
    if known:
        return known
    if found == "[":
        return "a window stands right after its stream, before the alias: trades [RANGE 60 SECONDS] t"
    if "NAME" in accepted and source.text[: span.start].rstrip().endswith(","):
        return f"leave out the comma before {found}" if found else "something is to follow the comma"
    if "NAME" in accepted and found.isidentifier():
        return f'{found} is a reserved word: as a name, write it in double quotes, "{found}"'
    keywords = [token for token in accepted if token.isalpha() and token not in _WORDS]
    for word in (found, before):
        close = difflib.get_close_matches(word.upper(), keywords, n=1, cutoff=0.7)
        if close and close[0] != word.upper():
            return f"did you mean {close[0]} instead of {word}?"
    if _ALTERING.match(source.text):
        return _alteration_hint(found, accepted)
    if "UNIT" in accepted:
        return "say the unit: MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS"
    if "SIZE_UNIT" in accepted:
        return "say the unit: BYTES, KB, MB, GB, KiB, MiB or GiB"
    return ""


_ALTERING = re.compile(r"\s*ALTER\b", re.IGNORECASE)


def _alteration_hint(found: str, accepted: Collection[str]) -> str:
    if "STREAM" in accepted:
        return f"only streams are altered: DROP the {found.lower()} and CREATE it again" if found else ""
    if "DEFAULT" in accepted:
        return "DEFAULT takes the option away"
    if "COMMA" in accepted:
        return "put a comma between two options"
    return (
        "ALTER STREAM name SET ... changes LATENESS, IDLE AFTER and RETAIN, and nothing is dropped; for anything else,"
        " DROP STREAM and CREATE STREAM again"
    )


def _word_before(text: str, position: int) -> str:
    words = _WORD.findall(text, max(0, position - 60), position)
    return words[-1] if words else ""


def _sign_hint(source: Source, span: Span) -> str:
    found = source.slice(span)
    if found in "‘’“”`":
        return "strings stand in 'single' quotes, names in \"double\" quotes"
    if found.isspace():
        return "this is an unusual blank: write a plain one"
    if found == "=":
        return "comparison for equality is a single ="
    if found.isdecimal() or found == ".":
        return "a number ends at a blank or a sign; a duration has no place in an expression"
    return ""
