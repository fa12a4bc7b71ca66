"""Expressions as trees: a field, a literal, a call, and an aggregate over them.

``Field`` refers by position to the row that the expression is evaluated over. BETWEEN, searched CASE and the like
arrive here spelled out in calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.schema import Type

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Field:
    """The value at ``index`` of the row that the expression is evaluated over."""

    index: int
    name: str
    type: Type


@dataclass(frozen=True)
class Const:
    """A literal. NULL has the type that its surroundings ask for."""

    value: Value
    type: Type


@dataclass(frozen=True)
class Call:
    """An operator or scalar function over its arguments, which have exactly the types that it takes.

    ``op`` is one of
      + - * /  %        two BIGINT or two DOUBLE, same type out; ``/`` and ``%`` by zero and overflow give NULL
                        (BIGINT division truncates toward zero, ``%`` takes the sign of the dividend)
      neg               BIGINT or DOUBLE
      = <> < <= > >=    two of one type, BOOLEAN out
      and or not        BOOLEAN, three-valued
      is_null           any, BOOLEAN out, never NULL
      in                the first against the others, SQL's NULL rules
      like              STRING against a constant pattern, % and _
      case              when1, then1, when2, then2, ..., else
      to_double         BIGINT, HUGEINT or TIMESTAMP to DOUBLE
      to_hugeint        BIGINT to HUGEINT
      excess            BIGINT or HUGEINT: 1 above its nearest DOUBLE, -1 below it, 0 where it is one
      coalesce          the first that is not NULL
      cast_a_b          from one type to another (``casts``)
      or the name of a function in lower case (``functions``)
    """

    op: str
    args: tuple[Expr, ...]
    type: Type


Expr = Field | Const | Call


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows of a group.

    ``function`` is its name in upper case, as ``aggregates.catalogue`` has it; MEDIAN arrives as QUANTILE at 0.5,
    COUNT_IF as COUNT. ``args`` is empty for COUNT(*). ``parameter`` is the q of QUANTILE, the k of TOP and
    APPROX_FREQUENT, the theta of FREQUENT, or how far before the report WINDOW_START lies. ``type`` is that of the
    answer; of those that yield items that of the item.
    """

    function: str
    args: tuple[Expr, ...]
    type: Type
    distinct: bool = False
    parameter: float | None = None


ITEM_FUNCTIONS = frozenset({"TOP", "FREQUENT", "APPROX_FREQUENT", "RECURRING"})
"""Aggregates that yield one row per item; the group row is then: keys, item, count."""


@dataclass(frozen=True)
class Output:
    name: str
    expr: Expr

    @property
    def type(self) -> Type:
        return self.expr.type
