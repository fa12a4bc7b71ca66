"""A SELECT as a lookup: what is asked of the recent past, and errors for what a lookup cannot say.

    SELECT ticker, SUM(qty) FROM trades [RANGE 300 SECONDS] WHERE venue = 'X' AND price > 10
     GROUP BY ticker HAVING SUM(qty) > 1000

    window     (T − 300 s, T], T being the watermark at which the lookup is answered
    where      venue = 'X' AND price > 10           rows that count
    keys       (ticker,)                            how the rows are told apart
    asked      None: all keys
    bound      SUM(qty) ≥ 1001                      what HAVING asks of a group at least

``WHERE ticker = 'AB'`` asks for one key: where the column is grouped by, or nothing is, it becomes a key that is
asked for rather than a condition on rows, so that all such lookups share one structure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa

from stairwise.aggregates.catalogue import algebra_for
from stairwise.aggregation.group_rows import Grouping
from stairwise.algebra.query import Query, Select
from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.errors import StairwiseError
from stairwise.expressions.conditions import conjuncts
from stairwise.expressions.tree import Aggregate, Call, Const, Expr, Field, Value
from stairwise.lookups.statement_shape import checked
from stairwise.reports.answers import yields_items
from stairwise.reports.cells import canonical_column
from stairwise.schema import DAWN, Instant, Stream, Type
from stairwise.structures.summands import EXTREMES, FAMILIES, INTEGER_FAMILIES
from stairwise.windows.spec import LandmarkWindow, PartitionedWindow, RowsWindow, TimeWindow

MOST_KEYS_ASKED = 10_000
_MOST_SHARED = 4096
_CASTS = frozenset({"to_double", "to_hugeint"})
_EXACT = 2**52
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class LookupSignature:
    """Lookups that agree in it can share their structures: the rows that count, and what tells them apart."""

    where: Expr | None
    keys: tuple[Expr, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Expressions are trees: hashing them at every lookup would cost more than the lookup."""
        return hash((self.where, self.keys))


@lru_cache(_MOST_SHARED)
def _signature(where: Expr | None, keys: tuple[Expr, ...]) -> LookupSignature:
    """Those that are equal are one: to find one is quicker than to compare two."""
    return LookupSignature(where, keys)


@dataclass(frozen=True)
class Need:
    """A partial aggregate that a lookup needs; several aggregates may share one, also of different lookups."""

    args: tuple[Expr, ...]
    family: str

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.args, self.family))


@lru_cache(_MOST_SHARED)
def _need(args: tuple[Expr, ...], family: str) -> Need:
    """As with signatures."""
    return Need(args, family)


def _need_of(aggregate: Aggregate) -> Need:
    return _need(aggregate.args, algebra_for(aggregate).family)


@dataclass(frozen=True)
class Bound:
    """What HAVING asks of a group at least: COUNT, SUM or MAX no less, or MIN no more, than ``value``."""

    function: str
    args: tuple[Expr, ...]
    value: float
    strict: bool


LookupWindow = TimeWindow | LandmarkWindow | RowsWindow | PartitionedWindow


@dataclass(frozen=True)
class Lookup:
    text: str
    stream: Stream
    select: Select
    window: LookupWindow
    signature: LookupSignature
    asked: tuple[tuple[Value, ...], ...] | None
    """The keys that are asked for, one value for each of the signature's; None: all."""
    bound: Bound | None
    explain: bool = False
    lag: int = 0
    """Of a window that counts rows: how many of the newest it leaves out."""
    is_rowwise: bool = False
    """Must rows be looked at for another reason than their aggregates: a condition on the last rows of each key?"""
    horizon: Instant = DAWN
    """Rows at or below it are not seen."""

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The partials, in the order in which ``aggregation.partials`` lays them side by side."""
        return tuple(dict.fromkeys(map(_need_of, self.select.aggregates)))

    @cached_property
    def must_look_through(self) -> bool:
        """Has one of its aggregates no structure?"""
        return self.is_rowwise or not all(map(_can_keep, self.needs))

    @cached_property
    def needs_index(self) -> bool:
        """Can only an index tell which rows are in the window: the last of each key?"""
        return isinstance(self.window, PartitionedWindow)

    @cached_property
    def needs_numbers(self) -> bool:
        """Must an index know the numbers of its rows?"""
        return self.must_look_through or isinstance(self.window, RowsWindow)

    @cached_property
    def needs_sums_alone(self) -> bool:
        """Can running sums alone give all that it needs?"""
        return all(need.family in FAMILIES for need in self.needs)

    @cached_property
    def is_plain(self) -> bool:
        """One key, no HAVING, and only COUNT, and SUM and AVG of BIGINT: plain numbers can answer it."""
        if self.asked is None or len(self.asked) != 1 or self.needs_index:
            return False
        return self.select.having is None and all(need.family in INTEGER_FAMILIES for need in self.needs)

    @cached_property
    def is_counted(self) -> bool:
        """Only COUNT, and SUM of BIGINT: what running sums give needs nothing done to it."""
        integers = all(need.family in INTEGER_FAMILIES for need in self.needs)
        return integers and all(a.function in ("COUNT", "SUM") for a in self.select.aggregates)

    @cached_property
    def need_of(self) -> tuple[int, ...]:
        """Which of the needs each aggregate is made of."""
        return tuple(self.needs.index(_need_of(aggregate)) for aggregate in self.select.aggregates)

    @cached_property
    def answer_schema(self) -> pa.Schema:
        return pa.schema([pa.field(output.name, output.type.arrow) for output in self.select.outputs])

    @cached_property
    def asked_columns(self) -> list[pa.Array]:
        """The keys that are asked for, a column for each of the signature's."""
        return [
            canonical_column(pa.array([values[i] for values in self.asked or ()], key.type.arrow))
            for i, key in enumerate(self.signature.keys)
        ]

    @cached_property
    def grouping(self) -> Grouping:
        """How parts are combined and lowered."""
        return Grouping(self.select)

    @cached_property
    def part_schema(self) -> pa.Schema:
        """The columns of a part: group keys, then partials."""
        keys = [pa.field(f"k{i}", key.type.arrow) for i, key in enumerate(self.select.keys)]
        return pa.schema([*keys, *self.grouping.partials.schema])

    def span(self, at: Instant) -> tuple[Instant, Instant]:
        """The window by time at T: rows with rear < ts ≤ front."""
        rear, front = self._window_at(at)
        return max(rear, min(self.horizon, front)), front

    def _window_at(self, at: Instant) -> tuple[Instant, Instant]:
        match self.window:
            case TimeWindow():
                front = at - self.window.lag
                return front - self.window.range, front
            case LandmarkWindow():
                rear = DAWN if self.window.start is None else self.window.start - 1
                return rear, at if self.window.end is None else min(at, self.window.end)
            case PartitionedWindow():
                return DAWN, at
            case RowsWindow():
                raise ValueError("a window by rows has no span of time")

    def ranged(self) -> TimeWindow:
        """The window, if it has a range that others can replace."""
        if not isinstance(self.window, TimeWindow):
            raise StairwiseError("only a window by RANGE can be asked with other ranges", hint="write [RANGE ...]")
        return self.window


def _can_keep(need: Need) -> bool:
    """Is there a structure that gives this partial?"""
    if need.family in FAMILIES:
        return True
    return need.family in EXTREMES and need.args[0].type in (Type.BIGINT, Type.DOUBLE, Type.TIMESTAMP)


def read_lookup(text: str, streams: Mapping[str, Stream]) -> Lookup:
    """The lookup that a statement asks for: a SELECT, or EXPLAIN of one."""
    statements = parse_script(text)
    if len(statements) != 1:
        raise StairwiseError(f"a lookup is one SELECT, these are {len(statements)} statements", hint="send one")
    statement, explain = statements[0], False
    if isinstance(statement, ast.Explain) and isinstance(statement.target, ast.SelectStatement):
        statement, explain = statement.target, True
    if not isinstance(statement, ast.SelectStatement):
        raise StairwiseError("a lookup is a SELECT", hint="send other statements by `stairwise sql`")
    statement, lag = checked(statement)
    select = resolve_query("lookup", statement, streams).relation
    if not isinstance(select, Select):  # ``checked`` has pointed at UNION and EXCEPT
        raise StairwiseError("a lookup is a single SELECT")
    if any(aggregate.function in ("WINDOW_START", "WINDOW_END") for aggregate in select.aggregates):
        raise StairwiseError(
            "a lookup has no WINDOW_START and WINDOW_END", hint="its window ends at the time it answers for"
        )
    window = select.inputs[0].window
    if not isinstance(window, TimeWindow | LandmarkWindow | RowsWindow | PartitionedWindow):
        raise StairwiseError(
            "a lookup is over one window at one instant", hint="write [RANGE ...], [FROM ... UNTIL ...] or [ROWS n]"
        )
    if not select.is_grouped or select.distinct or yields_items(select):
        raise StairwiseError(
            "a lookup answers aggregates that have one value a group",
            hint="write SELECT key, SUM(x) ... GROUP BY key; rows, DISTINCT and TOP are for a query",
        )
    return replace(_lookup(text, select, window), explain=explain, lag=lag)


def lookup_of(query: Query) -> Lookup:
    """A standing filter as the lookup that answers it at each of its report times."""
    select = query.relation
    if not isinstance(select, Select) or not isinstance(select.inputs[0].window, TimeWindow):
        raise ValueError(f"{query.name} is no standing filter")
    return _lookup(query.text, select, select.inputs[0].window)


def _lookup(text: str, select: Select, window: LookupWindow) -> Lookup:
    if isinstance(window, PartitionedWindow):
        return _last_of_each(text, select, window)
    signature, asked = _keys(select)
    bound = _bound(select) if asked is None else None
    return Lookup(text, select.inputs[0].stream, select, window, signature, asked, bound)


def _last_of_each(text: str, select: Select, window: PartitionedWindow) -> Lookup:
    """The window tells rows apart by its own columns, whatever they are grouped by; WHERE comes after it."""
    stream = select.inputs[0].stream
    columns = [(stream.arrow_schema.get_field_index(name), stream.by_name[name]) for name in window.keys]
    keys = tuple(Field(index, column.name, column.type) for index, column in columns)
    signature, asked = _keys(replace(select, keys=keys))
    is_whole = signature.where is None and select.keys in ((), keys)
    return Lookup(text, stream, select, window, _signature(None, keys), asked, None, is_rowwise=not is_whole)


def _keys(select: Select) -> tuple[LookupSignature, tuple[tuple[Value, ...], ...] | None]:
    """How the rows are told apart, and which of the keys are asked for."""
    if select.where is None:
        return _signature(select.where, select.keys), None
    chosen: dict[Expr, tuple[Value, ...]] = {}
    rest: list[Expr] = []
    for condition in conjuncts(select.where):
        field, values = _choice(condition)
        if field is None or field in chosen or (select.keys and field not in select.keys):
            rest.append(condition)
        else:
            chosen[field] = values
    keys = select.keys or tuple(chosen)
    if not chosen or any(key not in chosen for key in keys):
        return _signature(select.where, select.keys), None
    asked: list[tuple[Value, ...]] = [()]
    for key in keys:
        asked = [(*before, value) for before in asked for value in chosen[key]]
        if len(asked) > MOST_KEYS_ASKED:
            raise StairwiseError(f"more than {MOST_KEYS_ASKED:,} keys are asked for", hint="split the IN lists")
    return _signature(_all_of(rest), keys), tuple(asked)


def _choice(condition: Expr) -> tuple[Field | None, tuple[Value, ...]]:
    """Of ``column = constant`` and ``column IN (constants)``: the column and what it may be."""
    if isinstance(condition, Call) and condition.op in ("=", "in"):
        column, *others = condition.args
        if condition.op == "=" and isinstance(column, Const):
            column, others = others[0], [column]
        constants = [other.value for other in others if isinstance(other, Const) and other.value is not None]
        if isinstance(column, Field) and len(constants) == len(others):
            return column, tuple(dict.fromkeys(constants))
    return None, ()


def _all_of(conditions: Sequence[Expr]) -> Expr | None:
    if not conditions:
        return None
    first, *others = conditions
    return Call("and", (first, *others), first.type) if others else first


def _bound(select: Select) -> Bound | None:
    """The condition of HAVING that leaves most out, as far as one can tell: the first that bounds from the far side."""
    if select.having is None or not select.keys:
        return None
    found = [bound for part in conjuncts(select.having) if (bound := _bound_of(part, select)) is not None]
    return found[0] if found else None


def _bound_of(condition: Expr, select: Select) -> Bound | None:
    if not isinstance(condition, Call) or condition.op not in _MIRRORED:
        return None
    left, right = map(_bare, condition.args)
    op = condition.op
    if isinstance(left, Const):
        left, right, op = right, left, _MIRRORED[op]
    if not isinstance(left, Field) or not isinstance(right, Const) or left.index < len(select.keys):
        return None
    aggregate: Aggregate = select.aggregates[left.index - len(select.keys)]
    value = right.value
    if aggregate.distinct or isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    if abs(value) > _EXACT:
        return None  # as a double it may stand for its neighbours too
    wanted = ("<", "<=", "=") if aggregate.function == "MIN" else (">", ">=", "=")
    if aggregate.function not in ("COUNT", "SUM", "MAX", "MIN") or op not in wanted:
        return None
    return Bound(aggregate.function, aggregate.args, value, strict=op in ("<", ">"))


def _bare(expr: Expr) -> Expr:
    """Without the casts that made both sides of a comparison alike."""
    while isinstance(expr, Call) and expr.op in _CASTS:
        expr = expr.args[0]
    return expr
