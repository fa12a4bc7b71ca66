"""Aggregates and group rows: which aggregates a SELECT needs, and its expressions over the rows of groups.

While expressions are resolved, an aggregate is a field with a negative index (−1 the first, −2 the second,
...) among the fields of the input row. ``GroupRow.over`` then turns the whole into one over the group row:

    SUM(qty) / COUNT(*) + fee      keys (fee,)      aggregates (SUM(qty), COUNT(*))
    f−1      / f−2      + f3   ──▶                  f1 / f2 + f0
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stairwise.cql import ast
from stairwise.cql.coercion import Typed, is_null
from stairwise.cql.expressions import AggregateCall, ExpressionResolver
from stairwise.cql.functions import AGGREGATES, WEIGHABLE, AggregateFunction, Parameter, Takes
from stairwise.cql.literals import count, double
from stairwise.cql.source import Source
from stairwise.expressions.tree import ITEM_FUNCTIONS, Aggregate, Call, Const, Expr, Field
from stairwise.schema import Type

MAX_AGGREGATES = 500
MAX_TOP = 10_000


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
            return Aggregate("COUNT", (), Type.DOUBLE if self.weighted else Type.BIGINT)
        wanted = 2 if function.parameter else 1
        if len(call.arguments) != wanted:
            parameter = f" and {function.parameter.value}" if function.parameter else ""
            raise self.source.error(
                call.span,
                f"{name} takes {'two arguments' if function.parameter else 'one argument'}, not {len(call.arguments)}",
                expected=f"{name} of an expression{parameter}",
            )
        argument = self.arguments.typed(call.arguments[0])
        self._check(name, function, argument)
        return Aggregate(
            "QUANTILE" if name == "MEDIAN" else name,
            (argument.expr,),
            self._type(name, function, argument.expr.type),
            distinct=call.distinct,
            parameter=0.5 if name == "MEDIAN" else self._parameter(name, function, call.arguments[1:]),
        )

    def _check(self, name: str, function: AggregateFunction, argument: Typed) -> None:
        kind = argument.expr.type
        fits = {
            Takes.NUMBER: kind.is_numeric,
            Takes.ORDERED: kind is not Type.BOOLEAN,
            Takes.ANY: True,
        }[function.takes]
        if is_null(argument.expr):
            raise self.source.error(argument.span, f"{name} of NULL says nothing", expected=function.takes.value)
        if not fits:
            raise self.source.error(
                argument.span,
                f"{name} needs {function.takes.value}, and this is of type {kind.value}",
                hint="CAST(... AS DOUBLE) gives an instant's milliseconds" if kind is Type.TIMESTAMP else "",
            )

    def _type(self, name: str, function: AggregateFunction, argument: Type) -> Type:
        if self.weighted:
            return Type.DOUBLE
        if name == "SUM":
            return Type.HUGEINT if argument is Type.BIGINT else argument
        return function.result or argument

    def _parameter(self, name: str, function: AggregateFunction, arguments: tuple[ast.Expression, ...]) -> float | None:
        if function.parameter is None:
            return None
        (node,) = arguments
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
