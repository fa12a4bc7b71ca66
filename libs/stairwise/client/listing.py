"""What the registry says: streams, queries, and what a statement did."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Column, Stream
from stairwise.v1 import registry_pb2, streams_pb2
from stairwise.wire.schemas import column_from_proto, stream_from_proto


@dataclass(frozen=True)
class StreamInfo:
    """A stream or table as it is declared; ``sealed`` once its input has ended."""

    declaration: Stream
    sealed: bool
    owner: str = ""
    """The principal that created it; empty where it belongs to admins."""

    @property
    def name(self) -> str:
        return self.declaration.name

    @staticmethod
    def from_proto(message: streams_pb2.Stream) -> StreamInfo:
        return StreamInfo(stream_from_proto(message), message.sealed, message.owner)


@dataclass(frozen=True)
class QueryInfo:
    """A registered query."""

    name: str
    text: str
    streams: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int
    """The plan version that registered it."""
    owner: str = ""
    """As of a stream."""

    @staticmethod
    def from_proto(message: streams_pb2.Query) -> QueryInfo:
        columns = tuple(column_from_proto(c) for c in message.columns)
        return QueryInfo(message.name, message.text, tuple(message.streams), columns, message.version, message.owner)


@dataclass(frozen=True)
class StatementResult:
    """What one statement of a script did."""

    summary: str
    query: str
    """The query that it registered: also how a bare SELECT was named."""
    explanation: str

    @staticmethod
    def from_proto(message: registry_pb2.StatementResult) -> StatementResult:
        return StatementResult(message.summary, message.query, message.explanation)
