"""The author of the plans: takes scripts, writes versions.

A script is one version: all of it or nothing. Single changes that come within 100 ms are collected into one, so
that a thousand clients with a query each do not make a thousand versions. A second registry that is started by
mistake fences the first one off: only one process writes plans.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from confluent_kafka import KafkaException

from services.windows.draft import Drafted, records_of
from services.windows.failed_queries import GOOD_FOR, FailedQueries, sentence
from services.windows.horizons import Horizons
from services.windows.measured import measured
from services.windows.permissions import check_scope, is_question
from services.windows.plan_draft import PlanDraft
from services.windows.positions import Positions
from stairwise.algebra.query import Query
from stairwise.cql import ast, source
from stairwise.cql.parser import parse_script
from stairwise.cql.script import Catalogue
from stairwise.errors import ConfigError, ConflictError, StatementError
from stairwise.plan.explain import explain, horizon_line
from stairwise.platform import kafka, telemetry
from stairwise.platform.security.caller import ANYONE, Caller
from stairwise.schema import Stream
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.failures import Failure
from stairwise.wire.plans import PlanCatalogue, PlanReader, Registered
from stairwise.wire.stream_standing import Standing
from stairwise.wire.waiting import Cause, Waiting, waiting

log = logging.getLogger(__name__)

COLLECT = 0.1
"""For how long single changes are collected, in seconds."""

NOWHERE: Mapping[str, str] = MappingProxyType({})

_versions = telemetry.meter.create_counter("stairwise.windows.versions", "{version}", "plan versions written")


@dataclass
class _Collection:
    """Single changes on their way into one version."""

    changes: list[plans_pb2.Change] = field(default_factory=list)
    written: threading.Event = field(default_factory=threading.Event)
    version: int = 0
    failure: ConfigError | None = None


class Registry:
    def __init__(self, brokers: str, scrape: Mapping[str, str] = NOWHERE, most_pairs: int | None = None) -> None:
        """``most_pairs``: of a query that pairs rows which nothing links, how many it may; None: any number."""
        self._brokers = brokers
        self._admin = kafka.admin(brokers)
        topics.ensure(self._admin, {topics.PLANS: 1}, topics.FOREVER)
        topics.ensure(self._admin, {topics.LIVES: 1, topics.COSTS: 1, topics.FAILURES: 1}, topics.COMPACTED)
        self._producer = kafka.producer(brokers, transactional_id="stairwise-windows")
        self._producer.init_transactions(30)
        self._plans = PlanReader(brokers)
        self._plans.read_to_end()
        self._horizons = Horizons(brokers)
        self._positions = Positions(brokers, scrape)
        self._failed_queries = FailedQueries(brokers)
        self._lock = threading.Lock()
        self._draft = PlanDraft.of(self._plans.log.newest, most_pairs)
        self._pending: _Collection | None = None
        self.failed = threading.Event()
        """Set when a version could not be written: the process must end."""

    def close(self) -> None:
        """Let go of Kafka: nothing can be asked or written any more."""
        self._plans.close()
        self._positions.close()
        self._failed_queries.close()
        self._producer.close()
        del self._admin  # it has no close of its own, and goes on looking for its broker as long as it is there

    @property
    def catalogue(self) -> PlanCatalogue:
        """What is declared and written."""
        return self._plans.log.newest

    def at(self, version: int) -> PlanCatalogue:
        return self._plans.log.at(version)

    def standing(self) -> Standing:
        """Where all streams stand. Takes no part in what is drafted: whoever declares something is not held up."""
        return self._positions.of(self.catalogue.streams.values())

    def failed_queries(self, *, good_for: float = GOOD_FOR) -> dict[str, Failure]:
        """The queries that operators has set aside, and why."""
        return self._failed_queries.among(self.catalogue, good_for=good_for)

    def waiting(self, query: str) -> tuple[Standing, Waiting]:
        """Where the streams of a registered query stand, and what it waits for."""
        registered = self.catalogue.queries[query]
        standing = self._positions.of(registered.query.streams)
        failure = self.failed_queries().get(query)
        if failure is not None:
            return standing, Waiting(Cause.FAILED, sentence(query, failure))
        found = waiting(registered.query, registered.version, standing)
        if found.cause in (Cause.OPERATORS, Cause.PARTITION_BEHIND, Cause.EVENT_TIME):
            joined = self._horizons.joined(registered)
            found = waiting(registered.query, registered.version, standing, joined)
        return standing, found

    def execute(self, script: str, caller: Caller = ANYONE) -> tuple[list[Drafted], int]:
        """Carry out a script: what each statement did, and the version that says so (0 if nothing changed).

        The audit log keeps each statement that changes something, as it is executed, and a script that is refused.
        """
        try:
            statements = parse_script(script)
            drafted, version = self._execute(statements, caller)
        except BaseException as error:
            caller.note(script, error)
            raise
        for statement, each in zip(statements, drafted, strict=True):
            if each.changes:
                caller.note(statement.source.text)
        return [self._as_it_runs(each) for each in drafted], version

    def _execute(self, statements: Sequence[ast.Statement], caller: Caller) -> tuple[list[Drafted], int]:
        for statement in statements:
            check_scope(statement, caller.principal)
        if all(is_question(statement) for statement in statements):
            return self._draft.copy().take(statements, caller), 0  # nobody waits for whoever only asks
        alone = len(statements) == 1
        with self._lock:
            if not alone:
                self._write_pending()
            drafted = self._take(statements, caller)
            changes = records_of(drafted)
            collection = self._collect(changes) if changes else None
            if not alone:
                self._write_pending()
        if collection is not None:
            collection.written.wait()
            if collection.failure is not None:
                raise collection.failure
        return drafted, collection.version if collection is not None else 0

    def explain(self, target: str, caller: Caller = ANYONE, *, analyze: bool = False) -> str:
        """How a query, by its name in quotes, or a SELECT is evaluated."""
        script = f"EXPLAIN {'ANALYZE ' if analyze else ''}{target}"
        asked = len(list(source.statements(script)))
        if asked != 1:
            said = f"Explain takes one SELECT or the name of one query, not {asked} statements"
            refused = StatementError(said, line=1, column=1, hint="Execute carries out a script")
            caller.note(script, refused)
            raise refused
        drafted, _ = self.execute(script, caller)
        return drafted[0].explanation

    def _as_it_runs(self, drafted: Drafted) -> Drafted:
        """What was explained of a running query, with how far back it sees and what it waits for."""
        registered = self.catalogue.queries.get(drafted.explained)
        if registered is None:
            return drafted
        explanation = drafted.explanation
        if registered.apart:
            sharing = [r.query for r in self.catalogue.queries.values() if r.signature == registered.signature]
            explanation = explain(registered.query, {query.name: query for query in sharing})
        lines = [explanation, horizon_line(self._horizons.of(registered))]
        try:
            lines.append(f"now: {self.waiting(drafted.explained)[1].sentence}")
        except ConfigError as error:
            lines.append(f"now: {error}")
        if drafted.analyze:
            lines.append(measured(self._brokers, registered, self.catalogue))
        return replace(drafted, explanation="\n".join(lines))

    def _take(self, statements: Sequence[ast.Statement], caller: Caller) -> list[Drafted]:
        """Draft the statements and make their topics; what is refused leaves the draft as it was."""
        plan = self._draft.copy()
        if any(isinstance(statement, ast.RestartQuery) for statement in statements):
            plan.catalogue.failed = frozenset(self.failed_queries(good_for=0.0))
        drafted = plan.take(statements, caller)
        self._set_apart(records_of(drafted), plan.catalogue)
        for each in drafted:
            if each.stream is not None:
                self._make_topics(each.stream)
            for change in each.changes:
                self._place(change, plan.catalogue)
        self._draft = plan
        return drafted

    def _set_apart(self, changes: Sequence[plans_pb2.Change], catalogue: Catalogue) -> None:
        """A query that would share with queries that were set aside gets a signature of its own."""
        created = [c.create_query for c in changes if c.WhichOneof("change") == "create_query"]
        failed = self._failed_queries.signatures() if created else {}
        for change in created if failed else ():
            query = catalogue.queries.get(change.name)
            change.apart = query is not None and Registered(query, 0).signature in failed

    def _make_topics(self, stream: Stream) -> None:
        """What a stream or table needs. Its input is compacted or is not, so a name stays with what it first named."""
        incarnations = self._plans.log.incarnations(stream.name)
        if incarnations and incarnations[-1].stream.is_table != stream.is_table:
            raise ConflictError(
                f"{stream.name!r} was a {incarnations[-1].stream.kind}, and its topics are those of one",
                hint=f"call the {stream.kind} otherwise",
            )
        topics.make(self._admin, stream)

    def _place(self, change: plans_pb2.Change, catalogue: Catalogue) -> None:
        """Say where in the stream's input it ends or begins again, so that every event belongs to one incarnation.

        What was published before a SEAL was asked for is in, what is published after a CREATE was answered is in.
        """
        match change.WhichOneof("change"):
            case "seal_stream":
                name = change.seal_stream.name
                partitions = catalogue.streams[name].partitions if name in catalogue.streams else 0
                change.seal_stream.ends.extend(topics.ends(self._admin, topics.incoming(name), partitions))
            case "create_stream" if change.create_stream.stream.incarnation > 1:
                stream = change.create_stream.stream
                ends = topics.ends(self._admin, topics.incoming(stream.name), stream.partitions)
                change.create_stream.starts.extend(ends)

    def _collect(self, changes: Sequence[plans_pb2.Change]) -> _Collection:
        if self._pending is None:
            self._pending = _Collection()
            threading.Timer(COLLECT, self._write_when_due, [self._pending]).start()
        self._pending.changes.extend(changes)
        return self._pending

    def _write_when_due(self, collection: _Collection) -> None:
        with self._lock:
            if self._pending is collection:
                self._write_pending()

    def _write_pending(self) -> None:
        """One version, in one transaction; who waits for it learns whether it was written."""
        collection, self._pending = self._pending, None
        if collection is None:
            return
        number = self.catalogue.version + 1
        plan = plans_pb2.PlanVersion(number=number, changes=collection.changes, written_at_ms=int(time.time() * 1000))
        try:
            self._producer.begin_transaction()
            self._producer.produce(topics.PLANS, plan.SerializeToString(), b"%d" % number, partition=0)
            self._producer.commit_transaction(30)
            self._plans.resolved = _resolved(plan, self._draft.catalogue)
            self._plans.read_upto(number)  # a commit returns before readers see it: who is answered must find it
            collection.version = number
            _versions.add(1)
            log.info("plan version written", extra=telemetry.fields(version=number, changes=len(plan.changes)))
        except (KafkaException, ConfigError) as error:
            # Whether it was written is known only to the topic: a new process reads it and goes on from there.
            log.exception("the plans cannot be written")
            collection.failure = ConfigError(
                f"the plans cannot be written: {error}",
                hint="look with ListQueries whether it was, and try again",
            )
            self.failed.set()
        finally:
            self._draft = PlanDraft.of(self.catalogue)
            self._plans.resolved = {}
            collection.written.set()


def _resolved(plan: plans_pb2.PlanVersion, catalogue: Catalogue) -> dict[str, Query]:
    """The queries that a version creates once, as they were drafted."""
    created = Counter(change.create_query.name for change in plan.changes if change.HasField("create_query"))
    return {name: catalogue.queries[name] for name, n in created.items() if n == 1 and name in catalogue.queries}
