"""What evaluates the queries of a signature on a shard: one query by itself, or all of them together.

Both take rows, advance and turn with the plans. At a turn every partition stands before its first batch of the new
version, so what an evaluation knows then is a function of the topics, and so is what it tells of its queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stairwise.algebra.query import Query
from stairwise.expressions.faults import Faults
from stairwise.operators.signature import JoinSignature
from stairwise.plan.parts import operator_for
from stairwise.plan.published import publication_of
from stairwise.plan.query_reports import query_reports_of
from stairwise.plan.shared import AnySignature, SharedOperator, shared_operator, shared_signature
from stairwise.plan.signature import PublishedSignature
from stairwise.reports.contract import Batch, Joined, Left, Report
from stairwise.reports.query_reports import QueryReports
from stairwise.reports.runs import Quieting, Reach
from stairwise.schema import DAWN, Instant
from stairwise.state.store import Store
from stairwise.wire.plans import Registered, Turn
from stairwise.wire.reports import LifeRecord


@dataclass(frozen=True)
class Alignment:
    """Where the partitions stand at a turn."""

    lowest: Instant
    """The lowest of their watermarks: those who leave report up to here."""
    highest: Instant
    """The highest of them: those who join report from above here."""
    seen: Instant
    """No row of before lies above it."""
    before: Mapping[str, int]
    """How many rows of each stream came before."""


class Evaluation(Protocol):
    def insert(self, batch: Batch) -> None: ...

    def advance(self, watermark: Instant) -> Iterator[Report]: ...

    def turn(self, turn: Turn, at: Alignment) -> dict[str, LifeRecord]:
        """Queries leave and join; the lives of those that joined, by identity."""

    def flush(self) -> None: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def horizon(self) -> Instant:
        """No row at or before it is seen, where that is the same for all reports."""

    @property
    def operator(self) -> Quieting: ...

    def reach(self) -> Reach | None:
        """When rows show in the windows that there are now; None where reports follow rows alone."""


def evaluation_of(registered: Registered, members: Sequence[Registered], store: Store) -> Evaluation:
    """Goes on from what is in the store, with the members that the signature has then."""
    if registered.shared is not None:
        queries = [_by_identity(member) for member in members]
        return _Together(shared_operator(registered.shared, queries, store), registered.shared)
    signature = shared_signature(registered.query)
    if signature is not None:
        return _OnlyOne(signature, [member.query for member in members], store)
    return _Alone(operator_for(registered.query, store))


class _Evaluation:
    """An operator, and what is published of its blocks."""

    def __init__(self, operator: SharedOperator) -> None:
        self.operator = operator
        self.insert = operator.insert
        self._published = publication_of(operator)

    def advance(self, watermark: Instant) -> Iterator[Report]:
        for block in self.operator.advance(watermark):
            yield from self._published(block)

    def flush(self) -> None:
        self.operator.flush()

    @property
    def faults(self) -> Faults:
        return self.operator.all_faults


class _Alone(_Evaluation):
    """One query by itself."""

    def reach(self) -> Reach | None:
        return self.operator.reach(settled=True)

    def turn(self, turn: Turn, at: Alignment) -> dict[str, LifeRecord]:
        for registered in turn.joined:
            self.operator.plan(Joined(registered.query, at.highest, at.seen, at.before, at.seen))
        return {}

    @property
    def horizon(self) -> Instant:
        (query,) = self.operator.queries
        return self.operator.life(query.name).horizon


class _OnlyOne(_Alone):
    """One query on an operator that could evaluate others, too: what stands of it is kept up to date by its changes."""

    def __init__(self, signature: AnySignature, queries: Sequence[Query], store: Store) -> None:
        """``queries``: the query, once it has joined."""
        super().__init__(shared_operator(signature, queries, store, keeps_history=True))
        self._signature, self._store = signature, store
        self._reports: QueryReports | None = None

    def advance(self, watermark: Instant) -> Iterator[Report]:
        if self._reports is None:  # before the operator goes on: what it has reported is history
            (query,) = self.operator.queries
            self._reports = query_reports_of(self._signature, self.operator, query, self._store)
        for block in self.operator.advance(watermark):
            yield from self._reports.reports(block)

    def flush(self) -> None:
        super().flush()
        if self._reports is not None:
            self._reports.flush()

    @property
    def faults(self) -> Faults:
        faults = Faults()
        faults.add(self.operator.all_faults)
        if self._reports is not None:
            faults.add(self._reports.faults)
        return faults


class _Together(_Evaluation):
    """All queries of a signature."""

    horizon = DAWN

    def __init__(self, operator: SharedOperator, signature: PublishedSignature) -> None:
        super().__init__(operator)
        self._signature = signature

    def reach(self) -> Reach | None:
        """A query that takes a run out of shared reports looks at its own first report there by itself; what a join
        shows at a time follows from when each of its windows reported last."""
        return self.operator.reach(settled=isinstance(self._signature, JoinSignature))

    def turn(self, turn: Turn, at: Alignment) -> dict[str, LifeRecord]:
        for registered in turn.left:
            self.operator.plan(Left(registered.identity, at.lowest, at.highest, at.seen))
        for registered in turn.joined:
            self.operator.plan(Joined(_by_identity(registered), at.highest, seen=at.seen))
        lives = {r.identity: self.operator.life(r.identity) for r in turn.joined}
        return {identity: LifeRecord(life.after, life.horizon) for identity, life in lives.items()}


def _by_identity(registered: Registered) -> Query:
    """The query under a name that no other one ever has."""
    return replace(registered.query, name=registered.identity)
