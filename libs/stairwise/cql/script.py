"""What a script does to the streams and queries that there are.

``Catalogue.execute`` runs a script as a whole: either every statement holds, and the changes come back in
order for the caller to act on (a local engine, a registry), or an error is raised and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stairwise.algebra.query import Query
from stairwise.cql import ast
from stairwise.cql.grants import Grant, Namespace, check_principal, namespace_of, resolve_grants, resolve_namespace
from stairwise.cql.listing import described_query, described_stream, listed
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import check_name, resolve_alteration, resolve_query, resolve_stream, resolve_table
from stairwise.errors import AlreadyExistsError, ConflictError, LimitError, NotFoundError
from stairwise.schema import Stream


@dataclass(frozen=True)
class StreamCreated:
    stream: Stream


@dataclass(frozen=True)
class StreamAltered:
    stream: Stream
    before: Stream
    """As it was declared."""

    @property
    def changes_nothing(self) -> bool:
        return self.stream.is_declared_as(self.before)


@dataclass(frozen=True)
class StreamSealed:
    stream: Stream


@dataclass(frozen=True)
class StreamDropped:
    stream: Stream


@dataclass(frozen=True)
class TableCreated:
    table: Stream


@dataclass(frozen=True)
class TableSealed:
    table: Stream


@dataclass(frozen=True)
class TableDropped:
    table: Stream


@dataclass(frozen=True)
class QueryCreated:
    query: Query


@dataclass(frozen=True)
class QueryRestarted:
    query: Query


@dataclass(frozen=True)
class QueryDropped:
    query: Query


@dataclass(frozen=True)
class Explained:
    """EXPLAIN was asked of this query, which need not be one that runs."""

    query: Query
    analyze: bool = False


@dataclass(frozen=True)
class Told:
    """What SHOW or DESCRIBE was asked for, or that a statement found nothing to do."""

    summary: str
    text: str = ""


@dataclass(frozen=True)
class PrivilegesGranted:
    """Or revoked. A script over files has no principals: there it means nothing."""

    grants: tuple[Grant, ...]
    revoked: bool


@dataclass(frozen=True)
class RoleGranted:
    """Or revoked."""

    role: str
    members: tuple[str, ...]
    revoked: bool


@dataclass(frozen=True)
class RoleCreated:
    role: str


@dataclass(frozen=True)
class RoleDropped:
    role: str


@dataclass(frozen=True)
class GrantsShown:
    """SHOW GRANTS was asked."""


@dataclass(frozen=True)
class NamespaceSet:
    """Created, or with other quotas."""

    namespace: Namespace
    altered: bool


@dataclass(frozen=True)
class NamespaceDropped:
    name: str


Change = (
    StreamCreated
    | StreamAltered
    | StreamSealed
    | StreamDropped
    | TableCreated
    | TableSealed
    | TableDropped
    | QueryCreated
    | QueryRestarted
    | QueryDropped
    | Explained
    | PrivilegesGranted
    | RoleGranted
    | RoleCreated
    | RoleDropped
    | GrantsShown
    | NamespaceSet
    | NamespaceDropped
    | Told
)


@dataclass
class Catalogue:
    """Streams, tables among them, and queries by name. ``incarnations`` also remembers the streams that are gone."""

    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    sealed: set[str] = field(default_factory=set)
    incarnations: dict[str, int] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    """The queries that were set aside: they alone can be restarted."""
    free_from: int = 1
    """Names of bare SELECTs below this number are taken."""
    namespaces: dict[str, Namespace] = field(default_factory=dict)

    def execute(self, script: str) -> tuple[Change, ...]:
        """Run a script as a whole."""
        draft = self.copy()
        changes = [change for statement in parse_script(script) for change in draft.apply(statement)]
        draft.check_quotas()
        self.streams, self.queries = draft.streams, draft.queries
        self.sealed, self.incarnations, self.free_from = draft.sealed, draft.incarnations, draft.free_from
        self.namespaces = draft.namespaces
        return tuple(changes)

    def apply(self, statement: ast.Statement) -> tuple[Change, ...]:
        """Run one statement. A bare SELECT is called q1, q2, ..., in order of the bare SELECTs."""
        return tuple(self._apply(statement))

    def check_quotas(self) -> None:
        """Refuse a namespace that holds more than it may; asked once a script is through."""
        for namespace in self.namespaces.values():
            for what, most, names in (
                ("streams", namespace.streams, self.streams),
                ("queries", namespace.queries, self.queries),
            ):
                count = 0 if most is None else sum(namespace_of(name) == namespace.name for name in names)
                if most is not None and count > most:
                    raise LimitError(
                        f"the namespace {namespace.name!r} would hold {count} {what}, and may hold {most}",
                        hint=f"drop some, or ALTER NAMESPACE {namespace.name} {what.upper()} {count}",
                    )

    def copy(self) -> Catalogue:
        streams, queries, incarnations = dict(self.streams), dict(self.queries), dict(self.incarnations)
        sealed, namespaces = set(self.sealed), dict(self.namespaces)
        return Catalogue(streams, queries, sealed, incarnations, self.failed, self.free_from, namespaces)

    def _apply(self, statement: ast.Statement) -> Iterator[Change]:
        if (nothing := self._nothing_to_do(statement)) is not None:
            yield nothing
            return
        match statement:
            case ast.CreateStream():
                yield self._create_stream(statement)
            case ast.AlterStream():
                yield self._alter_stream(statement)
            case ast.SealStream():
                yield StreamSealed(self._seal(self._stream(statement.name.text)))
            case ast.SealTable():
                yield TableSealed(self._seal(self._table(statement.name.text)))
            case ast.DropStream():
                yield from self._drop_stream(statement.name.text)
            case ast.CreateTable():
                yield self._create_table(statement)
            case ast.DropTable():
                yield from self._drop_table(statement.name.text)
            case ast.CreateQuery():
                check_name(statement.source, statement.name, "query")
                if statement.replaces and statement.name.text in self.queries:
                    yield self._drop_query(self._query(statement.name.text))
                yield self._create_query(statement.name.text, statement.select)
            case ast.SelectStatement():
                yield self._create_query(self._free_name(), statement)
            case ast.RestartQuery():
                yield self._restart_query(self._query(statement.name.text))
            case ast.DropQuery():
                yield self._drop_query(self._query(statement.name.text))
            case ast.Explain():
                target = statement.target
                if isinstance(target, ast.Name):
                    yield Explained(self._query(target.text), statement.analyze)
                else:
                    yield Explained(resolve_query("", target, self.streams))
            case ast.GrantPrivileges():
                grants = resolve_grants(statement, self.streams, self.queries, self.namespaces)
                yield PrivilegesGranted(tuple(grants), statement.revoked)
            case ast.GrantRole():
                for member in statement.members:
                    check_principal(statement.source, member)
                yield RoleGranted(statement.role.text, tuple(m.text for m in statement.members), statement.revoked)
            case ast.CreateRole():
                check_principal(statement.source, statement.name)
                yield RoleCreated(statement.name.text)
            case ast.DropRole():
                yield RoleDropped(statement.name.text)
            case ast.ShowGrants():
                yield GrantsShown()
            case ast.SetNamespace():
                yield self._set_namespace(statement)
            case ast.DropNamespace():
                yield self._drop_namespace(statement.name.text)
            case ast.ShowListing():
                what = statement.what.text
                yield Told(f"listed {what.lower()}", listed(what, self.streams, self.queries, self.sealed))
            case ast.Describe():
                yield Told(f"described {statement.name.text}", self._described(statement.name.text))

    def _nothing_to_do(self, statement: ast.Statement) -> Told | None:
        """What IF NOT EXISTS and IF EXISTS pass over."""
        match statement:
            case ast.CreateStream() | ast.CreateTable() if statement.if_not_exists:
                there = self.streams.get(statement.name.text)
                if there is not None and there.is_table == isinstance(statement, ast.CreateTable):
                    return Told(f"{there.kind} {there.name} exists already")
            case ast.CreateQuery(name=name) if statement.if_not_exists and name.text in self.queries:
                return Told(f"query {name.text} exists already")
            case ast.DropQuery(name=name) if statement.if_exists and name.text not in self.queries:
                return Told(f"there is no query {name.text}")
            case ast.DropStream(name=name) | ast.DropTable(name=name) if statement.if_exists:
                kind = "table" if isinstance(statement, ast.DropTable) else "stream"
                if name.text not in self.streams or self.streams[name.text].kind != kind:
                    return Told(f"there is no {kind} {name.text}")
        return None

    def _described(self, name: str) -> str:
        if name in self.streams:
            return described_stream(self.streams[name], sealed=name in self.sealed)
        if name in self.queries:
            return described_query(self.queries[name])
        raise NotFoundError("stream, table or query", name, [*self.streams, *self.queries])

    def _create_stream(self, statement: ast.CreateStream) -> StreamCreated:
        """A new stream; also under the name of a sealed one, which reopens it as its next incarnation."""
        name = statement.name.text
        self._check_free(name, is_table=False)
        stream = resolve_stream(statement, self.incarnations.get(name, 0) + 1)
        self.streams[name] = stream
        self.incarnations[name] = stream.incarnation
        self.sealed.discard(name)
        return StreamCreated(stream)

    def _alter_stream(self, statement: ast.AlterStream) -> StreamAltered:
        """The same stream, declared otherwise; the queries that read it go on."""
        before = self._stream(statement.name.text)
        stream = resolve_alteration(statement, before)
        self.streams[stream.name] = stream
        return StreamAltered(stream, before)

    def _create_table(self, statement: ast.CreateTable) -> TableCreated:
        """A new table; a sealed one is reopened, as a stream is."""
        name = statement.name.text
        self._check_free(name, is_table=True)
        table = resolve_table(statement, self.incarnations.get(name, 0) + 1)
        self.streams[name] = table
        self.incarnations[name] = table.incarnation
        self.sealed.discard(name)
        return TableCreated(table)

    def _check_free(self, name: str, *, is_table: bool) -> None:
        """Tables and streams have their names in common: both stand in FROM."""
        there = self.streams.get(name)
        if there is not None and (name not in self.sealed or there.is_table != is_table):
            raise AlreadyExistsError(there.kind, name)
        self._check_namespace(name)
        like = next((n for n in self.incarnations if n != name and _topic_name(n) == _topic_name(name)), None)
        if like is not None:
            raise ConflictError(
                f"{name!r} is too like {like!r}: Kafka takes . and _ in the names of topics for the same",
                hint="take another name",
            )

    def _check_namespace(self, name: str) -> None:
        """A name with a dot is one of a namespace, which must be there."""
        namespace = namespace_of(name)
        if namespace and namespace not in self.namespaces:
            raise NotFoundError("namespace", namespace, self.namespaces)

    def _set_namespace(self, statement: ast.SetNamespace) -> NamespaceSet:
        check_name(statement.source, statement.name, "namespace")
        namespace = resolve_namespace(statement)
        if namespace_of(namespace.name):
            raise statement.source.error(
                statement.name.span, "a namespace is in no other", expected="a name without dot"
            )
        if (namespace.name in self.namespaces) != statement.altered:
            if statement.altered:
                raise NotFoundError("namespace", namespace.name, self.namespaces)
            raise AlreadyExistsError("namespace", namespace.name)
        self.namespaces[namespace.name] = namespace
        return NamespaceSet(namespace, statement.altered)

    def _drop_namespace(self, name: str) -> NamespaceDropped:
        if name not in self.namespaces:
            raise NotFoundError("namespace", name, self.namespaces)
        held = [n for n in (*self.streams, *self.queries) if namespace_of(n) == name]
        if held:
            raise ConflictError(f"the namespace {name!r} holds {held[0]!r}", hint="drop what it holds first")
        del self.namespaces[name]
        return NamespaceDropped(name)

    def _drop_table(self, name: str) -> Iterator[Change]:
        """The table goes and takes the queries that read it along."""
        table = self._table(name)
        yield from self._drop_queries(name)
        del self.streams[name]
        self.sealed.discard(name)
        yield TableDropped(table)

    def _seal(self, stream: Stream) -> Stream:
        name, kind = stream.name, stream.kind
        if name in self.sealed:
            raise ConflictError(
                f"{kind} {name!r} is sealed already", hint=f"DROP {kind.upper()} {name}; and create it again to go on"
            )
        self.sealed.add(name)
        return stream

    def _drop_stream(self, name: str) -> Iterator[Change]:
        """The stream goes and takes the queries that read it along."""
        stream = self._stream(name)
        yield from self._drop_queries(name)
        del self.streams[name]
        self.sealed.discard(name)
        yield StreamDropped(stream)

    def _drop_queries(self, stream: str) -> Iterator[Change]:
        """The queries that read a stream or a table go."""
        for query in [q for q in self.queries.values() if any(s.name == stream for s in q.streams)]:
            yield self._drop_query(query)

    def _create_query(self, name: str, select: ast.SelectStatement) -> QueryCreated:
        query = resolve_query(name, select, self.streams)
        if name in self.queries:
            raise AlreadyExistsError("query", name)
        self._check_namespace(name)
        self._check_open(query)
        self.queries[name] = query
        return QueryCreated(query)

    def _restart_query(self, query: Query) -> QueryRestarted:
        """The query begins anew, as one that joins now."""
        if query.name not in self.failed:
            raise ConflictError(
                f"query {query.name!r} has not failed",
                hint=f"to begin anew: DROP QUERY {query.name}; and CREATE QUERY again",
            )
        self._check_open(query)
        return QueryRestarted(query)

    def _check_open(self, query: Query) -> None:
        """Can rows still come? Of a table that is complete, all of it is joined."""
        for stream in query.streams:
            if stream.name in self.sealed and not stream.is_table:
                raise ConflictError(
                    f"query {query.name!r} reads the stream {stream.name!r}, which is sealed",
                    hint=f"DROP STREAM {stream.name}; and create it again to go on",
                )

    def _drop_query(self, query: Query) -> QueryDropped:
        del self.queries[query.name]
        self.free_from = 1
        return QueryDropped(query)

    def _free_name(self) -> str:
        while f"q{self.free_from}" in self.queries:
            self.free_from += 1
        return f"q{self.free_from}"

    def _stream(self, name: str) -> Stream:
        if name not in self.streams or self.streams[name].is_table:
            raise NotFoundError("stream", name, [n for n, s in self.streams.items() if not s.is_table])
        return self.streams[name]

    def _table(self, name: str) -> Stream:
        if name not in self.streams or not self.streams[name].is_table:
            raise NotFoundError("table", name, [n for n, s in self.streams.items() if s.is_table])
        return self.streams[name]

    def _query(self, name: str) -> Query:
        if name not in self.queries:
            raise NotFoundError("query", name, self.queries)
        return self.queries[name]


def _topic_name(stream: str) -> str:
    """Names of streams that agree in it cannot have topics side by side."""
    return stream.replace(".", "_")
