"""The logical plan of a query: the operators that its clauses stand for, as a tree, in the order as written; what WHERE
asks stands there in its canonical form.

    SELECT ticker, SUM(qty) AS volume FROM trades [TUMBLE 60s] WHERE price > 10 GROUP BY ticker HAVING SUM(qty) > 9

    Project(ticker, volume) ◀─ Select(agg0 > 9) ◀─ Group(SUM(qty) by ticker) ◀─ Select(price > 10) ◀─ Window ◀─ Scan

Below a ``Window`` flow streams, above it relations. Rows keep their numbering: up to ``Project`` or ``Group``
a field has its place in the input row of its SELECT (all columns of all inputs), whatever columns were dropped on
the way and in whatever order inputs are joined, so that operators can be moved without renumbering.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stairwise.algebra import query as cql
from stairwise.expressions import tree
from stairwise.expressions.canonical import canonical_condition
from stairwise.expressions.conditions import moved
from stairwise.expressions.tree import Expr, Field, Output
from stairwise.schema import Stream
from stairwise.windows import spec


@dataclass(frozen=True)
class Scan:
    """A stream as it comes; ``fields`` are its columns with their places in the input row."""

    stream: Stream
    alias: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Window:
    """From a stream to the relation that the window holds."""

    input: Plan
    window: spec.Window


@dataclass(frozen=True)
class Select:
    """The rows for which the condition is true."""

    input: Plan
    condition: Expr


@dataclass(frozen=True)
class Narrow:
    """A projection that only drops columns: ``fields`` stay, with their places."""

    input: Plan
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Project:
    """The rows of the answer, numbered anew."""

    input: Plan
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Join:
    """All pairs for which the condition is true."""

    left: Plan
    right: Plan
    condition: Expr | None = None


@dataclass(frozen=True)
class Distinct:
    """Each row once: its most recent appearance."""

    input: Plan


@dataclass(frozen=True)
class Group:
    """Group rows: keys, then aggregates."""

    input: Plan
    keys: tuple[Expr, ...]
    aggregates: tuple[tree.Aggregate, ...]


@dataclass(frozen=True)
class Union:
    left: Plan
    right: Plan


@dataclass(frozen=True)
class Except:
    left: Plan
    right: Plan


Plan = Scan | Window | Select | Narrow | Project | Join | Distinct | Group | Union | Except


def logical_plan(relation: cql.Relation) -> Plan:
    """The plan as written: nothing is moved."""
    match relation:
        case cql.Select():
            return _of_select(relation)
        case cql.Union():
            return Union(logical_plan(relation.left), logical_plan(relation.right))
        case cql.Except():
            return Except(logical_plan(relation.left), logical_plan(relation.right))
        case cql.Widen():
            return Project(logical_plan(relation.input), relation.outputs)


def _of_select(select: cql.Select) -> Plan:
    first, *others = _inputs(select)
    plan: Plan = first
    for other in others:
        plan = Join(plan, other)
    where = canonical_condition(select.where)
    if where is not None:
        plan = Select(plan, where)
    if select.is_grouped:
        plan = Group(plan, select.keys, select.aggregates)
    if select.having is not None:
        plan = Select(plan, select.having)
    plan = Project(plan, select.outputs)
    return Distinct(plan) if select.distinct else plan


def _inputs(select: cql.Select) -> Iterator[Plan]:
    place = 0
    for input_ in select.inputs:
        columns = input_.stream.columns
        fields = tuple(Field(place + i, column.name, column.type) for i, column in enumerate(columns))
        place += len(columns)
        stream: Plan = Scan(input_.stream, input_.alias, fields)
        if input_.where is not None:
            stream = Select(stream, moved(input_.where, fields[0].index))
        if input_.columns is not None:
            stream = Narrow(stream, tuple(fields[i] for i in input_.columns))
        yield stream if input_.window is None else Window(stream, input_.window)


def children(plan: Plan) -> tuple[Plan, ...]:
    match plan:
        case Scan():
            return ()
        case Join() | Union() | Except():
            return (plan.left, plan.right)
        case _:
            return (plan.input,)


def scans(plan: Plan) -> Iterator[Scan]:
    """The streams that a plan reads, from left to right."""
    if isinstance(plan, Scan):
        yield plan
    for child in children(plan):
        yield from scans(child)


def windows(plan: Plan) -> Iterator[spec.Window]:
    if isinstance(plan, Window):
        yield plan.window
    for child in children(plan):
        yield from windows(child)


def reach(plan: Plan) -> frozenset[int]:
    """The places of the input row that come from the streams of a plan below ``Project`` and ``Group``."""
    return frozenset(field.index for scan in scans(plan) for field in scan.fields)
