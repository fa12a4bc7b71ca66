"""From statements to the changes that a plan version carries, and to words that say what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stairwise.cql import ast
from stairwise.cql.script import (
    Catalogue,
    Change,
    Explained,
    QueryCreated,
    QueryDropped,
    StreamAltered,
    StreamCreated,
    StreamDropped,
    StreamSealed,
    TableCreated,
    TableDropped,
    TableSealed,
    Told,
)
from stairwise.plan.explain import explain
from stairwise.schema import Stream
from stairwise.v1.plans_pb2 import Change as ChangeRecord
from stairwise.wire import plans
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
    )


def draft(catalogue: Catalogue, statement: ast.Statement) -> Drafted:
    """Apply a statement to the catalogue; what makes no sense there raises and changes nothing."""
    changes = catalogue.apply(statement)
    records = [record for change in changes if (record := _record(change)) is not None]
    summary = "; ".join(_summary(change) for change in changes)
    match changes[-1]:
        case StreamCreated(stream=stream) | TableCreated(table=stream):
            return Drafted(summary, records, stream=stream)
        case QueryCreated(query=query):
            return Drafted(summary, records, query=query.name)
        case Explained(query=query, analyze=analyze):
            said = explain(query, catalogue.queries)
            return Drafted(summary, records, explanation=said, explained=query.name, analyze=analyze)
        case Told(text=text):
            return Drafted(summary, records, explanation=text)
    return Drafted(summary, records)


def records_of(drafted: Sequence[Drafted]) -> list[ChangeRecord]:
    return [record for each in drafted for record in each.changes]


def _record(change: Change) -> ChangeRecord | None:
    match change:
        case StreamCreated(stream=stream) | TableCreated(table=stream):
            return ChangeRecord(create_stream=ChangeRecord.CreateStream(stream=stream_to_proto(stream)))
        case StreamAltered(stream=stream):
            if change.changes_nothing:
                return None
            return ChangeRecord(alter_stream=ChangeRecord.AlterStream(stream=stream_to_proto(stream)))
        case StreamSealed(stream=stream) | TableSealed(table=stream):
            sealed = ChangeRecord.SealStream(name=stream.name, incarnation=stream.incarnation)
            return ChangeRecord(seal_stream=sealed)
        case StreamDropped(stream=stream) | TableDropped(table=stream):
            dropped = ChangeRecord.DropStream(name=stream.name, incarnation=stream.incarnation)
            return ChangeRecord(drop_stream=dropped)
        case QueryCreated(query=query):
            return ChangeRecord(create_query=ChangeRecord.CreateQuery(name=query.name, text=query.text))
        case QueryDropped(query=query):
            return ChangeRecord(drop_query=ChangeRecord.DropQuery(name=query.name))
        case Explained() | Told():
            return None


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
        case QueryDropped(query=query):
            return f"dropped query {query.name}"
        case Explained(query=query):
            return f"explained {query.name}" if query.name else "explained"
        case Told(summary=summary):
            return summary
