"""Queries on their operators: those of one signature on a shared one, every other query on its own.

    q1 ─┐                                     q3 ──── operator ──── expansion
        ├─ shared operator ─ stairs ─┬─ expansion of q1
    q2 ─┘                            └─ expansion of q2

Every query is asked for its lines by itself. The stairs of a shared operator are drawn when its first query runs out
of them, and wait for the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from stairwise.cql.query import Query
from stairwise.expressions.faults import Faults
from stairwise.operators.build import operator_for
from stairwise.operators.contract import Operator
from stairwise.operators.emission import Emissions
from stairwise.operators.expansion import Expansion
from stairwise.operators.store import Store
from stairwise.schema import DAWN, Instant
from stairwise.sharing.build import (
    AnySignature,
    Block,
    QueryExpansion,
    last_time,
    shared_expansion,
    shared_operator,
    shared_signature,
)


@dataclass
class QueryCounts:
    reports: int = 0
    lines: int = 0


class Running(Protocol):
    """One query as the engine sees it."""

    query: Query
    counts: QueryCounts
    streams: list[str]

    def emissions(self, watermark: Instant) -> Iterator[tuple[Instant, Emissions]]:
        """The lines that are now final, by the block, each with the time of its last report."""

    @property
    def faults(self) -> Faults: ...


class Runner(Protocol):
    """An operator with its store."""

    @property
    def operator(self) -> Operator: ...

    def remake(self) -> None:
        """Tear the operator down and make it anew from its store."""


def running(
    queries: Sequence[Query], store: Callable[[], Store], *, sharing: bool
) -> tuple[list[Runner], list[Running]]:
    """The operators for some queries, and the queries in their order."""
    by_signature: dict[AnySignature, list[Query]] = {}
    for query in queries:
        signature = shared_signature(query, sharing=sharing)
        if signature is not None:
            by_signature.setdefault(signature, []).append(query)
    groups = [_Group(signature, members, store()) for signature, members in by_signature.items()]
    shared = {member.query.name: member for group in groups for member in group.members}
    alone = {query.name: _Alone(query, store()) for query in queries if query.name not in shared}
    return [*groups, *alone.values()], [shared.get(query.name) or alone[query.name] for query in queries]


class _Alone:
    """A query on an operator of its own."""

    def __init__(self, query: Query, store: Store) -> None:
        self.query = query
        self.operator = operator_for(query, store)
        self.counts = QueryCounts()
        self.streams = [stream.name for stream in query.streams]
        self._store = store
        self._expansion = Expansion(query)
        self._reached = DAWN

    def emissions(self, watermark: Instant) -> Iterator[tuple[Instant, Emissions]]:
        if watermark == self._reached:
            return
        self._reached = watermark
        for reports in self.operator.advance_blocks(watermark):
            emitted = self._expansion.expand_block(reports)
            self.counts.reports += emitted.reports
            self.counts.lines += emitted.rows.num_rows
            yield int(reports.times[-1]), emitted

    @property
    def faults(self) -> Faults:
        faults = Faults()
        faults.add(self.operator.faults)
        faults.add(self._expansion.faults)
        return faults

    def remake(self) -> None:
        self.operator.flush()
        self.operator = operator_for(self.query, self._store)


class _Drawn:
    """A block on its way to the members, with what has been taken out of it already."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._shown: dict[int, Emissions | None] = {}

    def shown(self, voice: int, expansion: QueryExpansion) -> Emissions | None:
        if voice not in self._shown:
            self._shown[voice] = expansion.expand(self.block)
        return self._shown[voice]


class _Group:
    """The queries of one signature on one operator. Those that say the same with one voice are expanded once."""

    def __init__(self, signature: AnySignature, queries: Sequence[Query], store: Store) -> None:
        self.signature = signature
        self.operator = shared_operator(signature, queries, store)
        voices: dict[object, tuple[int, QueryExpansion]] = {}
        self.members: list[_Member] = []
        for query in queries:
            life = self.operator.life(query.name)
            said = (query.text, query.relation, life)
            if said not in voices:
                voices[said] = len(voices), shared_expansion(signature, query, life)
            self.members.append(_Member(query, self, *voices[said]))
        self._store = store
        self._reached = DAWN
        self._blocks: Iterator[Block] = iter(())

    def begin(self, watermark: Instant) -> None:
        if watermark != self._reached:
            self._reached = watermark
            self._blocks = self.operator.advance_blocks(watermark)

    def draw(self) -> bool:
        """One more block for every member; False where there is none."""
        block = next(self._blocks, None)
        if block is None:
            return False
        drawn = _Drawn(block)
        for member in self.members:
            member.waiting.append(drawn)
        return True

    def remake(self) -> None:
        self.operator.flush()
        self.operator = shared_operator(self.signature, self.operator.queries, self._store)


class _Member:
    """One query of a signature."""

    def __init__(self, query: Query, group: _Group, voice: int, expansion: QueryExpansion) -> None:
        self.query = query
        self.counts = QueryCounts()
        self.streams = [stream.name for stream in query.streams]
        self.waiting: deque[_Drawn] = deque()
        self._group = group
        self._voice = voice
        self._expansion = expansion

    def emissions(self, watermark: Instant) -> Iterator[tuple[Instant, Emissions]]:
        self._group.begin(watermark)
        while self.waiting or self._group.draw():
            drawn = self.waiting.popleft()
            emitted = drawn.shown(self._voice, self._expansion)
            if emitted is not None:
                self.counts.reports += emitted.reports
                self.counts.lines += emitted.rows.num_rows
                yield last_time(drawn.block), emitted

    @property
    def faults(self) -> Faults:
        faults = Faults()
        faults.add(self._group.operator.faults(self.query))
        faults.add(self._expansion.faults)
        return faults
