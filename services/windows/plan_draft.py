"""The plans as they would be after some statements: what is declared, who owns it, who was granted what.

A script is drafted on a copy: what is refused leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.windows.draft import Drafted, draft, drafting, records_of
from services.windows.permissions import check_granting, check_privileges
from stairwise.cql import ast, script
from stairwise.cql.grants import GrantTarget, query_target, quoted, stream_target
from stairwise.errors import AlreadyExistsError, ConflictError, LimitError, NotFoundError
from stairwise.platform.security.caller import Caller
from stairwise.v1.plans_pb2 import Change
from stairwise.wire.authority import ADMINS, Authority, Rights, grant_from_proto
from stairwise.wire.plans import PlanCatalogue


@dataclass
class PlanDraft:
    catalogue: script.Catalogue
    owners: dict[GrantTarget, str]
    authority: Authority
    most_pairs: int | None = None
    """Of a query that pairs rows which nothing links, how many it may; None: any number."""

    @classmethod
    def of(cls, plans: PlanCatalogue, most_pairs: int | None = None) -> PlanDraft:
        owners = {stream_target(name): plans.owners.get(name, ADMINS) for name in plans.streams}
        owners |= {query_target(name): registered.owner for name, registered in plans.queries.items()}
        return cls(drafting(plans), owners, plans.authority, most_pairs)

    def copy(self) -> PlanDraft:
        return replace(self, catalogue=self.catalogue.copy(), owners=dict(self.owners))

    def take(self, statements: Sequence[ast.Statement], caller: Caller) -> list[Drafted]:
        """Draft a script; raises what speaks against it, and is of no use then."""
        drafted = [self._take(statement, caller) for statement in statements]
        changes = records_of(drafted)
        if changes:
            self.catalogue.check_quotas()
            self._check_queries(changes, caller)
        return drafted

    def _take(self, statement: ast.Statement, caller: Caller) -> Drafted:
        rights = Rights(caller.principal, self.authority, self.owners.get)
        there = self.catalogue
        check_privileges(statement, rights, there.streams, there.queries, there.sealed)
        drafted = draft(there, statement, rights, self.most_pairs)
        for change in drafted.changes:
            self._check_authority(change, rights)
            self._own(change, caller)
            self.authority = self.authority.after(change)
        if isinstance(statement, ast.ShowGrants):
            return replace(drafted, explanation="\n".join(_shown(self.authority, rights)))
        return drafted

    def _own(self, change: Change, caller: Caller) -> None:
        """Say whose it is that comes; forget what goes. A stream that is reopened stays its owner's."""
        owner = caller.principal.name if caller.principal.is_limited else ADMINS
        match change.WhichOneof("change"):
            case "create_stream":
                target = stream_target(change.create_stream.stream.name)
                change.create_stream.owner = self.owners.setdefault(target, owner)
            case "create_query":
                self.owners[query_target(change.create_query.name)] = change.create_query.owner = owner
            case "drop_stream":
                self.owners.pop(stream_target(change.drop_stream.name), None)
            case "drop_query":
                self.owners.pop(query_target(change.drop_query.name), None)

    def _check_authority(self, change: Change, rights: Rights) -> None:
        roles, how = self.authority.roles, change.WhichOneof("change")
        match how:
            case "grant" | "revoke":
                grant = grant_from_proto(getattr(change, how))
                check_granting(grant.target, rights, self.catalogue.streams, self.catalogue.queries)
            case "create_role":
                name = change.create_role.name
                if name in roles:
                    raise AlreadyExistsError("role", name)
                if name in self.authority.grants or any(name in members for members in roles.values()):
                    raise ConflictError(f"{name!r} is a principal that was granted something", hint="take another name")
            case "drop_role":
                _must_be_role(change.drop_role.name, self.authority)
            case "join_role" | "leave_role":
                membership = getattr(change, how)
                _must_be_role(membership.role, self.authority)
                if membership.member in roles:
                    raise ConflictError(f"{membership.member!r} is a role", hint="roles are granted to principals")

    def _check_queries(self, changes: Sequence[Change], caller: Caller) -> None:
        """Refuse more queries than the caller may have."""
        created = any(change.HasField("create_query") for change in changes)
        if caller.max_queries is None or not created:
            return
        name = caller.principal.name
        count = sum(self.owners[query_target(query)] == name for query in self.catalogue.queries)
        if count > caller.max_queries:
            raise LimitError(
                f"{name} would have {count} queries, and may have {caller.max_queries}",
                hint="drop some, or raise max_queries of the token",
            )


def _must_be_role(name: str, authority: Authority) -> None:
    if name not in authority.roles:
        raise NotFoundError("role", name, authority.roles)


def _shown(authority: Authority, rights: Rights) -> Iterator[str]:
    """What was granted, as the statements that would grant it again: an admin sees all, others what concerns them."""
    name = rights.principal.name
    own = {name, *(role for role, members in authority.roles.items() if name in members)}
    for role, members in sorted(authority.roles.items()):
        if rights.principal.is_limited and name not in members:
            continue
        yield f"CREATE ROLE {quoted(role)};"
        yield from (f"GRANT ROLE {quoted(role)} TO {quoted(member)};" for member in sorted(members))
    for grant in authority.all_grants():
        if grant.grantee in own or rights.owns(grant.target):
            yield f"GRANT {grant.privilege} ON {grant.target} TO {quoted(grant.grantee)};"
