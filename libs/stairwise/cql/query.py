"""A query with every name resolved and every type known: what CQL means once the text is out of the way.

    SELECT ticker, SUM(qty) AS volume FROM trades [TUMBLE 60s] WHERE price > 10 GROUP BY ticker HAVING SUM(qty) > 9

    inputs      trades with its window          rows of the sources, side by side
    where       price > 10                      over the fields of an input row
    keys        (ticker,)                       over the fields of an input row
    aggregates  (SUM(qty),)                     arguments over the fields of an input row
    having      agg0 > 9                        over a group row: its keys, then its aggregates
    outputs     (ticker, volume)                over a group row; over an input row where nothing is grouped

Expressions are trees of three kinds of node. ``Field`` refers by position: in an input row the columns of the
first input come first, then those of the second, and so on; in a group row the keys come first, then the
aggregates. BETWEEN, searched CASE and the like arrive here spelled out in calls.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from stairwise.schema import Stream, Type
from stairwise.windows.spec import Window

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
      neg abs           BIGINT or DOUBLE
      = <> < <= > >=    two of one type, BOOLEAN out
      and or not        BOOLEAN, three-valued
      is_null           any, BOOLEAN out, never NULL
      in                the first against the others, SQL's NULL rules
      like              STRING against a constant pattern, % and _
      case              when1, then1, when2, then2, ..., else
      to_double         BIGINT, HUGEINT or TIMESTAMP to DOUBLE
      to_hugeint        BIGINT to HUGEINT
      coalesce          the first that is not NULL
      lower upper length concat floor ceil round sqrt ln exp
    """

    op: str
    args: tuple[Expr, ...]
    type: Type


Expr = Field | Const | Call


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows of a group.

    ``function`` is its name in upper case (COUNT, SUM, AVG, MIN, MAX, VARIANCE, STDDEV, QUANTILE, FIRST, LAST,
    REGR_SLOPE, REGR_INTERCEPT, APPROX_QUANTILE, APPROX_COUNT_DISTINCT, TOP, FREQUENT, APPROX_FREQUENT, RECURRING;
    MEDIAN arrives as QUANTILE at 0.5). ``args`` is empty for COUNT(*). ``parameter`` is the q of QUANTILE, the k of
    TOP and APPROX_FREQUENT or the theta of FREQUENT. ``type`` is that of the answer; of those that yield items that
    of the item.
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


@dataclass(frozen=True)
class Input:
    """A stream as a query reads it. ``window`` is None where FROM has none: append-only."""

    stream: Stream
    window: Window | None
    alias: str


@dataclass(frozen=True)
class Select:
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    where: Expr | None = None
    keys: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Expr | None = None
    distinct: bool = False

    @property
    def is_grouped(self) -> bool:
        """Does it report groups (one global group without keys) rather than rows?"""
        return bool(self.keys or self.aggregates)


@dataclass(frozen=True)
class Union:
    """UNION ALL: bag union of two relations of equal column types; names are those of ``left``."""

    left: Relation
    right: Relation

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.left.outputs


@dataclass(frozen=True)
class Except:
    """EXCEPT: multiset difference (as EXCEPT ALL of SQL); names are those of ``left``."""

    left: Relation
    right: Relation

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.left.outputs


Relation = Select | Union | Except


class Emit(enum.Enum):
    """What of its answers a query shows (the relation-to-stream operators)."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    CHANGES = "CHANGES"


@dataclass(frozen=True)
class Query:
    name: str
    relation: Relation
    emit: Emit
    text: str
    """The SELECT as its author wrote it."""
    by_lookups: bool = False
    """USING LOOKUPS: is it a standing filter, which the lookups service evaluates in a running system?"""

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams it reads, each once, in order of first mention."""
        return tuple(dict.fromkeys(i.stream for i in inputs(self.relation)))


def selects(relation: Relation) -> Iterator[Select]:
    """The SELECTs of a relation from left to right."""
    if isinstance(relation, Select):
        yield relation
    else:
        yield from selects(relation.left)
        yield from selects(relation.right)


def inputs(relation: Relation) -> Iterator[Input]:
    for select in selects(relation):
        yield from select.inputs
