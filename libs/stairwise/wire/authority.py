"""Who may do what to which streams and queries, as the plans say it; every service decides by it.

    principal ──owns──▶ stream, query             may do everything to it
        │──was granted──▶ READ ON STREAM trades   may do that
        └──is in──▶ role ──was granted──▶ ...     may do that too

An admin may do everything; so may anyone where callers are not told apart. What an admin creates belongs to admins.
What a principal neither owns nor was granted anything on is not there for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from stairwise.cql.grants import Grant, GrantTarget, Privilege, TargetKind, query_target, quoted, stream_target
from stairwise.errors import NotFoundError, PermissionDeniedError
from stairwise.platform.security.tokens import Principal
from stairwise.v1 import plans_pb2

ADMINS = ""
"""The owner of what belongs to admins alone."""

Held = Mapping[GrantTarget, frozenset[Privilege]]


@dataclass(frozen=True)
class Authority:
    """What was granted to whom."""

    grants: Mapping[str, Held] = field(default_factory=lambda: MappingProxyType({}))
    """By the principal or role that has it."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """The members of each role."""

    def after(self, change: plans_pb2.Change) -> Authority:
        """The same after one more change of the plans. A grant goes with what it is on."""
        match change.WhichOneof("change"):
            case "grant":
                return self._with(grant_from_proto(change.grant), held=True)
            case "revoke":
                return self._with(grant_from_proto(change.revoke), held=False)
            case "create_role":
                return replace(self, roles={**self.roles, change.create_role.name: frozenset()})
            case "drop_role":
                role = change.drop_role.name
                return Authority(
                    {grantee: held for grantee, held in self.grants.items() if grantee != role},
                    {name: members for name, members in self.roles.items() if name != role},
                )
            case "join_role" | "leave_role" as how:
                said = getattr(change, how)
                members = self.roles[said.role] - {said.member} | ({said.member} if how == "join_role" else set())
                return replace(self, roles={**self.roles, said.role: members})
            case "drop_stream":
                return self._gone(stream_target(change.drop_stream.name))
            case "drop_query":
                return self._gone(query_target(change.drop_query.name))
            case "drop_namespace":
                return self._gone(GrantTarget(TargetKind.NAMESPACE, change.drop_namespace.name))
        return self

    def held_by(self, principal: str) -> list[Held]:
        """What a principal was granted, itself and through its roles."""
        names = [role for role, members in self.roles.items() if principal in members]
        names += [principal] if principal not in self.roles else []
        return [self.grants[name] for name in names if name in self.grants]

    def all_grants(self) -> Iterator[Grant]:
        for grantee, held in sorted(self.grants.items()):
            for target in sorted(held, key=str):
                yield from (Grant(privilege, target, grantee) for privilege in sorted(held[target]))

    def _with(self, grant: Grant, *, held: bool) -> Authority:
        before = self.grants.get(grant.grantee, {})
        privileges = before.get(grant.target, frozenset()) - {grant.privilege} | ({grant.privilege} if held else set())
        after = {**before, grant.target: privileges}
        return replace(self, grants=_pruned({**self.grants, grant.grantee: after}))

    def _gone(self, target: GrantTarget) -> Authority:
        if not any(target in held for held in self.grants.values()):
            return self
        kept = {grantee: {t: p for t, p in held.items() if t != target} for grantee, held in self.grants.items()}
        return replace(self, grants=_pruned(kept))


def _pruned(grants: Mapping[str, Held]) -> Mapping[str, Held]:
    """Without whoever has nothing left."""
    left = {grantee: {t: p for t, p in held.items() if p} for grantee, held in grants.items()}
    return {grantee: held for grantee, held in left.items() if held}


@dataclass(frozen=True)
class Rights:
    """What one principal may do. ``owner`` says whose something is; None: it is not there."""

    principal: Principal
    authority: Authority
    owner: Callable[[GrantTarget], str | None] = field(repr=False)

    def owns(self, target: GrantTarget) -> bool:
        return not self.principal.is_limited or self.owner(target) == self.principal.name

    def may(self, privilege: Privilege, target: GrantTarget) -> bool:
        return self.owns(target) or any(
            privilege in held.get(covering, ()) for held in self._held for covering in target.covering
        )

    def sees(self, target: GrantTarget) -> bool:
        """Is it there for the principal?"""
        return self.owns(target) or any(covering in held for held in self._held for covering in target.covering)

    def seen(self, target: Callable[[str], GrantTarget], names: Iterable[str]) -> list[str]:
        return [name for name in names if self.sees(target(name))]

    def check(self, target: GrantTarget, names: Iterable[str], *any_of: Privilege) -> None:
        """Refuse what the principal may not do; what it does not see is not found among the ``names`` that it sees."""
        if self.owner(target) is None or not self.sees(target):
            of_kind = stream_target if target.kind is TargetKind.STREAM else query_target
            raise NotFoundError(target.kind.lower(), target.name, self.seen(of_kind, names))
        if not any(self.may(privilege, target) for privilege in any_of):
            wanted = " or ".join(any_of)
            raise PermissionDeniedError(
                f"{self.principal.name} may not {wanted} the {target.kind.lower()} {target.name!r}",
                hint=f"its owner or an admin can say GRANT {any_of[0]} ON {target} TO {quoted(self.principal.name)}",
            )

    def of_owner(self, target: GrantTarget) -> Rights | None:
        """The rights of whoever owns something; None where admins do, who may everything."""
        owner = self.owner(target)
        return None if not owner else replace(self, principal=Principal(owner, frozenset()))

    def check_query(self, name: str, streams: Iterable[str], names: Iterable[str]) -> None:
        """Refuse to show the results of a query, also where its owner may no longer read what it reads."""
        self.check(query_target(name), names, Privilege.READ)
        owner = self.of_owner(query_target(name))
        if owner is None or not self.principal.is_limited:
            return
        for stream in streams:
            if not owner.may(Privilege.READ, stream_target(stream)):
                raise PermissionDeniedError(
                    f"the query {name!r} reads {stream!r}, which its owner {owner.principal.name} may no longer read",
                    hint=f"whoever owns {stream} can grant it READ again",
                )

    @cached_property
    def _held(self) -> list[Held]:
        return self.authority.held_by(self.principal.name)


def grant_from_proto(said: plans_pb2.Grant) -> Grant:
    kind = TargetKind(plans_pb2.Grant.Kind.Name(said.kind).removeprefix("KIND_"))
    privilege = Privilege(plans_pb2.Privilege.Name(said.privilege).removeprefix("PRIVILEGE_"))
    return Grant(privilege, GrantTarget(kind, said.name), said.grantee)


def grant_to_proto(grant: Grant) -> plans_pb2.Grant:
    return plans_pb2.Grant(
        privilege=plans_pb2.Privilege.Value(f"PRIVILEGE_{grant.privilege}"),
        kind=plans_pb2.Grant.Kind.Value(f"KIND_{grant.target.kind}"),
        name=grant.target.name,
        grantee=grant.grantee,
    )
