"""Queries on their operators: those of one signature on a shared one, every other query on its own.

    q1 ─┐                                     q3 ──── operator ──── expansion
        ├─ shared operator ─ stairs ─┬─ expansion of q1
    q2 ─┘                            └─ expansion of q2

Every query is asked for its lines by itself. The stairs of a shared operator are drawn when its first query runs out
of them, and wait for the others. Where nothing changes for long, operators are not asked: a run stands for all the
reports there, and only a query that shows whole answers goes through them (``reports.runs``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from stairwise.algebra.query import Emit, Query, inputs
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.plan.parts import operator_for
from stairwise.plan.shared import (
    AnySignature,
    Block,
    HoldingExpansion,
    QueryExpansion,
    shared_expansion,
    shared_operator,
    shared_signature,
)
from stairwise.reports.blocks import Reports
from stairwise.reports.contract import Batch, Operator
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import Expansion, output_schema
from stairwise.reports.runs import Islands, Quieting, Run, blocks_and_runs, bounds_of
from stairwise.schema import DAWN, Instant, Stream
from stairwise.state.pages import empty
from stairwise.state.store import Store
from stairwise.windows.schedule import count_due, first_of_each, grid_blocks, report_grids, without_covered

LINES = 50_000
"""About how many lines of a run are made at a time."""
MANY = 1_000_000
"""Of a run with more lines than this it is told what made it so long."""


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

    def insert(self, batch: Batch) -> None: ...

    def remake(self) -> None:
        """Tear the operator down and make it anew from its store."""


@dataclass(frozen=True)
class LongRun:
    """A query has so many lines to show in which nothing changes, at report times after one instant up to another."""

    query: Query
    lines: int
    after: Instant
    until: Instant


Moved = TypeVar("Moved", bound="_Advancing")


class _Way(Generic[Moved]):
    """An operator on its way through time, past the stretches in which nothing changes."""

    def __init__(self, operator: Moved, streams: Sequence[Stream]) -> None:
        self.operator = operator
        self._time_columns = {stream.name: stream.time_column for stream in streams}
        self._reach = operator.reach(settled=True)
        self._islands = Islands()
        self._reached = DAWN

    def observe(self, instants: Ints) -> None:
        """Answers may change here without a row."""
        if len(instants) and self._reach is not None:
            self._islands.extend(instants, self._reach.gap)

    def insert(self, batch: Batch) -> None:
        if batch.stream in self._time_columns:
            self._islands.add(batch, self._time_columns[batch.stream], self._reach)
        self.operator.insert(batch)

    def blocks(self, watermark: Instant) -> Iterator[Any]:
        """The blocks that are now final, and runs."""
        after, self._reached = self._reached, watermark
        legs = self._islands.legs(self.operator, self._reach, after, watermark)
        return blocks_and_runs(self.operator, self.operator.advance, legs)


class _Advancing(Operator, Quieting, Protocol): ...


def _shown(
    query: Query, run: Run, at: Callable[[Ints], Emissions | None], tell: Callable[[LongRun], None]
) -> Iterator[Emissions]:
    """What a query shows in a run: nothing, unless it shows whole answers and they are not empty."""
    grids = [grid for source in inputs(query.relation) for grid in report_grids(source.window)]
    reports = count_due(grids, run.after, run.until)
    lines = 0
    if query.emit is Emit.RSTREAM and reports:
        firsts = at(first_of_each(grids, run.after, run.until))
        lines = 0 if firsts is None else firsts.rows.num_rows
    if not lines:
        none = np.zeros(0, np.int64)
        yield Emissions(none, none, none.astype(np.int8), empty(output_schema(query)), reports)
        return
    if reports * lines > MANY:
        tell(LongRun(query, reports * lines, run.after, run.until))
    most = max(1, LINES // lines)
    for block in grid_blocks(without_covered(grids), run.after, run.until):
        for start in range(0, len(block), most):
            shown = at(block[start : start + most])
            if shown is not None:
                yield shown


def running(
    queries: Sequence[Query], store: Callable[[], Store], tell: Callable[[LongRun], None], *, sharing: bool
) -> tuple[list[Runner], list[Running]]:
    """The operators for some queries, and the queries in their order."""
    together: dict[tuple[AnySignature, str], list[Query]] = {}
    for query in queries:
        signature = shared_signature(query)
        if signature is not None:
            together.setdefault((signature, "" if sharing else query.name), []).append(query)
    groups = [_Group(signature, members, store(), tell) for (signature, _), members in together.items()]
    shared = {member.query.name: member for group in groups for member in group.members}
    alone = {query.name: _Alone(query, store(), tell) for query in queries if query.name not in shared}
    return [*groups, *alone.values()], [shared.get(query.name) or alone[query.name] for query in queries]


class _Alone:
    """A query on an operator of its own."""

    def __init__(self, query: Query, store: Store, tell: Callable[[LongRun], None]) -> None:
        self.query = query
        self.counts = QueryCounts()
        self.streams = [stream.name for stream in query.streams]
        self._store = store
        self._tell = tell
        self._expansion = Expansion(query)
        self._reached = DAWN
        self._way = _Way(operator_for(query, store), query.streams)
        self._way.observe(bounds_of(query))

    def insert(self, batch: Batch) -> None:
        self._way.insert(batch)

    def emissions(self, watermark: Instant) -> Iterator[tuple[Instant, Emissions]]:
        if watermark == self._reached:
            return
        self._reached = watermark
        for reports in self._way.blocks(watermark):
            for emitted in self._emitted(reports):
                self.counts.reports += emitted.reports
                self.counts.lines += emitted.rows.num_rows
                yield _last_of(reports, emitted), emitted

    def _emitted(self, reports: Reports | Run) -> Iterator[Emissions]:
        if isinstance(reports, Run):
            last = reports.block.last
            yield from _shown(self.query, reports, lambda t: self._expansion.expand_block(last.held(t)), self._tell)
        else:
            yield self._expansion.expand_block(reports)

    @property
    def faults(self) -> Faults:
        faults = Faults()
        faults.add(self._way.operator.all_faults)
        faults.add(self._expansion.faults)
        return faults

    def remake(self) -> None:
        self._way.operator.flush()
        self._way.operator = operator_for(self.query, self._store)


class _Drawn:
    """A block on its way to the members, with what has been taken out of it already."""

    def __init__(self, block: Block | Run) -> None:
        self.block = block
        self._shown: dict[int, Emissions | None] = {}

    def shown(self, voice: int, expansion: QueryExpansion) -> Emissions | None:
        if voice not in self._shown:
            self._shown[voice] = expansion.expand(self.block)
        return self._shown[voice]


class _Group:
    """The queries of one signature on one operator. Those that say the same with one voice are expanded once."""

    def __init__(
        self, signature: AnySignature, queries: Sequence[Query], store: Store, tell: Callable[[LongRun], None]
    ) -> None:
        self.signature = signature
        self.operator = shared_operator(signature, queries, store)
        self._way = _Way(self.operator, queries[0].streams)
        self._way.observe(bounds_of(queries[0]))
        self.tell = tell
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
        self._blocks: Iterator[Block | Run] = iter(())

    def insert(self, batch: Batch) -> None:
        self._way.insert(batch)

    def begin(self, watermark: Instant) -> None:
        if watermark != self._reached:
            self._reached = watermark
            self._blocks = self._way.blocks(watermark)

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
        self.operator = self._way.operator = shared_operator(self.signature, self.operator.queries, self._store)


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
            for emitted in self._emitted(drawn):
                self.counts.reports += emitted.reports
                self.counts.lines += emitted.rows.num_rows
                yield _last_of(drawn.block, emitted), emitted

    def _emitted(self, drawn: _Drawn) -> Iterator[Emissions]:
        block = drawn.block
        if isinstance(block, Run):
            expansion = cast(HoldingExpansion, self._expansion)  # the others never show whole answers
            last = block.block
            yield from _shown(self.query, block, lambda t: expansion.expand_held(last, t), self._group.tell)
        else:
            emitted = drawn.shown(self._voice, self._expansion)
            if emitted is not None:
                yield emitted

    @property
    def faults(self) -> Faults:
        faults = Faults()
        faults.add(self._group.operator.faults(self.query))
        faults.add(self._expansion.faults)
        return faults


def _last_of(block: Any, emitted: Emissions) -> Instant:
    """Up to where a block's lines are all there: of a run that is gone through, up to where it is."""
    if not isinstance(block, Run):
        return int(block.times[-1])
    return int(emitted.times[-1]) if len(emitted.times) else block.until
