"""Who sees, reads, changes and drops what: owners, grants, roles, namespaces."""

from __future__ import annotations

import pytest

from services.windows.draft import Drafted, records_of
from services.windows.permissions import check_scope
from services.windows.plan_draft import PlanDraft
from stairwise.cql.grants import Privilege, query_target, stream_target
from stairwise.cql.parser import parse_script
from stairwise.errors import (
    ConflictError,
    LimitError,
    NotFoundError,
    PermissionDeniedError,
    StairwiseError,
    StatementError,
)
from stairwise.platform.security.caller import ANONYMOUS, Caller
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.tokens import Principal
from stairwise.v1 import plans_pb2
from stairwise.wire.plans import PlanLog

SCOPES = frozenset({TokenScope.READ, TokenScope.DEFINE, TokenScope.PUBLISH})
ANN, BOB, EVE = (Principal(name, SCOPES) for name in ("ann", "bob", "eve"))
ROOT = Principal("root", frozenset({TokenScope.ADMIN}))
STREAM = "CREATE STREAM trades (ts TIMESTAMP, qty BIGINT) TIMESTAMP BY ts"
QUERY = "CREATE QUERY volume AS SELECT SUM(qty) AS v FROM trades [TUMBLE 1 MINUTE]"


class Plans:
    """What the registry does to the plans, without Kafka."""

    def __init__(self) -> None:
        self.log = PlanLog()

    def say(self, who: Principal, script: str) -> list[Drafted]:
        statements = parse_script(script)
        for statement in statements:
            check_scope(statement, who)
        draft = PlanDraft.of(self.log.newest)
        drafted = draft.take(statements, Caller(who))
        changes = records_of(drafted)
        if changes:
            number = self.log.newest.version + 1
            written = plans_pb2.PlanVersion(number=number, changes=changes).SerializeToString()
            self.log.add(plans_pb2.PlanVersion.FromString(written))
            assert draft.authority == self.log.newest.authority
        return drafted

    def may(self, who: Principal, privilege: Privilege, stream: str = "trades") -> bool:
        return self.log.newest.rights(who).may(privilege, stream_target(stream))

    def reads(self, who: Principal, query: str = "volume") -> None:
        newest = self.log.newest
        registered = newest.queries[query]
        newest.rights(who).check_query(query, [s.name for s in registered.query.streams], newest.queries)


@pytest.fixture
def plans() -> Plans:
    """Of ann."""
    made = Plans()
    made.say(ANN, f"{STREAM}; {QUERY}")
    return made


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE QUERY stolen AS SELECT qty FROM trades", StatementError),
        ("SELECT a.qty FROM trades [NOW] a, trades [NOW] b WHERE a.qty = b.qty", StatementError),
        ("EXPLAIN SELECT qty FROM trades", StatementError),
        ("EXPLAIN volume", NotFoundError),
        ("DROP QUERY volume", NotFoundError),
        ("DROP STREAM trades", NotFoundError),
        ("SEAL STREAM trades", NotFoundError),
        ("ALTER STREAM trades SET LATENESS 1s", NotFoundError),
        ("GRANT READ ON trades TO bob", NotFoundError),
        ("GRANT READ ON * TO bob", PermissionDeniedError),
        ("CREATE ROLE desk", PermissionDeniedError),
        ("CREATE NAMESPACE mine", PermissionDeniedError),
    ],
)
def test_what_belongs_to_another_is_not_there(plans: Plans, statement: str, error: type[StairwiseError]) -> None:
    with pytest.raises(error) as refused:
        plans.say(BOB, statement)
    if error is not PermissionDeniedError:
        assert "did you mean" not in str(refused.value)
    assert plans.log.newest.version == 1
    with pytest.raises(NotFoundError):
        plans.reads(BOB)


def test_an_owner_and_an_admin_may_do_everything(plans: Plans) -> None:
    for who in (ANN, ROOT, ANONYMOUS):
        assert all(plans.may(who, privilege) for privilege in Privilege)
        plans.reads(who)
    plans.say(ROOT, "DROP QUERY volume")
    plans.say(ANN, "DROP STREAM trades")


def test_what_an_admin_creates_and_what_old_plans_hold_belongs_to_admins(plans: Plans) -> None:
    plans.say(ROOT, "CREATE STREAM quotes (ts TIMESTAMP) TIMESTAMP BY ts")
    assert plans.log.newest.owner(stream_target("quotes")) == ""
    assert not plans.may(Principal("root", SCOPES), Privilege.READ, "quotes")
    nobody = Principal("", SCOPES)
    assert not plans.may(nobody, Privilege.READ, "trades")


@pytest.mark.parametrize(
    ("privilege", "allowed", "refused"),
    [
        ("READ", ["SELECT qty FROM trades", "EXPLAIN SELECT qty FROM trades"], ["SEAL STREAM trades"]),
        ("PUBLISH", ["SEAL STREAM trades"], ["SELECT qty FROM trades", "DROP STREAM trades"]),
        ("DEFINE", ["ALTER STREAM trades SET LATENESS 1s", f"SEAL STREAM trades; {STREAM}"], ["DROP STREAM trades"]),
        ("DROP", ["DROP STREAM trades"], ["ALTER STREAM trades SET LATENESS 1s"]),
    ],
)
def test_a_grant_allows_what_it_says_and_no_more(
    plans: Plans, privilege: str, allowed: list[str], refused: list[str]
) -> None:
    plans.say(ANN, f"GRANT {privilege} ON trades TO bob")
    for statement in refused:
        with pytest.raises(PermissionDeniedError):
            plans.say(BOB, statement)
    for statement in allowed:
        plans.say(BOB, statement)
    with pytest.raises((StatementError, NotFoundError)):
        plans.say(EVE, allowed[0])


def test_a_reopened_stream_stays_its_owners(plans: Plans) -> None:
    plans.say(ANN, "GRANT DEFINE ON trades TO bob; SEAL STREAM trades")
    with pytest.raises(NotFoundError):
        plans.say(EVE, STREAM)
    plans.say(BOB, STREAM)
    assert plans.log.newest.owner(stream_target("trades")) == "ann"


def test_a_grant_goes_with_what_it_is_on(plans: Plans) -> None:
    plans.say(ANN, "GRANT READ ON trades TO bob; GRANT READ ON volume TO bob")
    plans.say(ANN, f"DROP STREAM trades; {STREAM}; {QUERY}")
    assert not plans.may(BOB, Privilege.READ)
    assert not plans.log.newest.rights(BOB).sees(query_target("volume"))


def test_a_query_is_read_as_long_as_its_owner_may_read_its_streams(plans: Plans) -> None:
    plans.say(ANN, "GRANT READ ON trades TO bob")
    plans.say(BOB, "CREATE QUERY mine AS SELECT qty FROM trades; GRANT READ ON mine TO eve")
    plans.reads(EVE, "mine")
    plans.say(ANN, "REVOKE READ ON trades FROM bob")
    for who in (BOB, EVE):
        with pytest.raises(PermissionDeniedError, match="bob may no longer read"):
            plans.reads(who, "mine")
    plans.reads(ROOT, "mine")


def test_a_role_passes_on_what_it_was_granted_until_it_is_revoked(plans: Plans) -> None:
    plans.say(ROOT, "CREATE ROLE desk; GRANT ROLE desk TO bob, eve")
    plans.say(ANN, "GRANT READ ON trades TO desk")
    assert plans.may(BOB, Privilege.READ)
    assert not plans.may(Principal("desk", SCOPES), Privilege.READ), "a principal of the same name is not the role"
    plans.say(ROOT, "REVOKE ROLE desk FROM bob")
    assert not plans.may(BOB, Privilege.READ)
    assert plans.may(EVE, Privilege.READ)
    plans.say(ROOT, "DROP ROLE desk; CREATE ROLE desk; GRANT ROLE desk TO eve")
    assert not plans.may(EVE, Privilege.READ)
    with pytest.raises(ConflictError, match="is a role"):
        plans.say(ROOT, "GRANT ROLE desk TO desk")
    with pytest.raises(NotFoundError, match="no role"):
        plans.say(ROOT, "GRANT ROLE dsek TO bob")


def test_show_grants_shows_what_concerns_the_caller_and_can_be_said_again(plans: Plans) -> None:
    plans.say(ROOT, "CREATE ROLE desk; GRANT ROLE desk TO bob; GRANT READ ON * TO eve")
    plans.say(ANN, "GRANT READ, DROP ON volume TO desk")
    shown = {who.name: plans.say(who, "SHOW GRANTS")[0].explanation for who in (ROOT, ANN, BOB, EVE)}
    assert shown["eve"] == 'GRANT READ ON * TO "eve";'
    assert 'GRANT DROP ON QUERY "volume" TO "desk";' in shown["ann"]
    assert "eve" not in shown["ann"]
    assert "eve" not in shown["bob"]
    assert 'GRANT ROLE "desk" TO "bob";' in shown["bob"]
    again = Plans()
    again.say(ANN, f"{STREAM}; {QUERY}")
    again.say(ROOT, shown["root"])
    assert again.log.newest.authority == plans.log.newest.authority


def test_a_namespace_is_for_whoever_may_define_in_it_and_holds_no_more_than_its_quota(plans: Plans) -> None:
    stream = "CREATE STREAM team.{} (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts"
    with pytest.raises(PermissionDeniedError, match="may not create in the namespace"):
        plans.say(BOB, stream.format("a"))
    plans.say(ROOT, "CREATE NAMESPACE team STREAMS 2 QUERIES 1; GRANT DEFINE, READ ON team.* TO bob")
    plans.say(BOB, stream.format("a"))
    plans.say(BOB, "CREATE QUERY team.q AS SELECT a.v FROM team.a")
    plans.say(ROOT, stream.format("b"))
    with pytest.raises(LimitError, match="would hold 3 streams, and may hold 2"):
        plans.say(BOB, stream.format("c"))
    with pytest.raises(LimitError, match="would hold 2 queries, and may hold 1"):
        plans.say(BOB, "CREATE QUERY team.q2 AS SELECT v FROM team.a")
    assert plans.log.newest.rights(BOB).sees(stream_target("team.b"))
    assert not plans.log.newest.rights(EVE).sees(stream_target("team.b"))
    with pytest.raises(ConflictError, match=r"holds 'team\.a'"):
        plans.say(ROOT, "DROP NAMESPACE team")
    with pytest.raises(ConflictError, match=r"too like 'team\.a'"):
        plans.say(EVE, "CREATE STREAM team_a (v BIGINT)")
    plans.say(ROOT, "ALTER NAMESPACE team; DROP STREAM team.a; DROP STREAM team.b; DROP NAMESPACE team")


def test_explain_draws_only_the_queries_that_the_caller_sees(plans: Plans) -> None:
    plans.say(ANN, "GRANT READ ON trades TO bob")
    mine = plans.say(BOB, f"{QUERY.replace('volume', 'mine').replace('1 MINUTE', '2 MINUTES')}; EXPLAIN mine")
    assert "sharing: 1 query" in mine[1].explanation
    assert "sharing: 2 queries" in plans.say(ROOT, "EXPLAIN mine")[0].explanation


@pytest.mark.parametrize("script", ["GRANT READ ON nothing TO ann", "GRANT READ ON STREAM volume TO ann"])
def test_a_grant_on_what_is_not_there_is_refused(plans: Plans, script: str) -> None:
    with pytest.raises(NotFoundError):
        plans.say(ANN, script)
