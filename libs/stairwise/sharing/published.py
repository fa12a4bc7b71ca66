"""Queries that share published reports: what evaluates a signature, and what a query takes out of what it says.

    shard ── advance_standing ──▶ report ──▶ results ── block ── reports ──▶ one query's report
                                             of all queries        as if it had been evaluated alone

A published report stands for itself: it holds all that any query of its signature shows at its time. So it can be read
by whoever begins to subscribe, goes on from a token or asks for a snapshot, without those before it.

    aggregation     the stair: the groups at every rear
    DISTINCT        the values of the widest window that is due, in order of their last appearance: a query's are a
                    suffix of them
    join            the joined rows of the widest windows that are due, with the times of their rows: a query's are
                    those that its own windows hold then
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from stairwise.cql.query import Query
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.contract import Operator, Report
from stairwise.operators.quiet import Quieting
from stairwise.operators.reports import Reports
from stairwise.operators.store import Store
from stairwise.schema import Instant
from stairwise.sharing.distinct import APPEARANCES, Appearances, SharedDistinct, appearances_of
from stairwise.sharing.distinct_expansion import DistinctExpansion
from stairwise.sharing.due import Frame, Life, frames_of
from stairwise.sharing.expansion import SharedExpansion
from stairwise.sharing.join import JOIN, JoinBlock, SharedJoin, join_block_of
from stairwise.sharing.join_taking import JoinTaking
from stairwise.sharing.operator import SharedAggregation
from stairwise.sharing.roster import windows_of
from stairwise.sharing.signature import DistinctSignature, JoinSignature, PublishedSignature
from stairwise.sharing.stair import Stair, stair_of

PublishedBlock = Stair | Appearances | JoinBlock


class PublishedOperator(Operator, Quieting, Protocol):
    """An operator for all queries of a signature, whose reports can be read one by one."""

    def advance_standing(self, watermark: Instant) -> Iterator[Report]:
        """As ``advance``; each report holds all that any of the queries shows then."""

    def life(self, query: str) -> Life: ...

    @property
    def all_faults(self) -> Faults: ...


class Taking(Protocol):
    """What one query takes out of the reports of its signature."""

    life: Life

    def is_due(self, block: Any) -> bool: ...

    def reports(self, block: Any) -> Reports | None: ...

    def held(self, block: Any, times: Ints) -> Any:
        """A block at some of the query's report times in the run that it begins."""


def published_operator(signature: PublishedSignature, queries: Sequence[Query], store: Store) -> PublishedOperator:
    if isinstance(signature, DistinctSignature):
        return SharedDistinct(signature, queries, store)
    if isinstance(signature, JoinSignature):
        return SharedJoin(signature, queries, store)
    return SharedAggregation(signature, queries, store)


def taking_of(signature: PublishedSignature, query: Query, life: Life) -> Taking:
    if isinstance(signature, DistinctSignature):
        return DistinctExpansion(query, life)
    if isinstance(signature, JoinSignature):
        return JoinTaking(query, life)
    return SharedExpansion(query, life)


def block_of(report: Report) -> PublishedBlock:
    """A report as it was published: it says itself what it is."""
    says = report.rows.schema.metadata
    if APPEARANCES in says:
        return appearances_of(report)
    return join_block_of(report) if JOIN in says else stair_of(report)


def frames(query: Query) -> list[Frame]:
    """The windows of a query that shares, and their levels: it reports when any of them is due."""
    return [frame for window in windows_of(query) for frame in frames_of(window)]
