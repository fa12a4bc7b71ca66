"""RESTART QUERY in the plans: the query leaves its signature and joins one of its own."""

from __future__ import annotations

from stairwise.v1 import plans_pb2
from stairwise.wire.plans import PlanLog
from tests.plans import plan_log

SHARED = """CREATE STREAM s (a BIGINT); CREATE STREAM t (a BIGINT);
CREATE QUERY x AS SELECT COUNT(*) AS n FROM s [TUMBLE 1 SECOND];
CREATE QUERY y AS SELECT COUNT(*) AS n FROM s [TUMBLE 2 SECONDS];
CREATE QUERY alone AS SELECT a FROM s [ROWS 3] EMIT RSTREAM"""


def restarted(*names: str) -> PlanLog:
    plans = plan_log(SHARED)
    changes = [plans_pb2.Change(restart_query=plans_pb2.Change.RestartQuery(name=name)) for name in names]
    plans.add(plans_pb2.PlanVersion(number=2, changes=changes))
    return plans


def test_a_restarted_query_turns_from_what_it_shared_to_a_signature_of_its_own() -> None:
    plans = restarted("x")
    before, after = plans.at(1).queries["x"], plans.newest.queries["x"]
    assert before.signature == plans.newest.queries["y"].signature != after.signature
    assert after.query is before.query
    left = plans.turn_after(before.signature, 1)
    joined = plans.turn_after(after.signature, 0)
    assert left is not None
    assert left.left == [before]
    assert not left.joined
    assert joined is not None
    assert joined.version == 2
    assert joined.joined == [after]
    assert not joined.left
    assert [r.query.name for r in plans.members(before.signature, 2)] == ["y"]
    assert (plans.touched("s"), plans.touched("t")) == (2, 1)
    assert plans.registered("s", 1, 2) == [after]


def test_queries_that_are_restarted_together_share_again() -> None:
    queries = restarted("x", "y").newest.queries
    assert queries["x"].signature == queries["y"].signature


def test_a_query_that_runs_alone_is_told_from_itself_before() -> None:
    plans = restarted("alone")
    assert [plans.at(version).queries["alone"].signature for version in (1, 2)] == ["alone@1", "alone@2"]
