"""The registry over gRPC."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import grpc

from services.windows.registry import Registry
from services.windows.status_messages import status_to_proto
from stairwise.cql import ast
from stairwise.cql.grants import Privilege, query_target, quoted, stream_target
from stairwise.cql.parser import parse_script
from stairwise.errors import StairwiseError
from stairwise.platform.security.caller import CALLER
from stairwise.schema import Column
from stairwise.v1 import registry_pb2 as pb
from stairwise.v1 import registry_pb2_grpc, streams_pb2
from stairwise.wire.authority import ADMINS, Rights
from stairwise.wire.plans import Registered
from stairwise.wire.schemas import column_to_proto, stream_to_proto

NAME = "stairwise.v1.Registry"


class RegistryServicer(registry_pb2_grpc.RegistryServicer):
    """Each call is a script of one statement; ``Execute`` takes any script. The methods block: they run on threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def Execute(self, request: pb.ExecuteRequest, context: grpc.aio.ServicerContext) -> pb.ExecuteResponse:
        drafted, version = self._registry.execute(request.script, CALLER.get())
        results = [pb.StatementResult(summary=d.summary, query=d.query, explanation=d.explanation) for d in drafted]
        return pb.ExecuteResponse(results=results, version=version)

    def CreateStream(
        self, request: pb.CreateStreamRequest, context: grpc.aio.ServicerContext
    ) -> pb.CreateStreamResponse:
        statement = _must_be(request.statement, ast.CreateStream, "a CREATE STREAM statement")
        drafted, version = self._registry.execute(request.statement, CALLER.get())
        stream = drafted[0].stream or self._registry.catalogue.streams[statement.name.text]
        return pb.CreateStreamResponse(stream=stream_to_proto(stream), version=version)

    def DropStream(self, request: pb.DropStreamRequest, context: grpc.aio.ServicerContext) -> pb.DropStreamResponse:
        _, version = self._registry.execute(f"DROP STREAM {quoted(request.name)}", CALLER.get())
        return pb.DropStreamResponse(version=version)

    def ListStreams(self, request: pb.ListStreamsRequest, context: grpc.aio.ServicerContext) -> pb.ListStreamsResponse:
        catalogue, rights = self._registry.catalogue, self._rights()
        response = pb.ListStreamsResponse()
        for name in sorted(rights.seen(stream_target, catalogue.streams)):
            listed = stream_to_proto(catalogue.streams[name], sealed=name in catalogue.sealed)
            listed.owner = catalogue.owner(stream_target(name)) or ADMINS
            response.streams.append(listed)
        return response

    def CreateQuery(self, request: pb.CreateQueryRequest, context: grpc.aio.ServicerContext) -> pb.CreateQueryResponse:
        _must_be(request.text, ast.SelectStatement, "a SELECT")
        script = f"CREATE QUERY {quoted(request.name)} AS {request.text}" if request.name else request.text
        drafted, version = self._registry.execute(script, CALLER.get())
        registered = self._registry.at(version).queries[drafted[0].query]
        return pb.CreateQueryResponse(query=query_to_proto(registered))

    def DropQuery(self, request: pb.DropQueryRequest, context: grpc.aio.ServicerContext) -> pb.DropQueryResponse:
        _, version = self._registry.execute(f"DROP QUERY {quoted(request.name)}", CALLER.get())
        return pb.DropQueryResponse(version=version)

    def ListQueries(self, request: pb.ListQueriesRequest, context: grpc.aio.ServicerContext) -> pb.ListQueriesResponse:
        queries = self._registry.catalogue.queries
        seen = sorted(self._rights().seen(query_target, queries))
        return pb.ListQueriesResponse(queries=[query_to_proto(queries[name]) for name in seen])

    def Explain(self, request: pb.ExplainRequest, context: grpc.aio.ServicerContext) -> pb.ExplainResponse:
        target = request.text or quoted(request.query)
        said = self._registry.explain(target, CALLER.get(), analyze=request.analyze)
        return pb.ExplainResponse(explanation=said)

    def Status(self, request: pb.StatusRequest, context: grpc.aio.ServicerContext) -> pb.StatusResponse:
        rights, queries, sealed = self._rights(), self._registry.catalogue.queries, self._registry.catalogue.sealed
        waiting = None
        if request.query:
            rights.check(query_target(request.query), queries, Privilege.READ)
            standing, waiting = self._registry.waiting(request.query)
        else:
            standing = self._registry.standing()
        failed = {q: f for q, f in self._registry.failed_queries().items() if rights.sees(query_target(q))}
        seen = {name: s for name, s in standing.streams.items() if rights.sees(stream_target(s.stream.name))}
        return status_to_proto(replace(standing, streams=seen), sealed, waiting, failed)

    def _rights(self) -> Rights:
        return self._registry.catalogue.rights(CALLER.get().principal)


def query_to_proto(registered: Registered) -> streams_pb2.Query:
    query = registered.query
    return streams_pb2.Query(
        name=query.name,
        text=query.text,
        streams=[s.name for s in query.streams],
        columns=[column_to_proto(Column(o.name, o.type)) for o in query.relation.outputs],
        version=registered.version,
        owner=registered.owner,
    )


S = TypeVar("S", ast.CreateStream, ast.SelectStatement)


def _must_be(text: str, kind: type[S], what: str) -> S:
    """The one statement of a text, which must be of a kind."""
    statements = parse_script(text)
    if len(statements) == 1 and isinstance(statements[0], kind):
        return statements[0]
    raise StairwiseError(f"expected {what} and nothing else", hint="Execute takes any script")
