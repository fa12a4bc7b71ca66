"""From statements to the changes that a plan version carries, and to words that say what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stairwise.algebra.query import Query, selects
from stairwise.cql import ast
from stairwise.cql.grants import query_target, stream_target
from stairwise.cql.script import (
    Catalogue,
    Change,
    Explained,
    GrantsShown,
    NamespaceDropped,
    NamespaceSet,
    PrivilegesGranted,
    QueryCreated,
    QueryDropped,
    QueryRestarted,
    RoleCreated,
    RoleDropped,
    RoleGranted,
    StreamAltered,
    StreamCreated,
    StreamDropped,
    StreamSealed,
    TableCreated,
    TableDropped,
    TableSealed,
    Told,
)
from stairwise.errors import LimitError
from stairwise.join.cross_product import cross_product
from stairwise.plan.explain import explain
from stairwise.schema import Stream
from stairwise.v1.plans_pb2 import Change as ChangeRecord
from stairwise.wire import plans
from stairwise.wire.authority import Rights, grant_to_proto
from stairwise.wire.schemas import stream_to_proto


@dataclass(frozen=True)
class Drafted:
    """What a statement would do."""

    summary: str
    changes: list[ChangeRecord] = field(default_factory=list)
    stream: Stream | None = None
    """The stream or table that it creates."""
    query: str = ""
    """The query that it registers."""
    explanation: str = ""
    explained: str = ""
    """The running query that it explains."""
    analyze: bool = False
    """Is it to say what that query costs?"""


def drafting(catalogue: plans.PlanCatalogue) -> Catalogue:
    """What is declared at a plan version, for statements to change before any of it is said to anyone."""
    return Catalogue(
        streams=dict(catalogue.streams),
        queries={name: registered.query for name, registered in catalogue.queries.items()},
        sealed=set(catalogue.sealed),
        incarnations=dict(catalogue.incarnations),
        namespaces=dict(catalogue.namespaces),
    )


def draft(
    catalogue: Catalogue, statement: ast.Statement, rights: Rights | None = None, most_pairs: int | None = None
) -> Drafted:
    """Apply a statement to the catalogue; what makes no sense there raises and changes nothing.

    SHOW, DESCRIBE and EXPLAIN tell of what the caller sees. A query that would pair more rows than a limit, for
    want of a condition that links them, is refused.
    """
    if isinstance(statement, ast.ShowListing | ast.Describe) and rights is not None:
        catalogue = _seen(catalogue, rights)
    changes = catalogue.apply(statement)
    records = [record for change in changes for record in _records(change)]
    summary = "; ".join(_summary(change) for change in changes)
    match changes[-1]:
        case StreamCreated(stream=stream) | TableCreated(table=stream):
            return Drafted(summary, records, stream=stream)
        case QueryCreated(query=query):
            return Drafted(summary + _pairing(query, most_pairs), records, query=query.name)
        case Explained(query=query, analyze=analyze):
            others = {n: q for n, q in catalogue.queries.items() if rights is None or rights.sees(query_target(n))}
            said = explain(query, others)
            return Drafted(summary, records, explanation=said, explained=query.name, analyze=analyze)
        case Told(text=text):
            return Drafted(summary, records, explanation=text)
    return Drafted(summary, records)


def _seen(catalogue: Catalogue, rights: Rights) -> Catalogue:
    streams = {name: stream for name, stream in catalogue.streams.items() if rights.sees(stream_target(name))}
    queries = {name: query for name, query in catalogue.queries.items() if rights.sees(query_target(name))}
    return replace(catalogue, streams=streams, queries=queries)


def _pairing(query: Query, most: int | None) -> str:
    """What is told of a query that pairs rows which nothing links."""
    crossed = [product for select in selects(query.relation) if (product := cross_product(select)) is not None]
    for product in crossed:
        if most is not None and product.pairs > most:
            raise LimitError(
                f"query {query.name} pairs {product}; at most {most:,} are allowed",
                hint="link all inputs by equalities (a.k = b.k) or by a bound on how far apart their times are, take"
                " smaller windows, or raise STAIRWISE_MOST_PAIRS of the windows service",
            )
    return "".join(f"; it pairs {product}" for product in crossed)


def records_of(drafted: Sequence[Drafted]) -> list[ChangeRecord]:
    return [record for each in drafted for record in each.changes]


def _records(change: Change) -> list[ChangeRecord]:
    match change:
        case StreamCreated(stream=stream) | TableCreated(table=stream):
            return [ChangeRecord(create_stream=ChangeRecord.CreateStream(stream=stream_to_proto(stream)))]
        case StreamAltered(stream=stream):
            if change.changes_nothing:
                return []
            return [ChangeRecord(alter_stream=ChangeRecord.AlterStream(stream=stream_to_proto(stream)))]
        case StreamSealed(stream=stream) | TableSealed(table=stream):
            sealed = ChangeRecord.SealStream(name=stream.name, incarnation=stream.incarnation)
            return [ChangeRecord(seal_stream=sealed)]
        case StreamDropped(stream=stream) | TableDropped(table=stream):
            dropped = ChangeRecord.DropStream(name=stream.name, incarnation=stream.incarnation)
            return [ChangeRecord(drop_stream=dropped)]
        case QueryCreated(query=query):
            return [ChangeRecord(create_query=ChangeRecord.CreateQuery(name=query.name, text=query.text))]
        case QueryRestarted(query=query):
            return [ChangeRecord(restart_query=ChangeRecord.RestartQuery(name=query.name))]
        case QueryDropped(query=query):
            return [ChangeRecord(drop_query=ChangeRecord.DropQuery(name=query.name))]
        case PrivilegesGranted(grants=grants, revoked=revoked):
            said = [grant_to_proto(grant) for grant in grants]
            return [ChangeRecord(revoke=g) if revoked else ChangeRecord(grant=g) for g in said]
        case RoleGranted(role=role, members=members, revoked=revoked):
            joined = [ChangeRecord.Membership(role=role, member=member) for member in members]
            return [ChangeRecord(leave_role=m) if revoked else ChangeRecord(join_role=m) for m in joined]
        case RoleCreated(role=role):
            return [ChangeRecord(create_role=ChangeRecord.Role(name=role))]
        case RoleDropped(role=role):
            return [ChangeRecord(drop_role=ChangeRecord.Role(name=role))]
        case NamespaceSet(namespace=n):
            quotas = ChangeRecord.Namespace(name=n.name, streams=n.streams, queries=n.queries)
            return [ChangeRecord(set_namespace=quotas)]
        case NamespaceDropped(name=name):
            return [ChangeRecord(drop_namespace=ChangeRecord.Namespace(name=name))]
        case Explained() | GrantsShown() | Told():
            return []


def _summary(change: Change) -> str:
    match change:
        case StreamCreated(stream=stream):
            return f"created stream {stream.name}"
        case StreamAltered(stream=stream):
            return f"{'nothing to alter in' if change.changes_nothing else 'altered'} stream {stream.name}"
        case TableCreated(table=table):
            return f"created table {table.name}"
        case TableSealed(table=table):
            return f"sealed table {table.name}"
        case TableDropped(table=table):
            return f"dropped table {table.name}"
        case StreamSealed(stream=stream):
            return f"sealed stream {stream.name}"
        case StreamDropped(stream=stream):
            return f"dropped stream {stream.name}"
        case QueryCreated(query=query):
            return f"created query {query.name}"
        case QueryRestarted(query=query):
            return f"restarted query {query.name}"
        case QueryDropped(query=query):
            return f"dropped query {query.name}"
        case Explained(query=query):
            return f"explained {query.name}" if query.name else "explained"
        case Told(summary=summary):
            return summary
        case PrivilegesGranted(grants=grants, revoked=revoked):
            return f"{'revoked' if revoked else 'granted'} {_counted(len(grants), 'privilege')}"
        case RoleGranted(role=role, members=members, revoked=revoked):
            return (
                f"{'revoked' if revoked else 'granted'} role {role} {'from' if revoked else 'to'} {', '.join(members)}"
            )
        case RoleCreated(role=role):
            return f"created role {role}"
        case RoleDropped(role=role):
            return f"dropped role {role}"
        case GrantsShown():
            return "nothing was granted"
        case NamespaceSet(namespace=namespace, altered=altered):
            return f"{'altered' if altered else 'created'} namespace {namespace.name}"
        case NamespaceDropped(name=name):
            return f"dropped namespace {name}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
