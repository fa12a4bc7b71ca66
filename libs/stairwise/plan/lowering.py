"""From the rewritten tree to the query as it runs: every filter and every projection where the tree has it.

    Project ◀─ Join ON a.k = b.k ◀─┬─ Window ◀─ Narrow(k, x) ◀─ Select(x > 1) ◀─ Scan a
                                   └─ Window ◀─ Scan b

    Select      inputs      a: where x > 1, columns k, x        b: all columns
                where       a.k = b.k

A condition between a scan and its window drops rows as they come; every other one stays above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stairwise.algebra.query import Except, Input, Query, Relation, Select, Union, Widen
from stairwise.expressions.conditions import all_of, conjuncts, moved
from stairwise.expressions.tree import Expr
from stairwise.plan import logical
from stairwise.plan.logical import Plan, children, logical_plan
from stairwise.plan.rewrite import rewrite


def lowered(query: Query) -> Query:
    """The query as it runs."""
    return replace(query, relation=lowered_relation(query.relation))


def lowered_relation(relation: Relation) -> Relation:
    return _relation(relation, rewrite(logical_plan(relation)).plan)


def _relation(relation: Relation, plan: Plan) -> Relation:
    match relation, plan:
        case Select(), _:
            return _select(relation, plan)
        case ((Union() | Except()), (logical.Union() | logical.Except())):
            left, right = _relation(relation.left, plan.left), _relation(relation.right, plan.right)
            return replace(relation, left=left, right=right)
        case Widen(), logical.Project():
            return replace(relation, input=_relation(relation.input, plan.input))
        case _:
            raise TypeError(f"{type(plan).__name__} does not stand for {type(relation).__name__}")


def _select(select: Select, plan: Plan) -> Select:
    above: list[Expr] = []
    inputs, start = [], 0
    for source, stream in zip(select.inputs, _streams(_body(plan), above), strict=True):
        inputs.append(_input(source, stream, start))
        start += len(source.stream.columns)
    return replace(select, inputs=tuple(inputs), where=all_of(above) if above else None)


def _body(plan: Plan) -> Plan:
    """What a SELECT reads, below its list, its HAVING and its groups."""
    match plan:
        case logical.Distinct() | logical.Project():
            return _body(plan.input)
        case logical.Group():
            return plan.input
        case logical.Select() if isinstance(plan.input, logical.Group):
            return plan.input.input
        case _:
            return plan


def _streams(plan: Plan, above: list[Expr]) -> Iterator[Plan]:
    """What stands below each window, from left to right; ``above`` takes the conditions that stand above one."""
    match plan:
        case logical.Window():
            yield plan.input
        case logical.Join():
            yield from _streams(plan.left, above)
            yield from _streams(plan.right, above)
            if plan.condition is not None:
                above += conjuncts(plan.condition)
        case logical.Select() if not _is_stream(plan):
            yield from _streams(plan.input, above)
            above += conjuncts(plan.condition)
        case _:
            yield plan


def _is_stream(plan: Plan) -> bool:
    return not isinstance(plan, logical.Window | logical.Join) and all(map(_is_stream, children(plan)))


def _input(source: Input, stream: Plan, start: int) -> Input:
    """An input with what its stream passes through, over the stream's own columns."""
    conditions: list[Expr] = []
    columns: tuple[int, ...] | None = None
    while not isinstance(stream, logical.Scan):
        match stream:
            case logical.Select():
                conditions += conjuncts(stream.condition)
            case logical.Narrow() if columns is None:
                columns = tuple(field.index - start for field in stream.fields)
        (stream,) = children(stream)
    where = moved(all_of(conditions), -start) if conditions else None
    return replace(source, where=where, columns=columns)
