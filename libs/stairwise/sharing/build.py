"""Which queries share an operator, which operator that is, and how a query takes its lines out of it.

grouped SELECT over a time window            aggregation     slices and stairs
SELECT DISTINCT over a time window           distinct        one log of appearances
SELECT over a join of time windows           join            one probe for each row
changes of rows, UNION ALL, EXCEPT           flow            rows prepared once, copies counted up and down; over
                                                             windows that count rows groups and joins, too
any but a join over a window slid by rows    counted         the same by the numbers of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from stairwise.cql.query import Query
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.contract import Operator
from stairwise.operators.emission import Emissions
from stairwise.operators.quiet import Quieting
from stairwise.operators.store import Store
from stairwise.schema import Instant
from stairwise.sharing.counted import (
    CountedBlock,
    CountedExpansion,
    CountedSignature,
    SharedCounted,
    counted_signature_of,
)
from stairwise.sharing.distinct import Appearances, SharedDistinct
from stairwise.sharing.distinct_expansion import DistinctExpansion
from stairwise.sharing.due import Life
from stairwise.sharing.expansion import SharedExpansion
from stairwise.sharing.flow import FlowBlock, SharedFlow
from stairwise.sharing.flow_expansion import FlowExpansion
from stairwise.sharing.join import JoinBlock, SharedJoin
from stairwise.sharing.join_expansion import JoinExpansion
from stairwise.sharing.operator import SharedAggregation
from stairwise.sharing.signature import (
    DistinctSignature,
    FlowSignature,
    JoinSignature,
    Signature,
    distinct_signature_of,
    flow_signature_of,
    join_signature_of,
    signature_of,
)
from stairwise.sharing.stair import Stair

AnySignature = Signature | DistinctSignature | JoinSignature | FlowSignature | CountedSignature
Block = Stair | Appearances | JoinBlock | FlowBlock | CountedBlock


class SharedOperator(Operator, Quieting, Protocol):
    """An operator for all queries of a signature; its blocks are for every one of them."""

    @property
    def queries(self) -> list[Query]: ...

    def advance_blocks(self, watermark: Instant) -> Iterator[Any]: ...

    def life(self, query: str) -> Life: ...

    def faults(self, query: Query) -> Faults: ...


class QueryExpansion(Protocol):
    """What one query shows of the blocks of its signature."""

    life: Life
    faults: Faults

    def expand(self, block: Any) -> Emissions | None: ...


class HoldingExpansion(QueryExpansion, Protocol):
    """One that may show whole answers, and so has lines in a run."""

    def expand_held(self, block: Any, times: Ints) -> Emissions | None: ...


def shared_signature(query: Query, *, sharing: bool = True) -> AnySignature | None:
    """What a query shares with others; None where it is evaluated by itself.

    Without ``sharing``, aggregates over time windows and what slides by rows are evaluated by themselves too, which
    tests and benchmarks compare with; there is no such choice for the other operators over time windows.
    """
    found = distinct_signature_of(query) or join_signature_of(query) or flow_signature_of(query)
    return found or (signature_of(query) or counted_signature_of(query) if sharing else None)


def shared_operator(signature: AnySignature, queries: Sequence[Query], store: Store) -> SharedOperator:
    if isinstance(signature, DistinctSignature):
        return SharedDistinct(signature, queries, store)
    if isinstance(signature, JoinSignature):
        return SharedJoin(signature, queries, store)
    if isinstance(signature, FlowSignature):
        return SharedFlow(signature, queries, store)
    if isinstance(signature, CountedSignature):
        return SharedCounted(signature, queries, store)
    return SharedAggregation(signature, queries, store)


def shared_expansion(signature: AnySignature, query: Query, life: Life) -> QueryExpansion:
    if isinstance(signature, DistinctSignature):
        return DistinctExpansion(query, life)
    if isinstance(signature, JoinSignature):
        return JoinExpansion(query, life)
    if isinstance(signature, FlowSignature):
        return FlowExpansion(query, life)
    if isinstance(signature, CountedSignature):
        return CountedExpansion(query, life)
    return SharedExpansion(query, life)


def last_time(block: Block) -> Instant:
    """The last report time of a block."""
    return int(block.steps.time[-1] if isinstance(block, Stair) else block.times[-1])
