"""Queries that share published reports: what evaluates a signature, and what a query takes out of what it says.

    shard ── publication ──▶ report ──▶ results ── block ── reports ──▶ one query's report
                                             of all queries        as if it had been evaluated alone

A published report of several queries stands for itself: it holds all that any query of its signature shows at its time.
So it can be read by whoever begins to subscribe, goes on from a token or asks for a snapshot, without those before it.
Those of a query by itself may hold what moved (``reports.query_reports``).

    aggregation     the stair: the groups at every rear
    DISTINCT        the values of the widest window that is due, in order of their last appearance: a query's are a
                    suffix of them
    join            the joined rows of the widest windows that are due, with the times of their rows: a query's are
                    those that its own windows hold then
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair import Stair, stair_of
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.algebra.query import Query
from stairwise.distinct.expansion import DistinctExpansion
from stairwise.distinct.operator import APPEARANCES, Appearances, SharedDistinct, appearances_of
from stairwise.expressions.views import Ints
from stairwise.flow.lifetimes import rows_end_with_time
from stairwise.join.operator import JOIN, JoinBlock, JoinPublication, SharedJoin, join_block_of
from stairwise.join.taking import JoinTaking
from stairwise.operators.due import Frame, frames_of
from stairwise.operators.roster import windows_of
from stairwise.operators.signature import DistinctSignature, FlowSignature, JoinSignature
from stairwise.plan.shared import shared_signature
from stairwise.plan.signature import PublishedSignature, published_signature_of
from stairwise.reports.blocks import Reports
from stairwise.reports.contract import Life, Report

PublishedBlock = Stair | Appearances | JoinBlock


class Taking(Protocol):
    """What one query takes out of the reports of its signature."""

    life: Life

    def is_due(self, block: Any) -> bool: ...

    def reports(self, block: Any) -> Reports | None: ...

    def held(self, block: Any, times: Ints) -> Any:
        """A block at some of the query's report times in the run that it begins."""


def publication_of(operator: Any) -> Callable[[Any], Iterator[Report]]:
    """What is published of an operator's blocks: reports that stand for themselves."""
    match operator:
        case SharedAggregation():
            return Stair.reports
        case SharedDistinct():
            return Appearances.standing
        case SharedJoin():
            return JoinPublication(operator).reports
        case _:
            return Reports.split


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


def rows_tell_ends(query: Query) -> bool:
    """Do the published rows of a query say until when they stay?"""
    is_alone = published_signature_of(query) is None and isinstance(shared_signature(query), FlowSignature)
    return is_alone and rows_end_with_time(query.relation)


def frames(query: Query) -> list[Frame]:
    """The windows of a query that shares, and their levels: it reports when any of them is due."""
    return [frame for window in windows_of(query) for frame in frames_of(window)]
