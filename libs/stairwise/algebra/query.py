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

from stairwise.expressions.tree import Aggregate, Expr, Output
from stairwise.schema import Stream
from stairwise.windows.spec import MultiWindow, TimeWindow, Window


@dataclass(frozen=True)
class Input:
    """A stream as a query reads it. ``window`` is None where FROM has none: append-only.

    The planner says what happens below the window: ``where`` drops rows as they come (over the stream's own columns),
    and ``columns`` are the places of those that anything above asks for; None: all of them.
    """

    stream: Stream
    window: Window | None
    alias: str
    where: Expr | None = None
    columns: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Select:
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    where: Expr | None = None
    keys: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order: tuple[tuple[Expr, bool], ...] = ()
    """Of ORDER BY, over the group row: by what the rows of a report stand, and whether from the greatest down."""
    limit: int | None = None
    """Of LIMIT: how many of them a report has at the most."""

    @property
    def is_grouped(self) -> bool:
        """Does it report groups (one global group without keys) rather than rows?"""
        return bool(self.keys or self.aggregates)

    @property
    def is_ordered(self) -> bool:
        """Does it have ORDER BY or LIMIT, so that its rows depend on each other?"""
        return bool(self.order) or self.limit is not None


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


@dataclass(frozen=True)
class Widen:
    """The rows of DISTINCT or EXCEPT in the wider types of the set operation around it: they were compared as they are.

    ``outputs`` are over the rows of ``input``. Everything else is widened where its outputs are computed.
    """

    input: Relation
    outputs: tuple[Output, ...]


Relation = Select | Union | Except | Widen


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
    match relation:
        case Select():
            yield relation
        case Widen():
            yield from selects(relation.input)
        case Union() | Except():
            yield from selects(relation.left)
            yield from selects(relation.right)


def inputs(relation: Relation) -> Iterator[Input]:
    for select in selects(relation):
        yield from select.inputs


def time_windows(select: Select) -> list[TimeWindow] | None:
    """The windows of a join of time windows; None where it is none."""
    windows = [source.window for source in select.inputs]
    found = [window for window in windows if isinstance(window, TimeWindow)]
    return found if len(found) == len(windows) > 1 else None


def levels_of(query: Query) -> MultiWindow | None:
    """The window whose levels a query reports, where it has one."""
    windows = (source.window for source in inputs(query.relation))
    return next((w for w in windows if isinstance(w, MultiWindow) and w.horizon is None), None)
