"""What statements change, and what is refused."""

from __future__ import annotations

import re

import pytest

from services.windows.draft import draft, drafting
from stairwise.cql.parser import parse_script
from stairwise.errors import AlreadyExistsError, ConflictError, NotFoundError, StatementError
from stairwise.wire import topics
from tests.plans import plan_log

STREAM = "CREATE STREAM t (ts TIMESTAMP, k STRING) TIMESTAMP BY ts"
QUERY = "CREATE QUERY q AS SELECT COUNT(*) AS n FROM t [TUMBLE 10 SECONDS]"


def test_streams_and_queries_are_declared() -> None:
    catalogue = plan_log(STREAM, QUERY).newest
    assert list(catalogue.streams) == ["t"]
    assert catalogue.queries["q"].identity == "q@2"


def test_bare_selects_take_the_first_free_names() -> None:
    select = "SELECT COUNT(*) AS n FROM t [TUMBLE 10 SECONDS]"
    log = plan_log(STREAM, select, f"CREATE QUERY q2 AS {select}", select)
    assert sorted(log.newest.queries) == ["q1", "q2", "q3"]


def test_dropping_a_stream_drops_what_reads_it() -> None:
    catalogue = drafting(plan_log(STREAM, QUERY).newest)
    (statement,) = parse_script("DROP STREAM t")
    assert draft(catalogue, statement).summary == "dropped query q; dropped stream t"
    assert not plan_log(STREAM, QUERY, "DROP STREAM t").newest.queries


def test_a_stream_created_again_is_a_new_incarnation() -> None:
    assert plan_log(STREAM, "DROP STREAM t", STREAM).newest.streams["t"].incarnation == 2


def test_a_sealed_stream_is_reopened_as_a_new_incarnation_that_old_queries_do_not_read() -> None:
    catalogue = plan_log(STREAM, QUERY, "SEAL STREAM t", STREAM).newest
    assert catalogue.streams["t"].incarnation == 2
    assert not catalogue.sealed
    assert catalogue.readers(catalogue.streams["t"]) == []


def test_the_log_knows_what_touched_a_stream_and_which_queries_came_when() -> None:
    log = plan_log(STREAM, QUERY, "CREATE STREAM u (ts TIMESTAMP) TIMESTAMP BY ts", "DROP QUERY q")
    assert log.touched("t") == 4
    assert log.touched("u") == 3
    assert [r.identity for r in log.registered("t", 0, 4)] == ["q@2"]
    assert log.registered("t", 2, 4) == []


def test_an_altered_stream_keeps_its_incarnation_and_its_queries_and_says_what_held_when() -> None:
    log = plan_log(STREAM, QUERY, "ALTER STREAM t SET LATENESS 5s", "ALTER STREAM t SET IDLE AFTER 1s, LATENESS 2s")
    catalogue = log.newest
    stream = catalogue.streams["t"]
    assert (stream.incarnation, stream.lateness, stream.idle_after) == (1, 2_000, 1_000)
    assert [r.identity for r in catalogue.readers(stream)] == ["q@2"]
    assert log.touched("t") == 4
    assert log.turn_after(catalogue.queries["q"].signature, 2) is None, "no query comes or goes"
    (incarnation,) = log.incarnations("t")
    assert incarnation.stream.is_declared_as(stream)
    assert [incarnation.at(version).lateness for version in (0, 1, 2, 3, 4, 9)] == [0, 0, 0, 5_000, 2_000, 2_000]
    assert [log.at(version).streams["t"].lateness for version in (2, 3, 4)] == [0, 5_000, 2_000]


def test_altering_to_what_is_said_already_is_no_change() -> None:
    catalogue = drafting(plan_log(STREAM, "ALTER STREAM t SET LATENESS 5s").newest)
    (statement,) = parse_script("ALTER STREAM t SET LATENESS 5s, IDLE AFTER DEFAULT")
    drafted = draft(catalogue, statement)
    assert (drafted.summary, drafted.changes) == ("nothing to alter in stream t", [])


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        ("ALTER STREAM tt SET LATENESS 5s", NotFoundError, "did you mean 't'?"),
        (STREAM, AlreadyExistsError, "a stream 't' exists already"),
        (QUERY, AlreadyExistsError, "a query 'q' exists already"),
        ("DROP QUERY p", NotFoundError, "known: q"),
        ("DROP STREAM tt", NotFoundError, "did you mean 't'?"),
        ("SEAL STREAM t; SEAL STREAM t", ConflictError, "sealed already"),
        ('CREATE STREAM "a/b" (ts TIMESTAMP) TIMESTAMP BY ts', StatementError, "cannot be called"),
    ],
)
def test_what_makes_no_sense_is_refused(script: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        plan_log(STREAM, QUERY, script)


TABLE = "CREATE TABLE names (k STRING, n STRING, since TIMESTAMP) KEY (k) TIMESTAMP BY since NON RETROACTIVE"
JOIN = "CREATE QUERY j AS SELECT names.n, t.ts FROM t [TUMBLE 10 SECONDS] JOIN names ON t.k = names.k"


def test_a_table_and_the_queries_that_join_it_are_in_the_plans() -> None:
    log = plan_log(STREAM, TABLE, JOIN)
    table = log.newest.streams["names"]
    assert (table.keys, table.retroactive, table.timestamp_by) == (("k",), False, "since")
    assert topics.sequenced(table) == "t.names.1"
    assert [s.name for s in log.newest.queries["j"].query.streams] == ["t", "names"]
    assert log.touched("names") == log.touched("t") == 3


def test_a_sealed_table_can_still_be_joined_and_is_dropped_with_what_reads_it() -> None:
    catalogue = drafting(plan_log(STREAM, TABLE, "SEAL TABLE names", JOIN).newest)
    (statement,) = parse_script("DROP TABLE names")
    assert draft(catalogue, statement).summary == "dropped query j; dropped table names"
    assert plan_log(STREAM, TABLE, "SEAL TABLE names", TABLE).newest.streams["names"].incarnation == 2


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        (TABLE, AlreadyExistsError, "a table 'names' exists already"),
        ("SEAL TABLE names; CREATE STREAM names (a BIGINT)", AlreadyExistsError, "a table 'names' exists already"),
        ("DROP TABLE nams", NotFoundError, "did you mean 'names'?"),
        ("SEAL TABLE t", NotFoundError, "there is no table 't'"),
        ("SEAL STREAM names", NotFoundError, "there is no stream 'names'"),
        ("SEAL TABLE names; SEAL TABLE names", ConflictError, "DROP TABLE names"),
        (JOIN.replace("names.k", "names.kk"), StatementError, "did you mean"),
    ],
)
def test_what_makes_no_sense_with_a_table_is_refused(script: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        plan_log(STREAM, TABLE, script)
