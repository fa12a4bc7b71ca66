"""Who may do what, as statements say it: privileges, what they are on, roles, namespaces.

    GRANT READ, PUBLISH ON trades, team.* TO ann        4 grants: a privilege, on a target, to a grantee
    GRANT ROLE desk TO ann                              ann has what was granted to desk
    CREATE NAMESPACE team STREAMS 10 QUERIES 100        team.trades is a stream of it, one of 10 at most

Here is what the statements mean, and no more: whether anyone may say them, and what follows, the registry decides.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from stairwise.cql import ast
from stairwise.cql.literals import count
from stairwise.cql.source import Source
from stairwise.cql.window_clauses import single_options
from stairwise.errors import ConflictError, NotFoundError
from stairwise.schema import Stream

MAX_QUOTA = 1_000_000_000
LONGEST_PRINCIPAL = 200


class Privilege(StrEnum):
    READ = "READ"
    """Read it: in FROM, in lookups; of a query its results."""
    PUBLISH = "PUBLISH"
    """Publish to it: end its input by SEAL. Rows go to Kafka, which has rights of its own."""
    DEFINE = "DEFINE"
    """Declare it otherwise: ALTER, SEAL, reopen. Of a namespace: create in it."""
    DROP = "DROP"


class TargetKind(StrEnum):
    STREAM = "STREAM"
    """A stream or a table: they have their names in common."""
    QUERY = "QUERY"
    NAMESPACE = "NAMESPACE"
    EVERYTHING = "EVERYTHING"


@dataclass(frozen=True)
class GrantTarget:
    """What a privilege is on: a stream or a query, or all of a namespace, or everything."""

    kind: TargetKind
    name: str = ""

    @property
    def covering(self) -> tuple[GrantTarget, ...]:
        """Itself, and what it is part of."""
        namespace = namespace_of(self.name)
        within = (GrantTarget(TargetKind.NAMESPACE, namespace),) if namespace else ()
        return (self, *within, EVERYTHING)

    def __str__(self) -> str:
        """As a statement says it."""
        match self.kind:
            case TargetKind.EVERYTHING:
                return "*"
            case TargetKind.NAMESPACE:
                return f"{quoted(self.name)}.*"
        return f"{self.kind} {quoted(self.name)}"


EVERYTHING = GrantTarget(TargetKind.EVERYTHING)


def stream_target(name: str) -> GrantTarget:
    return GrantTarget(TargetKind.STREAM, name)


def query_target(name: str) -> GrantTarget:
    return GrantTarget(TargetKind.QUERY, name)


@dataclass(frozen=True)
class Grant:
    """A privilege on something, and who is given it: a principal or a role."""

    privilege: Privilege
    target: GrantTarget
    grantee: str


@dataclass(frozen=True)
class Namespace:
    """How many streams, tables among them, and queries may have its name before theirs; None: any number."""

    name: str
    streams: int | None = None
    queries: int | None = None


def namespace_of(name: str) -> str:
    """The namespace of a stream or query; empty where it is in none."""
    return name.rpartition(".")[0]


def quoted(name: str) -> str:
    """A name as it is read, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def resolve_grants(
    statement: ast.GrantPrivileges,
    streams: Mapping[str, Stream],
    queries: Container[str],
    namespaces: Container[str],
) -> Iterator[Grant]:
    """What a GRANT gives, or a REVOKE takes, of what there is."""
    targets = [_target(statement.source, clause, streams, queries, namespaces) for clause in statement.targets]
    for name in statement.grantees:
        check_principal(statement.source, name)
    for grantee in statement.grantees:
        for target in targets:
            for privilege in statement.privileges:
                yield Grant(Privilege(privilege.text), target, grantee.text)


def check_principal(source: Source, name: ast.Name) -> None:
    """A principal is called what the tokens file calls it."""
    if not name.text.isprintable() or len(name.text) > LONGEST_PRINCIPAL:
        raise source.error(name.span, "this is no name of a principal", expected="up to 200 printable characters")


def resolve_namespace(statement: ast.SetNamespace) -> Namespace:
    source = statement.source
    said = single_options(source, statement.quotas)
    quotas = {}
    for keyword, option in said.items():
        assert isinstance(option.value, ast.Number), "the grammar gives a quota a number"
        quotas[keyword] = count(source, option.value, keyword, MAX_QUOTA)
    return Namespace(statement.name.text, quotas.get("STREAMS"), quotas.get("QUERIES"))


def _target(
    source: Source,
    clause: ast.TargetClause,
    streams: Mapping[str, Stream],
    queries: Container[str],
    namespaces: Container[str],
) -> GrantTarget:
    name = clause.name.text
    match clause.kind:
        case "EVERYTHING":
            return EVERYTHING
        case "NAMESPACE":
            if name not in namespaces:
                raise source.error(
                    clause.name.span, f"there is no namespace {name!r}", hint="CREATE NAMESPACE makes one"
                )
            return GrantTarget(TargetKind.NAMESPACE, name)
        case "STREAM" | "TABLE" as kind:
            if name not in streams or streams[name].is_table != (kind == "TABLE"):
                raise NotFoundError(kind.lower(), name, ())
            return stream_target(name)
        case "QUERY":
            if name not in queries:
                raise NotFoundError("query", name, ())
            return query_target(name)
    if name in streams and name in queries:
        raise ConflictError(
            f"{name!r} is a {streams[name].kind} and a query",
            hint=f"write ON {streams[name].kind.upper()} {name} or ON QUERY {name}",
        )
    if name not in streams and name not in queries:
        raise NotFoundError("stream, table or query", name, ())
    return stream_target(name) if name in streams else query_target(name)
