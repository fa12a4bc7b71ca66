"""The reports of a query that shares its operator's class with others, but no reports: it is the operator's only query.

aggregation, DISTINCT   whole answers, which the operator has at hand (over windows slid by rows: by their numbers)
join                    changes of groups and values, where they are told from the rows that move; else whole answers
flow                    changes; of rows over time windows, with their ends in place of what leaves
landmark                changes of the groups that grew

A query that shows whole answers (EMIT RSTREAM) has reports that are some, however they come about.
"""

from __future__ import annotations

from stairwise.algebra.query import Emit, Query
from stairwise.changes.growing_groups import GrowingGroups
from stairwise.flow.counted import CountedSignature, SharedCounted
from stairwise.flow.lifetimes import LifetimeExpansion, rows_end_with_time
from stairwise.flow.operator import SharedFlow
from stairwise.join.expansion import tells_changes
from stairwise.join.operator import SharedJoin
from stairwise.operators.signature import FlowSignature, JoinSignature, LandmarkSignature
from stairwise.plan.shared import AnySignature, SharedOperator, shared_expansion
from stairwise.reports.expansion import report_query
from stairwise.reports.query_reports import BlockExpansion, QueryReports
from stairwise.reports.standing_answer import standing_of
from stairwise.state.store import Store


def query_reports_of(signature: AnySignature, operator: SharedOperator, query: Query, store: Store) -> QueryReports:
    """Goes on where the operator stands, which keeps its history."""
    assert isinstance(operator, SharedFlow | SharedJoin | GrowingGroups | SharedCounted), "others share their reports"
    life, history = operator.life(query.name), operator.history(query.name)
    asked = report_query(query, Emit.CHANGES)
    if not _tells_changes(signature, asked):
        asked = report_query(query, Emit.RSTREAM)
        expansion: BlockExpansion = shared_expansion(signature, asked, life)
        return QueryReports(query.name, expansion, None, history, store, whole=True)
    ends_are_known = isinstance(signature, FlowSignature) and rows_end_with_time(query.relation)
    expansion = LifetimeExpansion(asked, life) if ends_are_known else shared_expansion(signature, asked, life)
    standing = standing_of(asked, ends_are_known=ends_are_known)
    return QueryReports(query.name, expansion, standing, history, store, whole=query.emit is Emit.RSTREAM)


def _tells_changes(signature: AnySignature, asked: Query) -> bool:
    if isinstance(signature, CountedSignature):
        return isinstance(signature.by_number, FlowSignature)
    return isinstance(signature, FlowSignature | LandmarkSignature) or (
        isinstance(signature, JoinSignature) and tells_changes(asked)
    )
