"""Which algorithm evaluates which SELECT of a query that has an operator of its own.

no window                                  append      rows as they pass
groups over a time or multi-level window   shared      slices and stairs
DISTINCT over such a window                shared      one log of appearances
joins of time windows                      shared      one probe for each row
groups over a landmark window              landmark    one accumulator
APPROX_FREQUENT                            frequent    the most frequent items of each sub-window
everything else                            recompute   the rows in scope
"""

from __future__ import annotations

from stairwise.aggregation.frequent import Frequent, asks_for_sub_windows
from stairwise.aggregation.landmark import Landmark
from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.algebra.query import Emit, Query, Select, inputs, selects
from stairwise.distinct.expansion import DistinctExpansion
from stairwise.distinct.operator import SharedDistinct
from stairwise.join.operator import SharedJoin
from stairwise.plan.lowering import lowered
from stairwise.plan.signature import distinct_signature_of, join_signature_of, signature_of
from stairwise.recompute.append import Append
from stairwise.recompute.evaluation import QueryOperator
from stairwise.recompute.part import Part
from stairwise.recompute.recompute import Recompute
from stairwise.recompute.shared_part import JoinedRowsShown, LastReports, SharedPart
from stairwise.reports.contract import Life
from stairwise.state.store import Store, Within
from stairwise.windows.schedule import union
from stairwise.windows.spec import LandmarkWindow

_OF_REPORT_TIME = "REGR_INTERCEPT"
"""It changes from report to report though its SELECT's own state does not."""


def operator_for(query: Query, store: Store) -> QueryOperator:
    """An operator for a query by itself, which goes on from what an earlier one left in the store.

    It takes effect from the streams' first row on unless a ``Joined`` says otherwise.
    """
    query = lowered(query)
    windows = {source.window for source in inputs(query.relation)}
    reports_apart = len(windows) > 1 and len({union((window,)) for window in windows}) > 1
    parts: list[Part] = []
    for i, select in enumerate(selects(query.relation)):
        moves = reports_apart and any(a.function == _OF_REPORT_TIME for a in select.aggregates)
        part = Recompute if moves else part_for
        parts.append(part(select, store, b"p%d/" % i))
    return QueryOperator(query, parts, store)


def part_for(select: Select, store: Store, prefix: bytes) -> Part:
    window = select.inputs[0].window
    if window is None:
        return Append(select, store, prefix)
    if asks_for_sub_windows(select):
        return Frequent(select, store, prefix)
    if select.is_grouped and len(select.inputs) == 1 and isinstance(window, LandmarkWindow):
        return Landmark(select, store, prefix)
    return _shared_part(select, store, prefix) or Recompute(select, store, prefix)


def _shared_part(select: Select, store: Store, prefix: bytes) -> SharedPart | None:
    """The SELECT on the operator that queries like it share."""
    query, within, held = Query("part", select, Emit.RSTREAM, ""), Within(store, prefix + b"o"), prefix + b"h"
    if (joins := join_signature_of(query)) is not None:
        probing = SharedJoin(joins, [query], within)
        return SharedPart(select, probing, JoinedRowsShown(query, probing))
    if (values := distinct_signature_of(query)) is not None:
        log, sets = SharedDistinct(values, [query], within), DistinctExpansion(query, Life())
        return SharedPart(select, log, LastReports(query, log, sets, store, held))
    if (groups := signature_of(query)) is not None:
        slices, stairs = SharedAggregation(groups, [query], within), SharedExpansion(query, Life())
        return SharedPart(select, slices, LastReports(query, slices, stairs, store, held))
    return None
