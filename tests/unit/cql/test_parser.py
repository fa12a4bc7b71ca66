"""Scripts, statements, names and comments; what is said about text that is no statement; limits."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.cql.source import MAX_NESTING, MAX_SCRIPT, MAX_STATEMENT, MAX_TOKENS
from stairwise.errors import StatementError
from tests.unit.cql.market import STREAMS


def refusal(text: str) -> StatementError:
    with pytest.raises(StatementError) as caught:
        parse_script(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE STREAM s (a BIGINT)", ast.CreateStream),
        ("ALTER STREAM s SET LATENESS 5s", ast.AlterStream),
        ("DROP STREAM s", ast.DropStream),
        ("SEAL STREAM s", ast.SealStream),
        ("SEAL TABLE s", ast.SealTable),
        ("CREATE QUERY q AS SELECT a FROM s", ast.CreateQuery),
        ("DROP QUERY q", ast.DropQuery),
        ("RESTART QUERY q", ast.RestartQuery),
        ("EXPLAIN q", ast.Explain),
        ("EXPLAIN SELECT a FROM s", ast.Explain),
        ("SELECT a FROM s", ast.SelectStatement),
        ("(SELECT a FROM s)", ast.SelectStatement),
        (
            "(SELECT a FROM s) UNION ALL (SELECT a FROM s EXCEPT SELECT a FROM t) EMIT RSTREAM",
            ast.SelectStatement,
        ),
    ],
)
def test_every_kind_of_statement_parses_in_any_case(text: str, kind: type) -> None:
    for spelled in (text, text.lower(), text + ";", f"\n\t{text} ;; "):
        (statement,) = parse_script(spelled)
        assert isinstance(statement, kind)


def test_a_script_is_cut_at_semicolons_outside_strings_names_and_comments() -> None:
    script = """
    -- a comment; with a semicolon, 'a quote and "another
    SELECT ';' AS "a;b" /* ; ' " -- */ FROM s; ;
    DROP QUERY q -- the last ; is optional
    """
    first, second = parse_script(script)
    assert isinstance(first, ast.SelectStatement)
    assert isinstance(second, ast.DropQuery)
    assert first.text == """SELECT ';' AS "a;b" /* ; ' " -- */ FROM s"""


@pytest.mark.parametrize("text", ["", "  ", ";;;", "-- nothing", "/* nothing */ ;"])
def test_an_empty_script_has_no_statements(text: str) -> None:
    assert parse_script(text) == ()


def test_the_text_of_a_query_is_what_its_author_wrote() -> None:
    script = "CREATE QUERY q AS\n  SELECT  a\n FROM s -- all\n;EXPLAIN /*x*/ (SELECT b FROM s);"
    create, explain = parse_script(script)
    assert isinstance(create, ast.CreateQuery)
    assert create.select.text == "SELECT  a\n FROM s"
    assert isinstance(explain, ast.Explain)
    assert isinstance(explain.target, ast.SelectStatement)
    assert explain.target.text == "/*x*/ (SELECT b FROM s)"


def test_quoted_names_hold_anything_and_doubled_quotes_are_one() -> None:
    (statement,) = parse_script('SELECT "select" AS "say ""hi""", \'it\'\'s\' FROM "from";')
    assert isinstance(statement, ast.SelectStatement)
    body = statement.relation
    assert isinstance(body, ast.Select)
    first, second = body.items
    assert isinstance(first, ast.Item)
    assert isinstance(first.expression, ast.ColumnRef)
    assert first.expression.name.text == "select"
    assert first.alias is not None
    assert first.alias.name.text == 'say "hi"'
    assert isinstance(second, ast.Item)
    assert isinstance(second.expression, ast.String)
    assert second.expression.value == "it's"
    assert body.sources[0].stream.text == "from"


GRAMMAR = resources.files("stairwise.cql").joinpath("grammar.lark").read_text()
(RESERVED,) = ((match[1].split("|")) for match in [re.search(r"NAME: /\(\?!\(\?:([A-Z|]+)\)", GRAMMAR)] if match)
OTHERS = ["count", "level", "time", "ms", "s", "days", "cast", "left"]
KEYWORDS = sorted({*re.findall(r'"([A-Z]+)"i', GRAMMAR), *OTHERS} - set(RESERVED))


@pytest.mark.parametrize("word", KEYWORDS)
def test_words_that_are_not_reserved_name_anything_anywhere(word: str) -> None:
    """As a stream, a column, an alias with and without AS, a key; wherever keywords may follow."""
    alias = word if word != "left" else "AS left"
    parse_script(
        f"""
        CREATE STREAM {word} ({word} BIGINT, x INT) TIMESTAMP BY {word} PARTITION BY {word} LATENESS 1s;
        CREATE STREAM s (x {word}, {word} {word} NOT NULL) PARTITION BY {word};
        CREATE QUERY {word} AS
        SELECT {word}, {word} AS {word}, {word} {word}, 1 {word}, 'x' {word}, -{word} {word}, {word}.{word},
            {word}({word}) {word}, {word}.*, NULL {word}, CASE {word} WHEN {word} THEN {word} END {word}
        FROM {word} [RANGE 5s] {alias}, {word} [PARTITION BY {word}, {word} ROWS 5] {alias}, {word} AS {word}
        JOIN {word} {alias} ON {word} = {word}
        WHERE {word} AND NOT {word} OR {word} IS NULL GROUP BY {word}, {word} HAVING {word} EMIT ISTREAM;
        SELECT {word} FROM {word} EXCEPT SELECT {word} FROM {word} UNION ALL SELECT {word} FROM {word};
        EXPLAIN {word}; DROP QUERY {word}; DROP STREAM {word}; SEAL STREAM {word};
        ALTER STREAM {word} SET LATENESS 1s, IDLE AFTER DEFAULT;
        """
    )


@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_as_a_name_asks_for_quotes(word: str) -> None:
    error = refusal(f"CREATE STREAM s ({word.lower()} BIGINT)")
    assert (error.line, error.column, error.text) == (1, 18, word.lower())
    assert error.expected == "a name"
    assert f'"{word.lower()}"' in error.hint
    parse_script(f'CREATE STREAM s ("{word.lower()}" BIGINT)')


SYNTAX_ERRORS = [
    # statement, column, offending text, expected, hint
    ("SELEC a FROM b", 1, "SELEC", "SELECT", "did you mean SELECT instead of SELEC?"),
    ("SELECT a FORM b", 15, "b", "FROM", "did you mean FROM instead of FORM?"),
    ("SELECT a, FROM b", 11, "FROM", "an expression", "leave out the comma before FROM"),
    ("SELECT a,", 10, "", "an expression", "something is to follow the comma"),
    ("SELECT FROM b", 8, "FROM", "an expression", "reserved word"),
    ("SELECT a FROM b WHERE", 22, "", "an expression", ""),
    ("SELECT a FROM b GROUP a", 23, "a", "BY", ""),
    ("SELECT a FROM b [RANGE 10]", 26, "]", "a unit such as SECONDS", "say the unit"),
    ("SELECT a FROM b [RANGE]", 23, "]", "a duration such as 10 SECONDS", ""),
    ("SELECT a FROM b [RANGE 10 SECONDS", 34, "", "SLIDE", ""),
    ("SELECT a FROM b [RNGE 5s]", 18, "RNGE", "RANGE", "did you mean RANGE"),
    ("SELECT a FROM b [RANGE 5s SLID 1s]", 27, "SLID", "SLIDE", "did you mean SLIDE"),
    ("SELECT a FROM b [RANGE 5 sec]", 26, "sec", "a unit such as SECONDS", "MILLISECONDS, SECONDS, MINUTES"),
    ("SELECT a FROM b [ROWS 5s]", 23, "5s", "a whole number", ""),
    ("SELECT a FROM b [FROM]", 22, "]", "an instant", ""),
    ("SELECT a FROM b [PARTITION BY a ROWS 5 SLIDE 5]", 47, "]", "a unit such as SECONDS", "say the unit"),
    ("SELECT a FROM b t [NOW]", 19, "[", "WHERE", "before the alias"),
    ("SELECT a FROM b UNION SELECT a FROM b", 23, "SELECT", "ALL", "only UNION ALL"),
    ("SELECT a FROM b [NOW] JOIN c [NOW]", 35, "", "ON", ""),
    ("SELECT a FROM b EMIT STREAM", 22, "STREAM", "RSTREAM", "did you mean"),
    ("SELECT (a FROM b", 11, "FROM", "')'", ""),
    ("SELECT a == 1 FROM b", 11, "=", "an expression", ""),
    ("SELECT a < b < c FROM b", 14, "<", "", ""),
    ("SELECT 10d FROM a", 8, "10d", "an expression", ""),
    ("SELECT 1.2.3 FROM a", 8, "1", "an expression", "a number ends at a blank"),
    ("SELECT @ FROM b", 8, "@", "an expression", ""),
    ("SELECT “a” FROM b", 8, "“", "an expression", "double"),
    ("SELECT\u00a0a FROM b", 7, "\u00a0", "", "unusual blank"),
    ("CREATE VIEW v AS SELECT a FROM s", 8, "VIEW", "STREAM or TABLE", "write CREATE QUERY name AS SELECT ..."),
    ("CREATE STREAM s", 16, "", "'('", ""),
    ("CREATE STREAM s ()", 18, ")", "a name", ""),
    ("CREATE STREAM s (a)", 19, ")", "a name", ""),
    ("CREATE STREAM s (a BIGINT) LATENES 5s", 28, "LATENES", "LATENESS", "did you mean LATENESS"),
    ("CREATE STREAM s (a BIGINT) LATENESS 5", 38, "", "a unit such as SECONDS", "say the unit"),
    ("CREATE STREAM s (a BIGINT NULL)", 27, "NULL", "NOT", ""),
    ("ALTER STREAM s SET LATENES 5s", 20, "LATENES", "IDLE, LATENESS or RETAIN", "did you mean LATENESS"),
    ("ALTER STREAM s SET PARTITIONS 8", 20, "PARTITIONS", "IDLE, LATENESS or RETAIN", "DROP STREAM and CREATE STREAM"),
    ("ALTER STREAM s SET IDLE AFTER 5s, TIMESTAMP BY a", 35, "TIMESTAMP", "LATENESS", "changes LATENESS"),
    ("ALTER STREAM s ADD COLUMN a BIGINT", 16, "ADD", "SET", "changes LATENESS, IDLE AFTER and RETAIN"),
    ("ALTER STREAM s SET IDLE AFTER NONE", 31, "NONE", "a duration such as 10 SECONDS or DEFAULT", "DEFAULT takes the"),
    ("ALTER STREAM s SET LATENESS 5s IDLE AFTER 5s", 32, "IDLE", "','", "put a comma"),
    ("ALTER TABLE s SET LATENESS 5s", 7, "TABLE", "STREAM", "DROP the table and CREATE it again"),
    ("DROP", 5, "", "NAMESPACE, QUERY, ROLE, STREAM or TABLE", ""),
    ("DROP STREAM 'a'", 13, "'a'", "a name", ""),
    ("DROP STREAM a b", 15, "b", "the end of the statement", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "found", "expected", "hint"), SYNTAX_ERRORS)
def test_bad_syntax_says_where_what_was_expected_and_what_was_likely_meant(
    text: str, column: int, found: str, expected: str, hint: str
) -> None:
    error = refusal(text)
    assert (error.line, error.column, error.text) == (1, column, found)
    assert expected in error.expected
    assert hint in error.hint
    assert error.source_line == text


def test_positions_count_through_the_whole_script() -> None:
    error = refusal("DROP QUERY a;\n\n/* one\ntwo */ SELECT a,\n\t  b FRM c\n;")
    assert (error.line, error.column, error.text) == (5, 10, "c")
    assert error.source_line == "   b FRM c"
    assert str(error).splitlines()[2] == "  " + " " * 9 + "^"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("SELECT 'abc FROM s", 8, "this string does not end"),
        ("SELECT 'it''s FROM s", 8, "this string does not end"),
        ('SELECT "abc FROM s', 8, "this quoted name does not end"),
        ("SELECT a /* FROM s", 10, "this comment does not end"),
        ("SELECT '\ud800' FROM s", 9, "this is no text: half of a character"),
    ],
)
def test_what_does_not_end_is_pointed_at_where_it_begins(text: str, column: int, message: str) -> None:
    error = refusal(text)
    assert (error.column, error.message) == (column, message)


SUM = "+".join(["(n+1)"] * 60)
HOSTILE = {
    "brackets": "SELECT " + "(" * 50_000,
    "balanced brackets": "SELECT " + "(" * 60 + "1" + ")" * 60 + " FROM words",
    "window brackets": "SELECT a FROM b " + "[" * 50_000,
    "cases": "SELECT " + "CASE WHEN " * 20_000,
    "additions": "SELECT " + "1+" * 3_900 + "1 FROM words",
    "minuses": "SELECT " + "- " * 7_000 + "1 FROM words",
    "nots": "SELECT " + "NOT " * 7_000 + "TRUE FROM words",
    "ands": "SELECT " + "TRUE AND " * 3_900 + "TRUE FROM words",
    "concatenations": "SELECT " + "word || " * 3_900 + "word FROM words",
    "calls": "SELECT " + "ABS(" * 50 + "1" + ")" * 50 + " FROM words",
    "in": "SELECT n IN (" + "1," * 3_900 + "1) FROM words",
    "in words": "SELECT n IN (" + "n," * 900 + "n) FROM words",
    "betweens": "SELECT " + "(CASE WHEN " * 20 + "n" + " BETWEEN 1 AND 2 THEN 1 END)" * 20 + " FROM words",
    "simple cases": "SELECT " + "CASE " * 40 + "n" + " WHEN 1 THEN 2 WHEN 2 THEN 3 END" * 40 + " FROM words",
    "columns": "SELECT " + "n," * 3_900 + "n FROM words",
    "joins": "SELECT 1 AS x FROM " + "words [NOW]," * 1_000 + "words [NOW]",
    "unions": "SELECT n FROM words" + " UNION ALL SELECT n FROM words" * 800,
    "union brackets": "(SELECT n FROM words UNION ALL " * 49 + "SELECT n FROM words" + ")" * 49,
    "digits": "SELECT " + "9" * 90_000 + " FROM words",
    "fraction": "SELECT 0." + "9" * 90_000 + " FROM words",
    "exponent": "SELECT 1e" + "9" * 90_000 + " FROM words",
    "range": "SELECT n FROM words [RANGE " + "9" * 90_000 + "s]",
    "fraction of a range": "SELECT n FROM words [RANGE 0." + "9" * 90_000 + "s]",
    "rows": "SELECT n FROM words [ROWS " + "9" * 90_000 + "]",
    "levels": "SELECT COUNT(*) FROM words [RANGES " + "1s," * 2_000 + "1s SLIDES " + "1s," * 2_000 + "1s]",
    "string": "SELECT '" + "x" * 200_000 + "' FROM words",
    "quotes": "SELECT '" + "''" * 90_000,
    "comments": "SELECT " + "/* */" * 90_000,
    "open comments": "/*" * 500_000,
    "blanks": " " * 5_000_000 + "SELECT",
    "semicolons": ";" * 1_000_000,
    "aliases": "SELECT " + SUM + " AS a, COUNT(*) FROM words [NOW] GROUP BY "
               + ", ".join(f"a+{i}" for i in range(500)),
    "grouping": "SELECT " + SUM + " FROM words [NOW] GROUP BY " + SUM,
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_statements_raise_nothing_but_statement_errors(case: str) -> None:
    told = ""
    try:
        for statement in parse_script(HOSTILE[case]):
            assert isinstance(statement, ast.SelectStatement)
            hash(resolve_query("q", statement, STREAMS))
    except StatementError as error:
        told = str(error)
    assert len(told) < 2_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" " * (MAX_SCRIPT + 1), "the script is longer than"),
        ("SELECT '" + "x" * MAX_STATEMENT + "'", "the statement is longer than"),
        ("SELECT " + "a," * (MAX_TOKENS // 2 + 1), "the statement has more than"),
        ("SELECT " + "(" * (MAX_NESTING + 1), "nest deeper than"),
        ("SELECT " + "CASE " * (MAX_NESTING + 1), "nest deeper than"),
    ],
)
def test_limits_are_named(text: str, message: str) -> None:
    assert message in refusal(text).message
