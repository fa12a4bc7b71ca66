"""Scripts against a catalogue: names, incarnations, order of changes, all or nothing."""

from __future__ import annotations

import pytest

from stairwise.cql.script import (
    Catalogue,
    Explained,
    QueryCreated,
    QueryDropped,
    StreamCreated,
    StreamDropped,
    StreamSealed,
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
