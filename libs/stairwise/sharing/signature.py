"""Which queries share: those that read the same rows of the same stream and group them alike.

    SELECT ticker, SUM(qty) FROM trades [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE price > 10 GROUP BY ticker ...
    SELECT ticker, MAX(qty) FROM trades [RANGE 5 MINUTES SLIDE 1 MINUTE]    WHERE 10 < price GROUP BY ticker ...

    stream and incarnation    trades, 1          windows, aggregates, HAVING, projection and EMIT may differ: slices
    filter                    price > 10         serve every window, their partials are the union of what the
    group keys                ticker             aggregates need, and the rest is each query's own affair

Filters are compared after normalisation, so that spelling does not keep queries apart: the sides of AND, OR, = and
<> stand in one order, > and >= are turned into < and <=, and a double NOT is gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from stairwise.cql.query import (
    Call,
    Emit,
    Except,
    Expr,
    Field,
    Input,
    Output,
    Query,
    Relation,
    Select,
    Union,
    selects,
)
from stairwise.operators.frequent import asks_for_sub_windows
from stairwise.operators.join import Condition, fields
from stairwise.operators.moving_join import asked_columns
from stairwise.operators.preparation import row_expressions
from stairwise.operators.timejoin import time_windows
from stairwise.schema import Duration, Stream, Type
from stairwise.sharing.changing_groups import change_by_group, is_subtractable
from stairwise.windows.spec import MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window

_ANY_WINDOW = TimeWindow(1, 1)
"""Stands where a signature leaves the windows open."""

_TYPES = {t.arrow: t for t in Type if t is not Type.TIMESTAMP}
"""A column's type by how it lies in memory; a TIMESTAMP lies there as a BIGINT does."""

_MIRRORED = {">": "<", ">=": "<="}
_SYMMETRIC = frozenset({"=", "<>"})
_FLAT = frozenset({"and", "or"})


def _digest(spelled: str) -> str:
    """A few letters that stand for a text, the same in every process."""
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Signature:
    stream: Stream
    where: Expr | None
    keys: tuple[Expr, ...]

    @property
    def name(self) -> str:
        """A short name that is the same in every process: reports carry it."""
        spelled = f"{self.stream.name}/{self.stream.incarnation}/{self.where!r}/{self.keys!r}"
        return f"{self.stream.name}.{self.stream.incarnation}:{_digest(spelled)}"


@dataclass(frozen=True)
class DistinctSignature:
    """What SELECT DISTINCT over time windows has to agree in: stream, filter, values, and the lag of the windows."""

    stream: Stream
    where: Expr | None
    keys: tuple[Expr, ...]
    lag: Duration

    @property
    def select(self) -> Select:
        """What all of its queries read, whatever their windows."""
        return _rows_of(self.stream, self.where, self.keys)

    @property
    def name(self) -> str:
        spelled = f"distinct/{self.stream.name}/{self.stream.incarnation}/{self.where!r}/{self.keys!r}/{self.lag}"
        return f"{self.stream.name}.{self.stream.incarnation}:{_digest(spelled)}"


@dataclass(frozen=True)
class JoinSignature:
    """What joins of time windows have to agree in: the streams in their order, the condition, the columns they ask."""

    streams: tuple[Stream, ...]
    where: Expr | None
    columns: tuple[int, ...]

    @property
    def select(self) -> Select:
        """What all of its queries read, whatever their windows."""
        inputs = tuple(Input(stream, _ANY_WINDOW, f"input{i}") for i, stream in enumerate(self.streams))
        types = [_TYPES[column.type.arrow] for stream in self.streams for column in stream.columns]
        outputs = tuple(Output(f"f{i}", Field(i, f"f{i}", types[i])) for i in self.columns)
        return Select(inputs, outputs, where=self.where)

    @property
    def name(self) -> str:
        streams = "+".join(f"{stream.name}.{stream.incarnation}" for stream in self.streams)
        spelled = f"join/{streams}/{self.where!r}/{self.columns!r}"
        return f"{streams}:{_digest(spelled)}"


def join_signature_of(query: Query) -> JoinSignature | None:
    """A query's signature, where it is a SELECT over the join of time windows."""
    select = query.relation
    if not isinstance(select, Select) or time_windows(select) is None:
        return None
    asked = {field.index for _, expr in row_expressions(select) for field in fields(expr)}
    where = None if select.where is None else normalised(select.where)
    return JoinSignature(tuple(i.stream for i in select.inputs), where, tuple(sorted(asked)))


@dataclass(frozen=True)
class _Flow:
    """The rows of one SELECT, and how its window counts them."""

    stream: Stream
    where: Expr | None
    values: tuple[Expr, ...]
    window: Window


@dataclass(frozen=True)
class FlowSignature:
    """What SELECT, UNION ALL and EXCEPT over windows that report by time have to agree in: the rows of each SELECT, by
    what its window counts them, and how these are put together."""

    flows: tuple[_Flow, ...]
    shape: str

    @property
    def selects(self) -> list[Select]:
        """What all of its queries read, whatever their ranges, rows and slides."""
        return [_rows_of(flow.stream, flow.where, flow.values, flow.window) for flow in self.flows]

    @property
    def name(self) -> str:
        streams = "+".join(dict.fromkeys(f"{flow.stream.name}.{flow.stream.incarnation}" for flow in self.flows))
        rows = [(flow.where, flow.values, flow.window) for flow in self.flows]
        spelled = f"flow/{streams}/{self.shape}/{rows!r}"
        return f"{streams}:{_digest(spelled)}"


def _rows_of(stream: Stream, where: Expr | None, values: tuple[Expr, ...], window: Window = _ANY_WINDOW) -> Select:
    outputs = tuple(Output(f"value{i}", value) for i, value in enumerate(values))
    return Select((Input(stream, window, stream.name),), outputs, where=where)


def flow_signature_of(query: Query) -> FlowSignature | None:
    """A query's signature, where it shows the changes of rows that flow through windows which report by time."""
    if query.emit is Emit.RSTREAM:
        return None
    if isinstance(query.relation, Select) and len(query.relation.inputs) > 1:
        return _join_flows(query.relation)
    flows: list[_Flow] = []
    for select in selects(query.relation):
        window = _any_window_like(select.inputs[0].window)
        if len(select.inputs) != 1 or window is None:
            return None
        if select.is_grouped:
            if window is _ANY_WINDOW or select is not query.relation or not change_by_group(select):
                return None  # over time windows groups come from slices
        elif not _has_tabled_values(select):
            return None
        where = None if select.where is None else normalised(select.where)
        values = tuple(normalised(expr) for _, expr in row_expressions(select))
        flows.append(_Flow(select.inputs[0].stream, where, values, window))
    return FlowSignature(tuple(flows), _shape(query.relation))


def _join_flows(select: Select) -> FlowSignature | None:
    """The rows of each input of a join: by the columns that are asked for, and what asks an input alone."""
    tells = change_by_group(select) and is_subtractable(select) if select.is_grouped else _has_tabled_values(select)
    windows = [_any_window_like(source.window) for source in select.inputs]
    if not tells:
        return None
    condition = Condition(select)
    asked = asked_columns(select, condition)
    flows: list[_Flow] = []
    for i, (source, window) in enumerate(zip(select.inputs, windows, strict=True)):
        if window is None:
            return None
        start, names = condition.starts[i], source.stream.columns
        own = [c.expr for c in condition.conjuncts if c.inputs == {i} or (not c.inputs and i == 0)]
        where = None if not own else normalised(_moved(Call("and", tuple(own), Type.BOOLEAN), start))
        values = tuple(Field(j - start, names[j - start].name, names[j - start].type) for j in asked[i])
        flows.append(_Flow(source.stream, where, values, window))
    several = [normalised(c.expr) for c in condition.conjuncts if len(c.inputs) > 1]
    return FlowSignature(tuple(flows), f"{_shape(select)}{several!r}")


def _moved(expr: Expr, start: int) -> Expr:
    """The same over the columns of one input, which begin at a place of an input row."""
    if isinstance(expr, Field):
        return replace(expr, index=expr.index - start)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(_moved(arg, start) for arg in expr.args))
    return expr


def _has_tabled_values(select: Select) -> bool:
    """Can a table hold what it selects?"""
    return not any(output.type is Type.HUGEINT for output in select.outputs)


def _any_window_like(window: Window | None) -> Window | None:
    """What stands for all windows that count rows alike and report by time; None where it does not."""
    match window:
        case TimeWindow():
            return _ANY_WINDOW
        case RowsWindow(time_slide=int()):
            return RowsWindow(1, None, 1)
        case PartitionedWindow():
            return PartitionedWindow(window.keys, 1, 1)
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
    where = None if select.where is None else normalised(select.where)
    lag = source.window.lag if isinstance(source.window, TimeWindow) else 0
    return DistinctSignature(source.stream, where, tuple(normalised(o.expr) for o in select.outputs), lag)


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
    where = None if select.where is None else normalised(select.where)
    return Signature(source.stream, where, tuple(normalised(key) for key in select.keys))


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


def normalised(expr: Expr) -> Expr:
    """The same expression in the one spelling that equals it."""
    if not isinstance(expr, Call):
        return expr
    op, args = expr.op, tuple(normalised(arg) for arg in expr.args)
    if op in _MIRRORED:
        op, args = _MIRRORED[op], args[::-1]
    if op in _FLAT:
        flat = [a for arg in args for a in (arg.args if isinstance(arg, Call) and arg.op == op else (arg,))]
        args = tuple(sorted(dict.fromkeys(flat), key=repr))
        if len(args) == 1:
            return args[0]
    if op in _SYMMETRIC:
        args = tuple(sorted(args, key=repr))
    if op == "not" and isinstance(args[0], Call) and args[0].op == "not":
        return args[0].args[0]
    return Call(op, args, expr.type)
