"""What the words of other systems are here: Flink SQL, ksqlDB, Materialize, RisingWave, DuckDB, PostgreSQL, T-SQL, CQL.

A statement that the grammar refuses is looked up by the text around the place where it went wrong, a name that means
nothing by itself.
"""

from __future__ import annotations

import re

from stairwise.cql.source import Span

_WINDOW = "the window stands in FROM, in brackets behind its stream"
_TUMBLE = f"{_WINDOW}: FROM trades [TUMBLE 1 MINUTE], with LEFT CLOSED for [a, b)"
_HOP = f"{_WINDOW}: FROM trades [RANGE 1 MINUTE SLIDE 10 SECONDS]"
_SESSION = "there are no session windows: [PARTITION BY k ROWS n] holds the last n rows of each key"
_CUMULATE = "there is no CUMULATE: [FROM '2026-01-31T00:00:00Z' SLIDE 1 MINUTE] grows from an instant on"
_INNER = "joins are inner: write JOIN ... ON ..."
_FIXED = "ORDER BY x DESC LIMIT 10 stands behind HAVING, before EMIT"
_NO_LIMIT = "write ORDER BY x DESC LIMIT 10 behind GROUP BY; TOP(x, k) gives the k most frequent items"
_NESTED = "a SELECT does not stand inside another: write its WHERE in place, or a query of its own"
_ROWS_IN = "rows come in by `stairwise publish STREAM FILE` or a Kafka topic in.<stream>, results go out by `subscribe`"
_QUERY = "write CREATE QUERY name AS SELECT ...: its answers are kept up to date"
_CLOCK = "a query sees no clock: report times stand beside its rows, WINDOW_END in a grouped SELECT"
_OVER = f"{_WINDOW}, and not behind an aggregate: FROM trades [ROWS 100] or [RANGE 60 SECONDS]"
_NO_LISTS = "columns are BIGINT, DOUBLE, STRING, BOOLEAN or TIMESTAMP: split lists and objects before publishing"
_UNITS = "units are MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS"
_EMIT = "EMIT stands at the end: SELECT ... EMIT ISTREAM"
_SETS = "write a query for each set of keys: they share their work"
_DERIVED = "a query's results are no stream of their own: write CREATE QUERY name AS SELECT ... and subscribe to it"

_SYNTAX: tuple[tuple[str, str], ...] = (
    # statements
    (r"\bCREATE\s+(OR\s+REPLACE\s+)?(STREAM|TABLE|SINK)\s+\S+\s+(WITH\s*\([^)]*\)\s*)?AS\b", _DERIVED),
    (r"\bCREATE\s+OR\s+REPLACE\s+(STREAM|TABLE)\b", "only queries are replaced, since the rows of a stream would go:"
     " DROP it and CREATE it again, or ALTER STREAM ... SET"),
    (r"\b(CREATE|DROP)\s+(OR\s+REPLACE\s+)?(TEMPORARY\s+|MATERIALIZED\s+)*(MATERIALIZED|VIEW)\b", _QUERY),
    (r"\bCREATE\s+(SOURCE|CONNECTION|CONNECTOR|EXTERNAL|TEMPORARY|FOREIGN)\b",
     f"write CREATE STREAM or CREATE TABLE: {_ROWS_IN}"),
    (r"\bCREATE\s+SINK\b", "results go out by `stairwise subscribe`: write CREATE QUERY name AS SELECT ..."),
    (r"\b(CREATE|DROP|USE|SHOW)\s+(DATABASE|SCHEMA|CATALOG|CATALOGS|DATABASES|SCHEMAS)\b",
     "there is one name space: streams, tables and queries are called by their names alone"),
    (r"\bCREATE\s+(UNIQUE\s+)?INDEX\b", "there are no indexes: joins and lookups find rows by their keys without"),
    (r"\bCREATE\s+(AGGREGATE\s+)?FUNCTION\b", "functions are those of docs/cql.md"),
    (r"\A\s*(INSERT|MERGE|COPY|LOAD)\b", _ROWS_IN),
    (r"\A\s*(UPDATE|DELETE|TRUNCATE)\b", "rows are not changed: publish a new row of the same key to a table"),
    (r"\A\s*(TERMINATE|PAUSE|STOP|CANCEL)\b", "a query ends by DROP QUERY name"),
    (r"\b(LIST|SHOW)\s+(ALL\s+)?(TOPICS|FUNCTIONS|VIEWS|VARIABLES|PROPERTIES|JOBS|SOURCES|SINKS|CREATE)\b",
     "SHOW lists STREAMS, TABLES or QUERIES"),
    (r"\A\s*(LIST|PRINT)\b", "SHOW STREAMS lists streams; `stairwise subscribe NAME` shows the results of a query"),
    (r"\A\s*DESC(RIBE\s+(EXTENDED|TABLE|STREAM))?\b", "write DESCRIBE name"),
    (r"\A\s*(SET|RESET|UNSET|USE)\b", "there is nothing to set: options stand in CREATE STREAM"),
    (r"\A\s*(BEGIN|COMMIT|ROLLBACK|START\s+TRANSACTION)\b", "a script takes effect as a whole or not at all"),
    (r"\A\s*SUBSCRIBE\b", "results are read by `stairwise subscribe NAME`"),
    # declarations
    (r"\)\s*WITH\s*\(", "there is no WITH (...): a stream has its own topic, in.<name>, which CREATE STREAM makes; its"
     " options are words: TIMESTAMP BY ts LATENESS 2 SECONDS PARTITIONS 4"),
    (r"\bWATERMARK(\s+FOR)?\b", "write TIMESTAMP BY ts LATENESS 5 SECONDS behind the columns"),
    (r"\bPRIMARY\s+KEY\b|\bKEY\s*[,)]", "a table has KEY (column, ...) behind its columns; a stream has no key"),
    (r"\bNOT\s+ENFORCED\b|\b(REFERENCES|UNIQUE|CHECK|FOREIGN\s+KEY)\b", "a column has a type and perhaps NOT NULL"),
    (r"\b(DEFAULT|GENERATED|METADATA|HEADERS?)\b", "a column has a type and perhaps NOT NULL: calculate in the SELECT"),
    (r"\bPARTITIONED\s+BY\b", "write PARTITION BY column"),
    (r"\b(ARRAY|MAP|STRUCT|ROW|MULTISET|LIST)\s*[<(\[]|\[\s*\]", _NO_LISTS),
    (r"\b(VARCHAR|CHAR|DECIMAL|NUMERIC|TIMESTAMP|TIMESTAMP_LTZ|FLOAT|INT|STRING)\s*\(\s*\d+",
     "types have no length: BIGINT, DOUBLE, STRING, BOOLEAN or TIMESTAMP"),
    (r"\b(TIMESTAMP|TIME)\s+WITH(OUT)?\b", "TIMESTAMP is an instant: milliseconds since 1970, UTC"),
    (r"\bDOUBLE\s+PRECISION\b", "write DOUBLE"),
    # windows
    (r"\bTABLE\s*\(\s*TUMBLE\b|\bTUMBLE\s*\(|\bTUMBLING\b", _TUMBLE),
    (r"\bTABLE\s*\(\s*HOP\b|\bHOP\s*\(|\bHOPPING\b|\bADVANCE\s+BY\b|\[\s*(HOP|SLIDING)\b", _HOP),
    (r"\bTABLE\s*\(\s*CUMULATE\b|\bCUMULATE\s*\(", _CUMULATE),
    (r"\bSESSION\b", _SESSION),
    (r"\bWINDOW\s+(BY\b|\w+\s+AS\b)", _OVER),
    (r"\bTABLE\s*\(", "write the name of the stream, and its window behind it: FROM trades [TUMBLE 1 MINUTE]"),
    (r"\bINTERVAL\b(\s*'[^']*')?", "write the duration alone: 10 SECONDS"),
    (r"\b(PRECEDING|FOLLOWING)\b|\b(ROWS|RANGE)\s+BETWEEN\b", _OVER),
    (r"\bUNBOUNDED\b", "a window that never ends has a begin: [FROM '2026-01-31T00:00:00Z']"),
    (r"\bSLIDE\s+BY\b", "write SLIDE 10 SECONDS"),
    (r"\[\s*SIZE\b", "write [TUMBLE 1 MINUTE], or [RANGE 1 MINUTE SLIDE 10 SECONDS]"),
    (r"\bGRACE\s+PERIOD\b|\bALLOWED\s+LATENESS\b", "CREATE STREAM says how late rows may be: LATENESS 5 SECONDS"),
    (r"\b\d+\s*(MINS?|MNT)\b", f"write MINUTE or MINUTES, short 1m; {_UNITS}"),
    (r"\b\d+\s*SECS?\b", f"write SECOND or SECONDS, short 1s; {_UNITS}"),
    (r"\b\d+\s*HRS?\b", f"write HOUR or HOURS, short 1h; {_UNITS}"),
    (r"\b\d+\s*(MSEC|MILLIS?|MILLISECS?)\b", f"write MILLISECONDS, short 250ms; {_UNITS}"),
    (r"\b\d+\s*(WEEKS?|MONTHS?|QUARTERS?|YEARS?)\b", _UNITS),
    # SELECT
    (r"\bOVER\b|\bQUALIFY\b", _OVER),
    (r"\bEMIT\s+(FINAL|ON|AFTER|WITH)\b", "every report is final when it comes: EMIT RSTREAM, ISTREAM, DSTREAM"
     " or CHANGES say what of it is shown"),
    (r"\bNULLS\s+(FIRST|LAST)\b", "NULLs come first, with DESC last"),
    (r"\b(ORDER|ASC|DESC)\b", _FIXED),
    (r"\b(LIMIT|FETCH)\b", _NO_LIMIT),
    (r"\bSELECT\s+TOP\s+\d+", _NO_LIMIT),
    (r"\bWITHIN\b", "each input of a join has its own window: FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON ..."),
    (r"\b(LEFT|RIGHT|FULL)(\s+OUTER)?\s+JOIN\b|\bOUTER\b", _INNER),
    (r"\bCROSS\s+JOIN\s+(UNNEST|LATERAL)\b|\bLATERAL\b", _NO_LISTS),
    (r"\bCROSS\b", "write the streams with a comma between them: FROM a [...], b [...]"),
    (r"\bNATURAL\b", "say by what: JOIN ... ON a.x = b.x"),
    (r"\bASOF\b|\bFOR\s+SYSTEM_TIME\b", "a table that is NON RETROACTIVE is joined as of each row's time:"
     " JOIN prices ON a.x = prices.x"),
    (r"\bUSING\b", "write JOIN ... ON a.x = b.x; USING LOOKUPS stands behind EMIT CHANGES"),
    (r"\bINTERSECT\b", "there is no INTERSECT: a join on all columns says the same of sets"),
    (r"\bMINUS\b", "write EXCEPT"),
    (r"\bUNION\s+(?=SELECT\b|DISTINCT\b|\()", "UNION removes duplicates in SQL; only UNION ALL is there"),
    (r"\b(GROUPING\s+SETS|ROLLUP|CUBE)\b", _SETS),
    (r"\bGROUP\s+BY\s+(ALL|ROLLUP|CUBE)\b", "name the keys: GROUP BY ticker"),
    (r"\b(EXCLUDE|COLUMNS)\b", "name the columns that you want"),
    (r"\bMATCH_RECOGNIZE\b", "there are no patterns of rows: join the stream with itself, ON b.ts > a.ts"),
    (r"\bTABLESAMPLE\b", "all rows count: choose some by WHERE"),
    (r"\b(ISTREAM|DSTREAM|RSTREAM)\s*\(\s*SELECT\b", _EMIT),
    (r"\(\s*SELECT\b(?=(?s:.){1,200}\bFROM\b)", _NESTED),
    (r"\A\s*WITH\b", "there are no common table expressions: write the SELECT in place"),
    # expressions
    (r"\bILIKE\b", "write LOWER(s) LIKE 'a%', or REGEXP_MATCH(s, '(?i)^a')"),
    (r"\b(RLIKE|REGEXP|SIMILAR\s+TO)\b|~", "write REGEXP_MATCH(s, 'pattern')"),
    (r"\bIS\s+(NOT\s+)?DISTINCT\s+FROM\b", "write a = b OR a IS NULL AND b IS NULL"),
    (r"\bIS\s+(NOT\s+)?(TRUE|FALSE|UNKNOWN)\b", "write the condition alone or NOT before it; COALESCE(c, FALSE) is"
     " never NULL"),
    (r"\b(ISNULL|NOTNULL)\b", "write IS NULL or IS NOT NULL"),
    (r"\bTRY_CAST\b", "CAST gives NULL where a value does not fit"),
    (r"\bEXTRACT\s*\(\s*'[^)]*", "write EXTRACT(hour FROM ts), without quotes"),
    (r"\bTRIM\s*\(\s*(BOTH|LEADING|TRAILING)\b[^)]*", "write TRIM(s), LTRIM(s) or RTRIM(s)"),
    (r"\bAT\s+TIME\s+ZONE\b", "instants are in UTC"),
    (r"\bESCAPE\b", "in LIKE there is no escape: REGEXP_MATCH(s, 'pattern') takes any pattern"),
    (r"\bWITHIN\s+GROUP\b", "write QUANTILE(x, 0.9)"),
    (r"&&", "write AND"),
    (r"==", "comparison for equality is a single ="),
    (r"!(?!=)", "write NOT"),
    (r"->|\bJSON\b", _NO_LISTS),
    (r"`", "names stand in \"double\" quotes, strings in 'single' quotes"),
)  # fmt: skip

_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in _SYNTAX)
_AROUND = 300
"""How many characters before and behind the place are looked at."""
_BEGINNINGS = frozenset({"SELECT", "CREATE", "DROP", "ALTER", "SEAL", "EXPLAIN", "SHOW", "DESCRIBE", "INSERT", "WITH"})


def dialect_hint(text: str, span: Span) -> str:
    """What was probably meant, from the text around a place where the grammar gave up; empty where nobody knows."""
    low, high = max(0, span.start - _AROUND), span.end + _AROUND
    for pattern, hint in _PATTERNS:
        for match in pattern.finditer(text, low, high):
            between = text[match.end() : span.start]
            if match.start() <= span.end and not between.strip():
                return hint
    return ""


def forgotten_semicolon(text: str, span: Span) -> str:
    """Does another statement begin here, on a line of its own?"""
    word, before = text[span.start : span.end], text[: span.start]
    alone = before.rstrip(" \t").endswith("\n") or word.upper() in ("CREATE", "DROP", "SEAL", "ALTER")
    if word.upper() in _BEGINNINGS and before.strip() and alone:
        return f"a statement ends with a semicolon: put one before {word}"
    return ""


FUNCTIONS = {
    "TUMBLE": _TUMBLE,
    "HOP": _HOP,
    "SESSION": _SESSION,
    "CUMULATE": _CUMULATE,
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "PROCTIME", "GETDATE", "UNIX_TIMESTAMP", "SYSDATE"), _CLOCK),
    **dict.fromkeys(("IF", "IIF", "DECODE"), "write CASE WHEN condition THEN x ELSE y END"),
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD"), _OVER),
    **dict.fromkeys(("UNNEST", "EXPLODE", "ARRAY", "MAP", "STRUCT", "JSON_VALUE", "EXTRACTJSONFIELD"), _NO_LISTS),
    **dict.fromkeys(("ROLLUP", "CUBE", "GROUPING"), _SETS),
    "TRY_CAST": "CAST gives NULL where a value does not fit",
    **dict.fromkeys(("DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF", "TIMESTAMPADD"),
                    "calculate in milliseconds: (ts::BIGINT + 60000)::TIMESTAMP"),
    "FROM_UNIXTIME": "CAST(seconds * 1000 AS TIMESTAMP)",
    "SIGN": "write CASE WHEN x > 0 THEN 1 WHEN x < 0 THEN -1 ELSE 0 END",
}  # fmt: skip
"""Functions of other systems that no function here is."""

COLUMNS = {
    **dict.fromkeys(("CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "PROCTIME"), _CLOCK),
    **dict.fromkeys(("ROWTIME", "EVENT_TIME", "_TIME"), "a row's time is the column of TIMESTAMP BY"),
    **dict.fromkeys(("WINDOWSTART", "TUMBLE_START", "HOP_START"), "write WINDOW_START"),
    **dict.fromkeys(("WINDOWEND", "TUMBLE_END", "HOP_END", "WINDOW_TIME"), "write WINDOW_END"),
    **dict.fromkeys(("ISTREAM", "DSTREAM", "RSTREAM"), _EMIT),
    "INTERVAL": "write the duration alone: 10 SECONDS",
}
"""Columns that other systems add."""
