"""What a caller may say: the scope that a statement needs, and the privileges on what it names."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stairwise.cql import ast
from stairwise.cql.grants import (
    GrantTarget,
    Privilege,
    TargetKind,
    namespace_of,
    query_target,
    stream_target,
)
from stairwise.cql.source import Source, Span
from stairwise.errors import PermissionDeniedError, nearest
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.tokens import Principal
from stairwise.wire.authority import Rights

_LEAVES = (str, ast.Name, Span, Source, ast.Number, ast.String, ast.Duration, bool, int, type(None))
"""What holds no stream: most of a tree, which is not looked into."""


def check_scope(statement: ast.Statement, principal: Principal) -> None:
    """Refuse a statement that the caller may not say, whatever it is about."""
    needed = needed_for(statement)
    if not ({TokenScope.ADMIN, *needed} & principal.scopes):
        raise PermissionDeniedError(
            f"{principal.name} may not say {verb(statement)}: it needs the scope " + " or ".join(sorted(needed)),
            hint=f"it has {', '.join(sorted(principal.scopes)) or 'none'}",
        )


def needed_for(statement: ast.Statement) -> frozenset[TokenScope]:
    """Any one of these scopes."""
    match statement:
        case ast.SealStream() | ast.SealTable():
            return frozenset({TokenScope.PUBLISH, TokenScope.DEFINE})
        case ast.Explain():
            return frozenset({TokenScope.READ, TokenScope.DEFINE})
        case ast.ShowGrants() | ast.ShowListing() | ast.Describe():
            return frozenset({TokenScope.READ, TokenScope.DEFINE, TokenScope.PUBLISH})
        case ast.CreateRole() | ast.DropRole() | ast.GrantRole() | ast.SetNamespace() | ast.DropNamespace():
            return frozenset({TokenScope.ADMIN})
        case _:
            return frozenset({TokenScope.DEFINE})


def verb(statement: ast.Statement) -> str:
    """CREATE STREAM, SEAL STREAM and so on; a bare SELECT registers a query."""
    match statement:
        case ast.SelectStatement():
            return "SELECT"
        case ast.GrantPrivileges() | ast.GrantRole():
            said = "REVOKE" if statement.revoked else "GRANT"
            return said if isinstance(statement, ast.GrantPrivileges) else f"{said} ROLE"
        case ast.SetNamespace():
            return "ALTER NAMESPACE" if statement.altered else "CREATE NAMESPACE"
    name = type(statement).__name__
    return "".join(f" {c}" if c.isupper() else c for c in name).strip().upper()


def is_question(statement: ast.Statement) -> bool:
    """Does it change nothing?"""
    return isinstance(statement, ast.Explain | ast.ShowGrants | ast.ShowListing | ast.Describe)


def check_privileges(
    statement: ast.Statement,
    rights: Rights,
    streams: Collection[str],
    queries: Collection[str],
    sealed: Collection[str],
) -> None:
    """Refuse a statement about what the caller does not see, or may not treat so."""
    if not rights.principal.is_limited:
        return
    match statement:
        case ast.CreateStream() | ast.CreateTable():
            _check_namespace(statement.name.text, rights)
            if statement.name.text in sealed:
                rights.check(stream_target(statement.name.text), streams, Privilege.DEFINE)
        case ast.AlterStream():
            rights.check(stream_target(statement.name.text), streams, Privilege.DEFINE)
        case ast.SealStream() | ast.SealTable():
            rights.check(stream_target(statement.name.text), streams, Privilege.PUBLISH, Privilege.DEFINE)
        case ast.DropStream(name=name) | ast.DropTable(name=name) if not statement.if_exists or name.text in streams:
            rights.check(stream_target(statement.name.text), streams, Privilege.DROP)
        case ast.CreateQuery(name=name):
            _check_namespace(name.text, rights)
            if statement.replaces and name.text in queries:
                rights.check(query_target(name.text), queries, Privilege.DROP)
            _check_sources(statement.select, rights, streams)
        case ast.SelectStatement():
            _check_sources(statement, rights, streams)
        case ast.RestartQuery():
            rights.check(query_target(statement.name.text), queries, Privilege.DEFINE, Privilege.DROP)
        case ast.DropQuery(name=name) if not statement.if_exists or name.text in queries:
            rights.check(query_target(statement.name.text), queries, Privilege.DROP)
        case ast.Explain(target=ast.SelectStatement() as select):
            _check_sources(select, rights, streams)
        case ast.Explain(target=ast.Name(text=name)):
            rights.check(query_target(name), queries, Privilege.READ)


def check_granting(target: GrantTarget, rights: Rights, streams: Collection[str], queries: Collection[str]) -> None:
    """Whoever owns something may say who else may do what to it."""
    if target.kind in (TargetKind.STREAM, TargetKind.QUERY):
        rights.check(target, streams if target.kind is TargetKind.STREAM else queries, *Privilege)
    if not rights.owns(target):
        raise PermissionDeniedError(
            f"{rights.principal.name} may not grant or revoke on {target}", hint="its owner may, and an admin"
        )


def _check_namespace(name: str, rights: Rights) -> None:
    namespace = namespace_of(name)
    if namespace and not rights.may(Privilege.DEFINE, GrantTarget(TargetKind.NAMESPACE, namespace)):
        raise PermissionDeniedError(
            f"{rights.principal.name} may not create in the namespace {namespace!r}",
            hint=f"an admin can say GRANT DEFINE ON {namespace}.* TO {rights.principal.name}",
        )


def _check_sources(select: ast.SelectStatement, rights: Rights, streams: Collection[str]) -> None:
    """What stands in FROM must be readable; what is not seen is said not to be there, as of any unknown name."""
    for clause in sources(select.relation):
        target = stream_target(clause.stream.text)
        if clause.stream.text in streams and rights.sees(target):
            rights.check(target, streams, Privilege.READ)
            continue
        raise select.source.error(
            clause.stream.span,
            f"there is no stream {clause.stream.text!r}",
            hint=nearest(clause.stream.text, rights.seen(stream_target, streams), "stream"),
        )


def sources(node: object) -> Iterator[ast.SourceClause]:
    """Every stream that a syntax tree reads, however deep it stands."""
    if isinstance(node, tuple):
        for each in node:
            yield from sources(each)
    elif not isinstance(node, _LEAVES):
        if isinstance(node, ast.SourceClause):
            yield node
        for field in getattr(node, "__slots__", ()):
            yield from sources(getattr(node, field))
