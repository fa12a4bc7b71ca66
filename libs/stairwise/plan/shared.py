"""Which queries share an operator, which operator that is, and how a query takes its lines out of it.

grouped SELECT over a time window            aggregation     slices and stairs
SELECT DISTINCT over a time window           distinct        one log of appearances
SELECT over a join of time windows           join            one probe for each row
changes of rows, UNION ALL, EXCEPT           flow            rows prepared once, copies counted up and down; over
                                                             windows that count rows groups and joins, too
changes of groups over a landmark            landmark        accumulators, and those that grew
any but a join over a window slid by rows    counted         the same by the numbers of rows
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair import Stair
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.algebra.query import Query
from stairwise.changes.growing_groups import GrowingExpansion, GrowingGroups, GrownGroups
from stairwise.distinct.expansion import DistinctExpansion
from stairwise.distinct.operator import Appearances, SharedDistinct
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.flow.counted import CountedBlock, CountedExpansion, CountedSignature, SharedCounted
from stairwise.flow.expansion import FlowExpansion
from stairwise.flow.operator import FlowBlock, SharedFlow
from stairwise.join.expansion import JoinExpansion
from stairwise.join.operator import JoinBlock, SharedJoin
from stairwise.operators.signature import (
    DistinctSignature,
    FlowSignature,
    JoinSignature,
    LandmarkSignature,
    Signature,
)
from stairwise.plan.signature import (
    counted_signature_of,
    distinct_signature_of,
    flow_signature_of,
    join_signature_of,
    landmark_signature_of,
    signature_of,
)
from stairwise.reports.contract import Life, Operator
from stairwise.reports.emission import Emissions
from stairwise.reports.runs import Quieting
from stairwise.state.store import Store

AnySignature = Signature | DistinctSignature | JoinSignature | FlowSignature | LandmarkSignature | CountedSignature
Block = Stair | Appearances | JoinBlock | FlowBlock | GrownGroups | CountedBlock


class SharedOperator(Operator, Quieting, Protocol):
    """An operator for all queries of a signature, past stretches in which nothing changes."""


class QueryExpansion(Protocol):
    """What one query shows of the blocks of its signature."""

    life: Life
    faults: Faults

    def expand(self, block: Any) -> Emissions | None: ...


class HoldingExpansion(QueryExpansion, Protocol):
    """One that may show whole answers, and so has lines in a run."""

    def expand_held(self, block: Any, times: Ints) -> Emissions | None: ...


def shared_signature(query: Query) -> AnySignature | None:
    """What a query shares with others; None where it is evaluated by itself."""
    found = distinct_signature_of(query) or join_signature_of(query) or flow_signature_of(query)
    return found or signature_of(query) or landmark_signature_of(query) or counted_signature_of(query)


def shared_operator(
    signature: AnySignature, queries: Sequence[Query], store: Store, *, keeps_history: bool = False
) -> SharedOperator:
    """``keeps_history``: can the expansions of its queries be made again when a driver starts again from the store?"""
    if isinstance(signature, DistinctSignature):
        return SharedDistinct(signature, queries, store)
    if isinstance(signature, JoinSignature):
        return SharedJoin(signature, queries, store)
    if isinstance(signature, FlowSignature):
        return SharedFlow(signature, queries, store, keeps_history=keeps_history)
    if isinstance(signature, LandmarkSignature):
        return GrowingGroups(signature, queries, store)
    if isinstance(signature, CountedSignature):
        return SharedCounted(signature, queries, store, partial(shared_operator, keeps_history=keeps_history))
    return SharedAggregation(signature, queries, store)


def shared_expansion(signature: AnySignature, query: Query, life: Life) -> QueryExpansion:
    if isinstance(signature, DistinctSignature):
        return DistinctExpansion(query, life)
    if isinstance(signature, JoinSignature):
        return JoinExpansion(query, life)
    if isinstance(signature, FlowSignature):
        return FlowExpansion(query, life)
    if isinstance(signature, LandmarkSignature):
        return GrowingExpansion(query, life)
    if isinstance(signature, CountedSignature):
        return CountedExpansion(query, life, lambda own, seen: shared_expansion(signature.by_number, own, seen))
    return SharedExpansion(query, life)
