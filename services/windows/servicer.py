"""The registry over gRPC."""

from __future__ import annotations

from typing import TypeVar

import grpc

from services.windows.permissions import Caller
from services.windows.registry import Registry
from services.windows.status_messages import status_to_proto
from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.errors import StairwiseError
from stairwise.platform.security.access import Access
from stairwise.schema import Column
from stairwise.v1 import registry_pb2 as pb
from stairwise.v1 import registry_pb2_grpc, streams_pb2
from stairwise.wire.plans import Registered
from stairwise.wire.schemas import column_to_proto, stream_to_proto

NAME = "stairwise.v1.Registry"


class RegistryServicer(registry_pb2_grpc.RegistryServicer):
    """Each call is a script of one statement; ``Execute`` takes any script. The methods block: they run on threads."""

    def __init__(self, registry: Registry, access: Access) -> None:
        self._registry = registry
        self._access = access

    def Execute(self, request: pb.ExecuteRequest, context: grpc.aio.ServicerContext) -> pb.ExecuteResponse:
        drafted, version = self._registry.execute(request.script, self._caller(context))
        results = [pb.StatementResult(summary=d.summary, query=d.query, explanation=d.explanation) for d in drafted]
        return pb.ExecuteResponse(results=results, version=version)

    def CreateStream(
        self, request: pb.CreateStreamRequest, context: grpc.aio.ServicerContext
    ) -> pb.CreateStreamResponse:
        statement = _must_be(request.statement, ast.CreateStream, "a CREATE STREAM statement")
        drafted, version = self._registry.execute(request.statement, self._caller(context))
        stream = drafted[0].stream or self._registry.catalogue.streams[statement.name.text]
        return pb.CreateStreamResponse(stream=stream_to_proto(stream), version=version)

    def DropStream(self, request: pb.DropStreamRequest, context: grpc.aio.ServicerContext) -> pb.DropStreamResponse:
        _, version = self._registry.execute(f"DROP STREAM {_quoted(request.name)}", self._caller(context))
        return pb.DropStreamResponse(version=version)

    def ListStreams(self, request: pb.ListStreamsRequest, context: grpc.aio.ServicerContext) -> pb.ListStreamsResponse:
        catalogue = self._registry.catalogue
        return pb.ListStreamsResponse(
            streams=[stream_to_proto(s, sealed=n in catalogue.sealed) for n, s in sorted(catalogue.streams.items())]
        )

    def CreateQuery(self, request: pb.CreateQueryRequest, context: grpc.aio.ServicerContext) -> pb.CreateQueryResponse:
        _must_be(request.text, ast.SelectStatement, "a SELECT")
        script = f"CREATE QUERY {_quoted(request.name)} AS {request.text}" if request.name else request.text
        drafted, version = self._registry.execute(script, self._caller(context))
        registered = self._registry.at(version).queries[drafted[0].query]
        return pb.CreateQueryResponse(query=query_to_proto(registered))

    def DropQuery(self, request: pb.DropQueryRequest, context: grpc.aio.ServicerContext) -> pb.DropQueryResponse:
        _, version = self._registry.execute(f"DROP QUERY {_quoted(request.name)}", self._caller(context))
        return pb.DropQueryResponse(version=version)

    def ListQueries(self, request: pb.ListQueriesRequest, context: grpc.aio.ServicerContext) -> pb.ListQueriesResponse:
        queries = sorted(self._registry.catalogue.queries.items())
        return pb.ListQueriesResponse(queries=[query_to_proto(registered) for _, registered in queries])

    def Explain(self, request: pb.ExplainRequest, context: grpc.aio.ServicerContext) -> pb.ExplainResponse:
        target = request.text or _quoted(request.query)
        said = self._registry.explain(target, self._caller(context), analyze=request.analyze)
        return pb.ExplainResponse(explanation=said)

    def Status(self, request: pb.StatusRequest, context: grpc.aio.ServicerContext) -> pb.StatusResponse:
        if request.query:
            standing, found = self._registry.waiting(request.query)
            return status_to_proto(standing, self._registry.catalogue.sealed, found)
        return status_to_proto(self._registry.standing(), self._registry.catalogue.sealed)

    def _caller(self, context: grpc.aio.ServicerContext) -> Caller:
        principal = self._access.caller(context)
        return Caller(principal, self._access.max_queries(principal))


def query_to_proto(registered: Registered) -> streams_pb2.Query:
    query = registered.query
    return streams_pb2.Query(
        name=query.name,
        text=query.text,
        streams=[s.name for s in query.streams],
        columns=[column_to_proto(Column(o.name, o.type)) for o in query.relation.outputs],
        version=registered.version,
    )


S = TypeVar("S", ast.CreateStream, ast.SelectStatement)


def _must_be(text: str, kind: type[S], what: str) -> S:
    """The one statement of a text, which must be of a kind."""
    statements = parse_script(text)
    if len(statements) == 1 and isinstance(statements[0], kind):
        return statements[0]
    raise StairwiseError(f"expected {what} and nothing else", hint="Execute takes any script")


def _quoted(name: str) -> str:
    """A name as CQL reads it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
