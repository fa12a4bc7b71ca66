"""Which algorithm evaluates which SELECT.

no window                                  append      rows as they pass
groups over a time or multi-level window   panes       partial aggregates by slice
groups over a landmark window              landmark    one accumulator
APPROX_FREQUENT                            frequent    the most frequent items of each sub-window
joins of time windows                      timejoin    rows that are joined once, while they show
everything else                            recompute   the rows in scope
"""

from __future__ import annotations

from stairwise.cql.query import Query, Select, selects
from stairwise.operators.append import Append
from stairwise.operators.evaluation import QueryOperator
from stairwise.operators.frequent import Frequent, asks_for_sub_windows
from stairwise.operators.landmark import Landmark
from stairwise.operators.panes import Panes
from stairwise.operators.part import Part
from stairwise.operators.recompute import Recompute
from stairwise.operators.steps import asks_for_steps
from stairwise.operators.store import Store
from stairwise.operators.timejoin import TimeJoin, time_windows
from stairwise.windows.spec import LandmarkWindow, MultiWindow, TimeWindow


def operator_for(query: Query, store: Store) -> QueryOperator:
    """An operator for a query by itself, which goes on from what an earlier one left in the store.

    It takes effect from the streams' first row on unless a ``Joined`` says otherwise.
    """
    parts = [part_for(select, store, b"p%d/" % i) for i, select in enumerate(selects(query.relation))]
    return QueryOperator(query, parts, store)


def part_for(select: Select, store: Store, prefix: bytes) -> Part:
    if select.inputs[0].window is None:
        return Append(select, store, prefix)
    window = select.inputs[0].window
    if asks_for_sub_windows(select):
        return Frequent(select, store, prefix)
    if select.is_grouped and len(select.inputs) == 1 and not asks_for_steps(select):
        if isinstance(window, TimeWindow | MultiWindow):
            return Panes(select, store, prefix)
        if isinstance(window, LandmarkWindow):
            return Landmark(select, store, prefix)
    if time_windows(select) is not None:
        return TimeJoin(select, store, prefix)
    return Recompute(select, store, prefix)
