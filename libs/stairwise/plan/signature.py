"""The signature of a query, where its tree has a shape that operators share: what it has in common with others.

    tree above the windows         windows                                  signature
    Group                          one, by time or with levels              aggregation
    Distinct                       one, by time or with levels              appearances
    Join                           all by time                              join
    Select, Union, Except          by time, or ROWS and PARTITION BY;       flow: rows that enter and leave, where
                                   Group over such ROWS and PARTITION       changes are shown
                                   BY, Join of any of them and of tables
    Group                          a landmark                               landmark: groups that grow, where changes
                                                                            are shown
    any of one input               slid by rows                             counted: the same over row numbers

All look at the query as it runs (``lowering``): what stands below a window is part of a signature as such.
"""

from __future__ import annotations

from stairwise.aggregation.frequent import asks_for_sub_windows
from stairwise.aggregation.partials import kind_of
from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Emit, Except, Input, Query, Relation, Select, Union, Widen, selects, time_windows
from stairwise.changes.changing_groups import change_by_group, is_subtractable
from stairwise.expressions.canonical import canonical, canonical_condition
from stairwise.expressions.conditions import all_of, conjuncts, fields, moved
from stairwise.expressions.tree import Expr, Field, Output
from stairwise.flow.counted import CountedSignature, by_number
from stairwise.join.moving_join import asked_columns
from stairwise.operators.levels import asked_aggregates
from stairwise.operators.preparation import row_expressions
from stairwise.operators.signature import (
    ANY_WINDOW,
    DistinctSignature,
    FlowInput,
    FlowSignature,
    JoinSignature,
    LandmarkSignature,
    Signature,
)
from stairwise.plan.lowering import lowered_relation
from stairwise.schema import Stream, Type
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
    counts_rows,
)

_TYPES = {t.arrow: t for t in Type if t is not Type.TIMESTAMP}
"""A column's type by how it lies in memory; a TIMESTAMP lies there as a BIGINT does."""


def join_signature_of(query: Query) -> JoinSignature | None:
    """A query's signature, where it is a SELECT over the join of time windows."""
    select = query.relation
    if not isinstance(select, Select) or time_windows(select) is None:
        return None
    asked = tuple(sorted({field.index for _, expr in row_expressions(select) for field in fields(expr)}))
    where = canonical_condition(_whole_condition(select))
    streams = tuple(i.stream for i in select.inputs)
    return JoinSignature(streams, where, asked, _lowered_select(_columns_of(streams, where, asked)))


def _columns_of(streams: tuple[Stream, ...], where: Expr | None, asked: tuple[int, ...]) -> Select:
    """Some columns of joined rows."""
    inputs = tuple(Input(stream, ANY_WINDOW, f"input{i}") for i, stream in enumerate(streams))
    types = [_TYPES[column.type.arrow] for stream in streams for column in stream.columns]
    return Select(inputs, tuple(Output(f"f{i}", Field(i, f"f{i}", types[i])) for i in asked), where=where)


def _whole_condition(select: Select) -> Expr | None:
    """All that a SELECT asks of its rows, whether above or below its windows."""
    parts, start = [*conjuncts(select.where)], 0
    for source in select.inputs:
        parts += [moved(part, start) for part in conjuncts(source.where)]
        start += len(source.stream.columns)
    return all_of(parts) if parts else None


def _lowered_select(select: Select) -> Select:
    found = lowered_relation(select)
    assert isinstance(found, Select)
    return found


def flow_signature_of(query: Query) -> FlowSignature | None:
    """A query's signature, where it shows the changes of rows that flow through windows which report by time."""
    if query.emit is Emit.RSTREAM:
        return None
    if isinstance(query.relation, Select) and len(query.relation.inputs) > 1:
        return _join_flows(query.relation)
    if isinstance(query.relation, Select) and not report_grids(query.relation.inputs[0].window):
        return None  # by row numbers that is a time window
    if "^" in (shape := _shape(query.relation)):
        return None  # copies are counted in one type
    flows: list[FlowInput] = []
    for select in selects(lowered_relation(query.relation)):
        (source, *others) = select.inputs
        window = _any_window_like(source.window)
        if others or window is None:
            return None
        if select.is_grouped:
            if window is ANY_WINDOW or not isinstance(query.relation, Select) or not change_by_group(select):
                return None  # over time windows groups come from slices
        elif not _has_tabled_values(select):
            return None
        values = tuple(canonical(expr) for _, expr in row_expressions(select))
        flows.append(
            FlowInput(
                source.stream, canonical_condition(source.where), canonical_condition(select.where), values, window
            )
        )
    return FlowSignature(tuple(flows), shape)


def _join_flows(select: Select) -> FlowSignature | None:
    """The rows of each input of a join: by the columns that are asked for, and what asks an input alone."""
    tells = change_by_group(select) and is_subtractable(select) if select.is_grouped else _has_tabled_values(select)
    windows = [_any_window_like(source.window) for source in select.inputs]
    if not tells:
        return None
    select = _lowered_select(select)
    condition = Condition(select)
    asked = asked_columns(select, condition)
    flows: list[FlowInput] = []
    for i, (source, window) in enumerate(zip(select.inputs, windows, strict=True)):
        if window is None:
            return None
        start, names = condition.starts[i], source.stream.columns
        own = [moved(c.expr, -start) for c in condition.conjuncts if c.inputs == {i} or (not c.inputs and i == 0)]
        values = tuple(Field(j - start, names[j - start].name, names[j - start].type) for j in asked[i])
        where = canonical_condition(all_of(own)) if own else None
        below = canonical_condition(source.where)
        if where is not None and not counts_rows(source.window):  # a constant, which may stand anywhere
            below, where = where if below is None else canonical(all_of([below, where])), None
        flows.append(FlowInput(source.stream, below, where, values, window))
    several = [canonical(c.expr) for c in condition.conjuncts if len(c.inputs) > 1]
    return FlowSignature(tuple(flows), f"{_shape(select)}{several!r}")


def _has_tabled_values(select: Select) -> bool:
    """Can a table hold what it selects?"""
    return not any(output.type is Type.HUGEINT for output in select.outputs)


def _any_window_like(window: Window | None) -> Window | None:
    """What stands for all windows that count rows alike and report at the same rows, or by time; None where no rows
    flow through it."""
    match window:
        case TimeWindow():
            return ANY_WINDOW
        case RowsWindow(row_slide=int()):
            return RowsWindow(1, window.row_slide)
        case RowsWindow(time_slide=int()):
            return RowsWindow(1, None, 1)
        case PartitionedWindow():
            return PartitionedWindow(window.keys, 1, 1)
        case RelationWindow():
            return window
        case _:
            return None


def _shape(relation: Relation) -> str:
    match relation:
        case Select():
            return "#" if relation.is_grouped else "!" if relation.distinct else "."
        case Union():
            return f"({_shape(relation.left)}+{_shape(relation.right)})"
        case Except():
            return f"({_shape(relation.left)}-{_shape(relation.right)})"
        case Widen():
            return f"^{_shape(relation.input)}"


def distinct_signature_of(query: Query) -> DistinctSignature | None:
    """A query's signature, where it is a SELECT DISTINCT of rows over one time window."""
    select = query.relation
    if query.by_lookups or not isinstance(select, Select):
        return None
    if not select.distinct or select.is_grouped or len(select.inputs) != 1:
        return None
    source = select.inputs[0]
    if not isinstance(source.window, TimeWindow | MultiWindow):
        return None
    if any(output.type is Type.HUGEINT for output in select.outputs):
        return None  # no table of values holds them
    where = canonical_condition(_lowered_select(select).inputs[0].where)
    lag = source.window.lag if isinstance(source.window, TimeWindow) else 0
    return DistinctSignature(source.stream, where, tuple(canonical(o.expr) for o in select.outputs), lag)


def signature_of(query: Query) -> Signature | None:
    """A query's signature; None where it is not a grouped SELECT over one time window, which shares nothing."""
    if query.by_lookups:
        return None  # it shares what lookups keep
    select = query.relation
    if not isinstance(select, Select) or not select.is_grouped or len(select.inputs) != 1:
        return None
    source = select.inputs[0]
    if not isinstance(source.window, TimeWindow | MultiWindow):
        return None
    if asks_for_sub_windows(select):
        return None  # its sub-windows are its own
    where = canonical_condition(_lowered_select(select).inputs[0].where)
    keys = tuple(canonical(key) for key in select.keys)
    return Signature(source.stream, where, keys, *kind_of(asked_aggregates(select)))


def landmark_signature_of(query: Query) -> LandmarkSignature | None:
    """A query's signature, where it shows the changes of groups over a landmark window that can be told group by
    group."""
    select = query.relation
    if query.emit is Emit.RSTREAM or not isinstance(select, Select) or not change_by_group(select):
        return None
    if len(select.inputs) != 1 or not isinstance(select.inputs[0].window, LandmarkWindow):
        return None
    return LandmarkSignature(_lowered_select(select))


_OF_TIME = ("REGR_SLOPE", "REGR_INTERCEPT")


def counted_signature_of(query: Query) -> CountedSignature | None:
    """A query's signature, where it asks one window that slides by rows, and does not calculate with time."""
    select = query.relation
    if not isinstance(select, Select) or len(select.inputs) != 1:
        return None
    if any(aggregate.function in _OF_TIME for aggregate in select.aggregates):
        return None
    window = select.inputs[0].window
    if not isinstance(window, RowsWindow) or window.row_slide is None:
        return None
    changed = by_number(query)
    found = distinct_signature_of(changed) or flow_signature_of(changed) or signature_of(changed)
    return None if found is None else CountedSignature(select.inputs[0].stream, found)


PublishedSignature = Signature | DistinctSignature | JoinSignature


def published_signature_of(query: Query) -> PublishedSignature | None:
    """What a query shares where reports are published: one report holds all that any query of a signature shows then,
    so that it can be read by whoever comes, and again. None where a query has reports of its own."""
    found = signature_of(query) or distinct_signature_of(query)
    if found is not None or query.by_lookups or not isinstance(query.relation, Select):
        return found
    if query.relation.is_grouped or query.relation.distinct:
        return None  # its groups or values are fewer than the rows that they are made from
    return join_signature_of(query)
