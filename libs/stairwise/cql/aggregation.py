"""Aggregates and group rows: which aggregates a SELECT needs, and its expressions over the rows of groups.

While expressions are resolved, an aggregate is a field with a negative index (−1 the first, −2 the second,
...) among the fields of the input row. ``GroupRow.over`` then turns the whole into one over the group row:

    SUM(qty) / COUNT(*) + fee      keys (fee,)      aggregates (SUM(qty), COUNT(*))
    f−1      / f−2      + f3   ──▶                  f1 / f2 + f0
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stairwise.aggregates.catalogue import AGGREGATES, WEIGHABLE, AggregateFunction, Parameter
from stairwise.cql import ast
from stairwise.cql.coercion import Typed, is_null
from stairwise.cql.expressions import EDGES, AggregateCall, ExpressionResolver
from stairwise.cql.literals import count, double
from stairwise.cql.source import Source
from stairwise.expressions.functions import Constant, Takes
from stairwise.expressions.tree import ITEM_FUNCTIONS, Aggregate, Call, Const, Expr, Field
from stairwise.schema import Duration, Type

MAX_AGGREGATES = 500
MAX_TOP = 10_000
_NUMBERS = ("no arguments", "one argument", "two arguments")
_SPELLED = {"MEDIAN": "QUANTILE", "COUNT_IF": "COUNT"}
_ONE = Const(1, Type.BIGINT)


def refuse_aggregates(source: Source, clause: str, hint: str) -> AggregateCall:
    """What meets an aggregate in a clause that sees single rows."""

    def refuse(call: ast.FunctionCall) -> Expr:
        raise source.error(call.span, f"the aggregate {call.name.text.upper()} has no place in {clause}", hint=hint)

    return refuse


@dataclass
class AggregateCalls:
    """The aggregates of a SELECT, each once, in order of first mention."""

    source: Source
    arguments: ExpressionResolver
    weighted: bool
    edges: tuple[Duration, Duration] | None
    """How far before a report its window begins and ends, if it has one time window."""
    found: dict[Aggregate, int] = field(default_factory=dict)

    def __call__(self, call: ast.FunctionCall) -> Expr:
        """The place-holder for an aggregate's value."""
        aggregate = self.resolve(call)
        if aggregate.function in ITEM_FUNCTIONS:
            raise self.source.error(
                call.span,
                f"{aggregate.function} yields rows of items and stands alone in the list, beside group keys",
                hint=f"SELECT {aggregate.function}(...) FROM ...",
            )
        index = self.found.setdefault(aggregate, len(self.found))
        if index == MAX_AGGREGATES:
            raise self.source.error(call.span, f"a SELECT has at most {MAX_AGGREGATES} aggregates")
        return Field(-1 - index, f"agg{index}", aggregate.type)

    def resolve(self, call: ast.FunctionCall) -> Aggregate:
        name = call.name.text.upper()
        function = AGGREGATES[name]
        if call.distinct and name != "COUNT":
            raise self.source.error(call.span, f"{name} takes no DISTINCT", hint="only COUNT(DISTINCT x) is there")
        if self.weighted and (name not in WEIGHABLE or call.distinct):
            raise self.source.error(
                call.span, f"{name} cannot be weighted by level", hint="WEIGHTED BY is for COUNT, SUM and AVG"
            )
        if call.star:
            if name != "COUNT":
                raise self.source.error(call.span, f"{name} needs a column, not *", hint="only COUNT(*) takes *")
            counted = () if call.filter is None else (_where(self._filter(call.filter), _ONE),)
            return Aggregate("COUNT", counted, Type.DOUBLE if self.weighted else Type.BIGINT)
        if len(call.arguments) != function.arguments:
            raise self.source.error(
                call.span,
                f"{name} takes {_NUMBERS[function.arguments]}, not {len(call.arguments)}",
                expected=function.example,
            )
        if name in EDGES:
            return self._edge(name, call)
        arguments = [self.arguments.typed(argument) for argument in call.arguments[: len(function.takes)]]
        args = tuple(self._fitting(name, *pair) for pair in zip(function.takes, arguments, strict=True))
        if call.filter is not None:
            args = _filtered(name, args, self._filter(call.filter))
        return Aggregate(
            _SPELLED.get(name, name),
            args,
            self._type(name, function, arguments[0].expr.type),
            distinct=call.distinct,
            parameter=0.5 if name == "MEDIAN" else self._parameter(name, function, call.arguments[-1]),
        )

    def _edge(self, name: str, call: ast.FunctionCall) -> Aggregate:
        if self.edges is None:
            raise self.source.error(
                call.span,
                f"{name} is of one time window, and this query has another kind or several",
                expected="one window [RANGE w SLIDE b] or [TUMBLE w]",
            )
        if call.filter is not None:
            raise self.source.error(call.span, f"{name} is the same whatever the rows", hint="leave FILTER out")
        return Aggregate(name, (), Type.TIMESTAMP, parameter=float(self.edges[EDGES.index(name)]))

    def _filter(self, condition: ast.Expression) -> Expr:
        return self.arguments.condition(condition, "FILTER")

    def _fitting(self, name: str, takes: Takes | Constant, argument: Typed) -> Expr:
        if isinstance(takes, Constant):
            return self.arguments.fitting(name, takes, argument)
        kind = argument.expr.type
        fits = {
            Takes.NUMBER: kind.is_numeric,
            Takes.STRING: kind is Type.STRING,
            Takes.CONDITION: kind is Type.BOOLEAN,
            Takes.ORDERED: kind is not Type.BOOLEAN,
            Takes.ANY: True,
        }[takes]
        if is_null(argument.expr):
            raise self.source.error(argument.span, f"{name} of NULL says nothing", expected=takes.value)
        if not fits:
            raise self.source.error(
                argument.span,
                f"{name} needs {takes.value}, and this is of type {kind.value}",
                hint="CAST(... AS DOUBLE) gives an instant's milliseconds" if kind is Type.TIMESTAMP else "",
            )
        return _where(argument.expr, _ONE) if takes is Takes.CONDITION else argument.expr

    def _type(self, name: str, function: AggregateFunction, argument: Type) -> Type:
        if self.weighted:
            return Type.DOUBLE
        if name == "SUM":
            return Type.HUGEINT if argument is Type.BIGINT else argument
        return function.result or argument

    def _parameter(self, name: str, function: AggregateFunction, node: ast.Expression) -> float | None:
        if function.parameter is None:
            return None
        if not isinstance(node, ast.Number):
            raise self.source.error(
                node.span,
                f"the second argument of {name} is not a constant",
                expected=function.parameter.value,
            )
        if function.parameter is Parameter.COUNT and node.is_integer:
            return float(count(self.source, node, f"the number of items of {name}", MAX_TOP))
        value = double(self.source, node)
        fits = {
            Parameter.QUANTILE: 0 <= value <= 1,
            Parameter.SHARE: 0 < value < 1,
            Parameter.COUNT: False,
        }[function.parameter]
        if not fits:
            raise self.source.error(
                node.span,
                f"the second argument of {name} cannot be {node.text}",
                expected=function.parameter.value,
            )
        return value


def _where(condition: Expr, value: Expr) -> Expr:
    """The value where the condition holds, else NULL."""
    return Call("case", (condition, value, Const(None, value.type)), value.type)


def _filtered(name: str, args: tuple[Expr, ...], condition: Expr) -> tuple[Expr, ...]:
    """Rows that FILTER leaves out are rows without a value. To FIRST and LAST a NULL is one: they see the condition."""
    match name:
        case "FIRST" | "LAST":
            return (*args, condition)
        case "MIN_BY" | "MAX_BY":
            return (args[0], _where(condition, args[1]))
    return (_where(condition, args[0]), *args[1:])


class UngroupedColumnError(Exception):
    """A column of the input row where only keys and aggregates are; ``select`` finds its place."""

    def __init__(self, column: Field) -> None:
        super().__init__(column.name)
        self.column = column


class GroupRow:
    """The row of a group: its keys, then its aggregates."""

    def __init__(self, keys: tuple[Expr, ...]) -> None:
        self._keys = {
            key: Field(index, key.name if isinstance(key, Field) else f"key{index}", key.type)
            for index, key in enumerate(keys)
        }
        self._heads = {_head(key) for key in keys}

    def over(self, expr: Expr) -> Expr:
        """``expr``, given over the input row with place-holders, over the group row."""
        if _head(expr) in self._heads and expr in self._keys:
            return self._keys[expr]
        match expr:
            case Const():
                return expr
            case Field():
                if expr.index < 0:
                    return Field(len(self._keys) - 1 - expr.index, expr.name, expr.type)
                raise UngroupedColumnError(expr)
            case Call():
                return Call(expr.op, tuple(self.over(arg) for arg in expr.args), expr.type)

    def item(self, type_: Type) -> tuple[Field, Field]:
        """The two columns that TOP, FREQUENT and RECURRING put after the keys."""
        width = len(self._keys)
        return Field(width, "item", type_), Field(width + 1, "count", Type.BIGINT)


def _head(expr: Expr) -> object:
    """What is cheap to compare of an expression, before all of it is."""
    return (expr.op, len(expr.args)) if isinstance(expr, Call) else type(expr)
