"""The plans: numbered, immutable versions of what runs, as every service reads them.

    version   1              2               3
    change    + stream t     + query a       + query b, − query a
    state     t              t, a            t, b

``PlanCatalogue`` is the state at a version; ``PlanLog`` holds all versions; ``PlanReader`` follows the topic. Two
processes that know the same version hold the same catalogue.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from confluent_kafka import KafkaError, Message, TopicPartition

from stairwise.algebra.query import Query
from stairwise.cql import ast
from stairwise.cql.grants import GrantTarget, Namespace, TargetKind
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.errors import ConfigError
from stairwise.plan.signature import PublishedSignature, published_signature_of
from stairwise.platform import kafka
from stairwise.platform.security.tokens import Principal
from stairwise.schema import Stream
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.authority import ADMINS, Authority, Rights
from stairwise.wire.incarnations import Incarnation, Incarnations
from stairwise.wire.schemas import stream_from_proto


@dataclass(frozen=True)
class Registered:
    """A query and the version that registered it, which tells it from an earlier one of the same name."""

    query: Query
    version: int
    owner: str = ADMINS
    """Who registered it, where callers are told apart."""
    apart: bool = False
    """Does it share with nobody who came before? So it is after a failure of those whom it would share with."""

    @property
    def identity(self) -> str:
        """Which query it is, for good."""
        return f"{self.query.name}@{self.version}"

    @cached_property
    def shared(self) -> PublishedSignature | None:
        """What it has in common with the queries that are evaluated together with it; None where it runs alone."""
        return published_signature_of(self.query)

    @cached_property
    def signature(self) -> str:
        """The name under which its reports are published, alone or with others."""
        if self.shared is None:
            return self.identity
        return f"{self.shared.name}@{self.version}" if self.apart else self.shared.name


@dataclass
class Turn:
    """A version at which queries of a signature come or go."""

    version: int
    joined: list[Registered] = field(default_factory=list)
    left: list[Registered] = field(default_factory=list)


@dataclass(frozen=True)
class PlanCatalogue:
    """Everything that is declared at a version."""

    version: int = 0
    streams: Mapping[str, Stream] = field(default_factory=lambda: MappingProxyType({}))
    sealed: frozenset[str] = frozenset()
    queries: Mapping[str, Registered] = field(default_factory=lambda: MappingProxyType({}))
    incarnations: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """The highest incarnation that each stream name ever had."""
    owners: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Who created each stream, where callers are told apart."""
    namespaces: Mapping[str, Namespace] = field(default_factory=lambda: MappingProxyType({}))
    authority: Authority = field(default_factory=Authority)

    def rights(self, principal: Principal) -> Rights:
        """What a principal may do at this version."""
        return Rights(principal, self.authority, self.owner)

    def owner(self, target: GrantTarget) -> str | None:
        """Who owns a stream or a query; None: it is not there."""
        if target.kind is TargetKind.QUERY:
            registered = self.queries.get(target.name)
            return None if registered is None else registered.owner
        return self.owners.get(target.name, ADMINS) if target.name in self.streams else None

    def readers(self, stream: Stream) -> list[Registered]:
        """The queries that read this incarnation of a stream."""
        return [r for r in self.queries.values() if stream in r.query.streams]


def fold(
    before: PlanCatalogue, plan: plans_pb2.PlanVersion, resolved: Mapping[str, Query] = MappingProxyType({})
) -> PlanCatalogue:
    """The catalogue after one more version; ``resolved`` are queries that whoever wrote it has resolved already."""
    streams, sealed = dict(before.streams), set(before.sealed)
    queries, incarnations = dict(before.queries), dict(before.incarnations)
    owners, namespaces, authority = dict(before.owners), dict(before.namespaces), before.authority
    for change in plan.changes:
        authority = authority.after(change)
        match change.WhichOneof("change"):
            case "create_stream":
                stream = stream_from_proto(change.create_stream.stream)
                streams[stream.name] = stream
                owners[stream.name] = change.create_stream.owner
                incarnations[stream.name] = stream.incarnation
                sealed.discard(stream.name)
            case "alter_stream":
                stream = stream_from_proto(change.alter_stream.stream)
                streams[stream.name] = stream
            case "drop_stream":
                streams.pop(change.drop_stream.name)
                owners.pop(change.drop_stream.name)
                sealed.discard(change.drop_stream.name)
            case "seal_stream":
                sealed.add(change.seal_stream.name)
            case "create_query":
                said = change.create_query
                query = resolved.get(said.name) or resolve_query(said.name, _select(said.text), streams)
                queries[said.name] = Registered(query, plan.number, said.owner, said.apart)
            case "restart_query":
                name = change.restart_query.name
                queries[name] = replace(queries[name], version=plan.number, apart=True)
            case "drop_query":
                queries.pop(change.drop_query.name)
            case "set_namespace":
                namespaces[change.set_namespace.name] = namespace_from_proto(change.set_namespace)
            case "drop_namespace":
                namespaces.pop(change.drop_namespace.name)
    return PlanCatalogue(
        plan.number,
        MappingProxyType(streams),
        frozenset(sealed),
        MappingProxyType(queries),
        MappingProxyType(incarnations),
        MappingProxyType(owners),
        MappingProxyType(namespaces),
        authority,
    )


def namespace_from_proto(said: plans_pb2.Change.Namespace) -> Namespace:
    return Namespace(
        said.name,
        said.streams if said.HasField("streams") else None,
        said.queries if said.HasField("queries") else None,
    )


def _select(text: str) -> ast.SelectStatement:
    """A SELECT that was parsed once already, when it was registered."""
    (statement,) = parse_script(text)
    assert isinstance(statement, ast.SelectStatement)
    return statement


class PlanLog:
    """All versions, by number."""

    def __init__(self) -> None:
        self._catalogues = [PlanCatalogue()]
        self._touched: dict[str, int] = {}
        self._registered: dict[str, list[Registered]] = {}
        self._turns: dict[str, list[Turn]] = {}
        self._left: dict[str, int] = {}
        self._incarnations = Incarnations()
        self._written = [0]

    def written(self, version: int) -> int:
        """When a version was written, in milliseconds since the epoch; 0 where it does not say."""
        return self._written[version]

    def incarnations(self, stream: str) -> Sequence[Incarnation]:
        """All incarnations that a stream name has had, in order."""
        return self._incarnations.of(stream)

    def stream_names(self) -> list[str]:
        """Every name that a stream has ever had."""
        return self._incarnations.names()

    @property
    def newest(self) -> PlanCatalogue:
        return self._catalogues[-1]

    def at(self, version: int) -> PlanCatalogue:
        return self._catalogues[version]

    def __contains__(self, version: int) -> bool:
        return version < len(self._catalogues)

    def touched(self, stream: str) -> int:
        """The newest version that concerns a stream: its own changes and those of queries that read it."""
        return self._touched.get(stream, 0)

    def registered(self, stream: str, after: int, upto: int) -> list[Registered]:
        """The queries over a stream that versions above ``after`` registered, up to ``upto``, in that order."""
        queries = self._registered.get(stream, [])
        start = bisect.bisect_right(queries, after, key=lambda r: r.version)
        stop = bisect.bisect_right(queries, upto, key=lambda r: r.version)
        return queries[start:stop]

    def left_at(self, registered: Registered) -> int | None:
        """The version that dropped a query."""
        return self._left.get(registered.identity)

    def turn_after(self, signature: str, version: int) -> Turn | None:
        """The first version above ``version`` at which queries of a signature come or go."""
        turns = self._turns.get(signature, [])
        place = bisect.bisect_right(turns, version, key=lambda t: t.version)
        return turns[place] if place < len(turns) else None

    def members(self, signature: str, version: int) -> list[Registered]:
        """The queries of a signature at a version."""
        there: dict[str, Registered] = {}
        for turn in self._turns.get(signature, []):
            if turn.version > version:
                break
            for registered in turn.left:
                there.pop(registered.identity)
            there |= {registered.identity: registered for registered in turn.joined}
        return list(there.values())

    def add(self, plan: plans_pb2.PlanVersion, resolved: Mapping[str, Query] = MappingProxyType({})) -> None:
        """Take the next version, as ``fold`` does; one that is known is passed over."""
        if plan.number <= self.newest.version:
            return
        if plan.number != self.newest.version + 1:
            raise ConfigError(
                f"the plans jump from version {self.newest.version} to {plan.number}",
                hint="the plans topic has lost messages: restore it, or start with an empty directory",
            )
        before, after = self.newest, fold(self.newest, plan, resolved)
        self._catalogues.append(after)
        self._written.append(plan.written_at_ms)
        for change in plan.changes:
            self._follow_incarnation(change, plan.number)
            for stream in _streams_of(change, before, after):
                self._touched[stream] = plan.number
        for registered in after.queries.values():
            if registered.version == plan.number:
                self._turn(registered.signature, plan.number).joined.append(registered)
                for source in registered.query.streams:
                    self._registered.setdefault(source.name, []).append(registered)
        for name, registered in before.queries.items():
            if after.queries.get(name) is not registered:
                self._turn(registered.signature, plan.number).left.append(registered)
                self._left[registered.identity] = plan.number

    def _turn(self, signature: str, version: int) -> Turn:
        turns = self._turns.setdefault(signature, [])
        if not turns or turns[-1].version != version:
            turns.append(Turn(version))
        return turns[-1]

    def _follow_incarnation(self, change: plans_pb2.Change, version: int) -> None:
        match change.WhichOneof("change"):
            case "create_stream":
                stream = stream_from_proto(change.create_stream.stream)
                self._incarnations.created(stream, version, tuple(change.create_stream.starts))
            case "alter_stream":
                self._incarnations.altered(stream_from_proto(change.alter_stream.stream), version)
            case "seal_stream":
                self._incarnations.sealed(change.seal_stream.name, version, tuple(change.seal_stream.ends))
            case "drop_stream":
                self._incarnations.dropped(change.drop_stream.name, version)


def _streams_of(change: plans_pb2.Change, before: PlanCatalogue, after: PlanCatalogue) -> list[str]:
    match change.WhichOneof("change"):
        case "create_query":
            registered = after.queries.get(change.create_query.name)
            return [s.name for s in registered.query.streams] if registered else []
        case "restart_query":
            registered = before.queries.get(change.restart_query.name)
            return [s.name for s in registered.query.streams] if registered else []
        case "drop_query":
            registered = before.queries.get(change.drop_query.name)
            return [s.name for s in registered.query.streams] if registered else []
        case "create_stream":
            return [change.create_stream.stream.name]
        case "alter_stream":
            return [change.alter_stream.stream.name]
        case "drop_stream":
            return [change.drop_stream.name]
        case "seal_stream":
            return [change.seal_stream.name]
    return []


class PlanReader:
    """Follows the topic of plans into a log."""

    def __init__(self, brokers: str) -> None:
        self.log = PlanLog()
        self._consumer = kafka.consumer(brokers, "stairwise-plans", enable_partition_eof=True)
        self._next = 0
        self.resolved: dict[str, Query] = {}
        """The queries of the version that this process has just written: they need not be parsed again."""
        self._end = 0
        """Up to which offset the topic was seen: its control records take offsets but never come."""

    def read_to_end(self) -> PlanCatalogue:
        """Everything that is there now, and from there on ``poll``."""
        self._consumer.assign([TopicPartition(topics.PLANS, 0, self._next)])
        self._end = -1
        self._read_until(lambda: self._end >= 0, "the end of the plans", 30)
        return self.log.newest

    def poll(self, timeout: float = 0) -> bool:
        """Take what has come since; is there anything new?"""
        version = self.log.newest.version
        for message in self._consumer.consume(1000, timeout=timeout):
            if message.error() is None:
                self._take(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._end = max(self._end, message.offset())
            else:
                kafka.checked(message)
        return self.log.newest.version > version

    def catch_up(self, ends: kafka.Ends, timeout: float = 30) -> bool:
        """Take everything that was written before this call; is there anything new?"""
        version = self.log.newest.version
        end = ends.of([(topics.PLANS, 0)], timeout)[topics.PLANS, 0]
        self._read_until(lambda: max(self._next, self._end) >= end, f"the plans up to offset {end}", timeout)
        return self.log.newest.version > version

    def read_upto(self, version: int, timeout: float = 30) -> PlanLog:
        """The log with this version in it, which the topic is known to hold."""
        if version not in self.log and not self.log.newest.version:
            self.read_to_end()
        self._read_until(lambda: version in self.log, f"plan version {version}", timeout)
        return self.log

    def close(self) -> None:
        self._consumer.close()

    def _read_until(self, is_there: Callable[[], bool], what: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not is_there():
            if not self.poll(kafka.STEP) and time.monotonic() > deadline:
                raise ConfigError(f"{what}: not read within {timeout} s", hint="is the broker up?")

    def _take(self, message: Message) -> None:
        self.log.add(plans_pb2.PlanVersion.FromString(message.value()), self.resolved)
        self._next = message.offset() + 1
