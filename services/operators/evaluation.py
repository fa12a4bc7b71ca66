"""What evaluates the queries of a signature on a shard: one query by itself, or all of them together.

Both take rows, advance and turn with the plans. At a turn every partition stands before its first batch of the new
version, so what an evaluation knows then is a function of the topics, and so is what it tells of its queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stairwise.cql.query import Query
from stairwise.expressions.faults import Faults
from stairwise.operators.build import operator_for
from stairwise.operators.contract import Batch, Joined, Left, Report
from stairwise.operators.quiet import Quieting, Reach
from stairwise.operators.store import Store
from stairwise.platform.plans import Registered, Turn
from stairwise.platform.reports import LifeRecord
from stairwise.schema import DAWN, Instant
from stairwise.sharing.published import published_operator
from stairwise.sharing.signature import JoinSignature, PublishedSignature


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
    if registered.shared is None:
        return _Alone(registered.query, store)
    return _Together(registered.shared, members, store)


class _Alone:
    def __init__(self, query: Query, store: Store) -> None:
        self.operator = operator_for(query, store)
        self.insert = self.operator.insert
        self.advance = self.operator.advance
        self.flush = self.operator.flush

    def reach(self) -> Reach | None:
        return self.operator.reach(settled=True)

    def turn(self, turn: Turn, at: Alignment) -> dict[str, LifeRecord]:
        for registered in turn.joined:
            self.operator.plan(Joined(registered.query, at.highest, at.seen, at.before))
        return {}

    @property
    def faults(self) -> Faults:
        return self.operator.faults

    @property
    def horizon(self) -> Instant:
        return self.operator.horizon


class _Together:
    horizon = DAWN

    def __init__(self, signature: PublishedSignature, members: Sequence[Registered], store: Store) -> None:
        self.operator = published_operator(signature, [_by_identity(m) for m in members], store)
        self.insert = self.operator.insert
        self.advance = self.operator.advance_standing
        self.flush = self.operator.flush
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

    @property
    def faults(self) -> Faults:
        return self.operator.all_faults


def _by_identity(registered: Registered) -> Query:
    """The query under a name that no other one ever has."""
    return replace(registered.query, name=registered.identity)
