"""Scripts against a catalogue: names, incarnations, order of changes, all or nothing."""

from __future__ import annotations

import pytest

from stairwise.cql.script import (
    Catalogue,
    Explained,
    QueryCreated,
    QueryDropped,
    QueryRestarted,
    StreamAltered,
    StreamCreated,
    StreamDropped,
    StreamSealed,
    TableCreated,
    TableDropped,
    Told,
)
from stairwise.errors import AlreadyExistsError, ConflictError, NotFoundError, StatementError

STREAM = "CREATE STREAM s (a BIGINT);"


def catalogue(script: str = STREAM) -> Catalogue:
    made = Catalogue()
    made.execute(script)
    return made


def test_bare_selects_are_numbered_in_their_order() -> None:
    made = catalogue(STREAM + "SELECT a FROM s; CREATE QUERY x AS SELECT a FROM s; SELECT a + 1 FROM s")
    assert [(name, q.name, q.text) for name, q in made.queries.items()] == [
        ("q1", "q1", "SELECT a FROM s"),
        ("x", "x", "SELECT a FROM s"),
        ("q2", "q2", "SELECT a + 1 FROM s"),
    ]


def test_changes_come_back_in_the_order_of_the_statements() -> None:
    changes = Catalogue().execute(
        STREAM + "SELECT a FROM s; EXPLAIN q1; EXPLAIN SELECT a + 1 FROM s; SEAL STREAM s; DROP STREAM s"
    )
    assert [type(c) for c in changes] == [
        StreamCreated,
        QueryCreated,
        Explained,
        Explained,
        StreamSealed,
        QueryDropped,
        StreamDropped,
    ]


def test_altering_a_stream_changes_what_is_named_and_nothing_else() -> None:
    made = catalogue("CREATE STREAM s (a BIGINT) LATENESS 1s IDLE AFTER 5s RETAIN 1 HOUR; SELECT a FROM s")
    before, queries = made.streams["s"], dict(made.queries)
    (altered,) = made.execute("ALTER STREAM s SET LATENESS 2s, RETAIN AT MOST 64 MB")
    assert isinstance(altered, StreamAltered)
    after = made.streams["s"]
    assert after == before, "it is the same stream"
    assert not after.is_declared_as(before)
    assert (after.lateness, after.idle_after, after.retain_time, after.retain_bytes) == (2_000, 5_000, None, 64_000_000)
    assert made.queries == queries
    made.execute("ALTER STREAM s SET LATENESS DEFAULT, IDLE AFTER DEFAULT, RETAIN DEFAULT")
    assert made.streams["s"].is_declared_as(catalogue("CREATE STREAM s (a BIGINT)").streams["s"])
    (altered,) = made.execute("ALTER STREAM s SET LATENESS 0s")
    assert isinstance(altered, StreamAltered)
    assert altered.changes_nothing


def test_a_query_is_restarted_if_it_has_failed_and_rows_can_come() -> None:
    made = catalogue(STREAM + "CREATE QUERY x AS SELECT a FROM s")
    with pytest.raises(ConflictError, match="has not failed"):
        made.execute("RESTART QUERY x")
    made.failed = frozenset({"x"})
    (restarted,) = made.execute("RESTART QUERY x")
    assert restarted == QueryRestarted(made.queries["x"])
    with pytest.raises(NotFoundError):
        made.execute("RESTART QUERY y")
    with pytest.raises(ConflictError, match="which is sealed"):
        made.execute("SEAL STREAM s; RESTART QUERY x")


def test_explaining_a_select_starts_nothing() -> None:
    made = catalogue()
    (explained,) = made.execute("EXPLAIN SELECT a FROM s")
    assert isinstance(explained, Explained)
    assert explained.query.text == "SELECT a FROM s"
    assert made.queries == {}


def test_dropping_and_creating_again_makes_a_new_incarnation() -> None:
    made = catalogue()
    assert made.streams["s"].incarnation == 1
    made.execute("DROP STREAM s;" + STREAM)
    assert made.streams["s"].incarnation == 2


def test_creating_a_sealed_stream_reopens_it_as_a_new_incarnation() -> None:
    made = catalogue()
    made.execute("SEAL STREAM s")
    with pytest.raises(ConflictError, match="sealed"):
        made.execute("SELECT a FROM s")
    made.execute(STREAM)
    assert made.streams["s"].incarnation == 2
    made.execute("SELECT a FROM s")


def test_dropping_a_stream_drops_the_queries_that_read_it() -> None:
    made = catalogue(STREAM + "CREATE STREAM t (a BIGINT); SELECT a FROM s; SELECT a FROM t")
    made.execute("DROP STREAM s")
    assert list(made.queries) == ["q2"]
    assert list(made.streams) == ["t"]


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        (STREAM, AlreadyExistsError, "a stream 's' exists already"),
        ("CREATE QUERY q AS SELECT a FROM s", AlreadyExistsError, "a query 'q' exists already"),
        ("DROP QUERY p", NotFoundError, "there is no query 'p'"),
        ("DROP STREAM r", NotFoundError, "there is no stream 'r'"),
        ("SEAL STREAM r", NotFoundError, "there is no stream 'r'"),
        ("SEAL STREAM s; SEAL STREAM s", ConflictError, "sealed already"),
        ("ALTER STREAM r SET LATENESS 1s", NotFoundError, "there is no stream 'r'"),
        ("ALTER STREAM s SET LATENESS 1s, LATENESS 2s", StatementError, "LATENESS is given twice"),
        ("ALTER STREAM s SET RETAIN AT MOST 1 MB", StatementError, "too little for PARTITIONS 4"),
        ("EXPLAIN p", NotFoundError, "there is no query 'p'"),
        ("SELECT b FROM s", StatementError, "there is no column 'b'"),
        ('CREATE QUERY "a b" AS SELECT a FROM s', StatementError, "a query cannot be called 'a b'"),
        ("SELECT a FROM", StatementError, "ends too early"),
    ],
)
def test_a_script_with_a_mistake_changes_nothing(script: str, error: type[Exception], message: str) -> None:
    made = catalogue(STREAM + "CREATE QUERY q AS SELECT a FROM s")
    before = made.copy()
    with pytest.raises(error, match=message):
        made.execute("CREATE STREAM new (a BIGINT); DROP QUERY q; CREATE QUERY q AS SELECT a FROM new; " + script)
    assert made == before


def test_show_and_describe_tell_what_there_is() -> None:
    catalogue = Catalogue()
    catalogue.execute(
        """CREATE STREAM s (ts TIMESTAMP, "a b" STRING NOT NULL) TIMESTAMP BY ts LATENESS 2 SECONDS RETAIN 1 HOUR;
           CREATE TABLE t (k BIGINT, v DOUBLE) KEY (k) NON RETROACTIVE;
           CREATE QUERY q AS SELECT COUNT(*) AS n,
             MAX("a b") AS m FROM s [NOW]; SEAL TABLE t"""
    )

    def told(statement: str) -> list[str]:
        (change,) = catalogue.execute(statement)
        assert isinstance(change, Told)
        return change.text.splitlines()

    assert told("SHOW STREAMS") == ["s  ts TIMESTAMP, a b STRING"]
    assert told("SHOW TABLES") == ["t  k BIGINT, v DOUBLE, sealed"]
    assert told("show queries") == ['q  SELECT COUNT(*) AS n, MAX("a b") AS m FROM s [NOW]']
    assert told("DESCRIBE s") == [
        "stream s",
        "  ts   TIMESTAMP  NOT NULL",
        "  a b  STRING     NOT NULL",
        '  TIMESTAMP BY "ts"',
        "  LATENESS 2 SECONDS",
        "  PARTITIONS 4",
        "  GRANULE 1 SECOND",
        "  FUTURE 365 DAYS",
        "  RETAIN 1 HOUR",
    ]
    assert told("DESCRIBE t")[0] == "table t, sealed"
    assert told("DESCRIBE q")[:3] == ["query q", "  n  BIGINT", "  m  STRING"]
    with pytest.raises(NotFoundError, match="no stream, table or query 'qq'"):
        catalogue.execute("DESCRIBE qq")
    catalogue.execute("DROP STREAM s")
    assert told("SHOW STREAMS") == ["there are no streams"]


def test_if_exists_and_if_not_exists_do_nothing_where_a_statement_would_fail() -> None:
    catalogue = Catalogue()
    create = "CREATE STREAM IF NOT EXISTS s (x BIGINT); CREATE TABLE IF NOT EXISTS t (k BIGINT) KEY (k);"
    query = "CREATE QUERY IF NOT EXISTS q AS SELECT x FROM s;"
    drop = "DROP QUERY IF EXISTS q; DROP STREAM IF EXISTS s; DROP TABLE IF EXISTS t;"
    first, again = catalogue.execute(create + query), catalogue.execute(create + query)
    assert [type(change) for change in first] == [StreamCreated, TableCreated, QueryCreated]
    assert [type(change) for change in again] == [Told] * 3
    assert [type(change) for change in catalogue.execute(drop)] == [QueryDropped, StreamDropped, TableDropped]
    assert [type(change) for change in catalogue.execute(drop)] == [Told] * 3
    with pytest.raises(AlreadyExistsError):
        catalogue.execute("CREATE TABLE t (k BIGINT) KEY (k); CREATE STREAM IF NOT EXISTS t (x BIGINT)")


def test_a_query_is_replaced_as_a_whole_or_not_at_all() -> None:
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (x BIGINT); CREATE OR REPLACE QUERY q AS SELECT x FROM s")
    changes = catalogue.execute("CREATE OR REPLACE QUERY q AS SELECT x + 1 AS y FROM s")
    assert [type(change) for change in changes] == [QueryDropped, QueryCreated]
    with pytest.raises(StatementError):
        catalogue.execute("CREATE OR REPLACE QUERY q AS SELECT nothing FROM s")
    assert catalogue.queries["q"].text == "SELECT x + 1 AS y FROM s"


def test_words_of_the_new_clauses_are_still_names() -> None:
    catalogue = Catalogue()
    catalogue.execute(
        "CREATE STREAM if (exists BIGINT, filter BIGINT, show BIGINT); CREATE QUERY replace AS"
        " SELECT SUM(exists) filter, MAX(show) AS describe, COUNT(*) listing FROM if [NOW] AS left"
    )
    assert catalogue.queries["replace"].streams[0].name == "if"
