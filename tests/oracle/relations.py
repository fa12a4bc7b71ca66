"""A query's whole answer at one moment: cross product, predicate, groups, projection, multiset operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from stairwise.cql.query import ITEM_FUNCTIONS, Except, Relation, Select, Union, Value
from stairwise.schema import Instant
from stairwise.windows.spec import MultiWindow, RelationWindow, TimeWindow
from tests.oracle.aggregates import Member, aggregate, decimal, items, known_items
from tests.oracle.expressions import evaluate, holds
from tests.oracle.rows import OracleRow
from tests.oracle.values import canonical_row, rank, ranks
from tests.oracle.windows import Moment, Rows, first_multiple, held, held_at, step_of, steps_of


@dataclass(frozen=True)
class Answer:
    """One row of an answer with its place among the others: by group key first, where it has one."""

    place: tuple[Any, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class View:
    """What an answer is computed from: all rows, the moment, the horizon, the level of a nested window."""

    rows: Mapping[str, Rows]
    moment: Moment
    horizon: Instant
    level: int = 0


def answer(relation: Relation, view: View) -> list[Answer]:
    """The multiset that the relation is at that moment, in the order of a report."""
    match relation:
        case Select():
            found = _select(relation, view)
        case Union():
            both = [*answer(relation.left, view), *answer(relation.right, view)]
            found = [_plain(row.values) for row in both]
        case Except():
            removed = Counter(row.values for row in answer(relation.right, view))
            found = [_plain(row.values) for row in answer(relation.left, view)]
            found = surplus(found, removed)
    return sorted(found, key=lambda row: row.place)


def surplus(rows: Sequence[Answer], removed: Counter[tuple[Value, ...]]) -> list[Answer]:
    """The multiset difference by value: of equal rows the first ones go."""
    left = Counter(removed)
    kept = []
    for row in rows:
        if left[row.values] > 0:
            left[row.values] -= 1
        else:
            kept.append(row)
    return kept


def _plain(values: tuple[Value, ...]) -> Answer:
    """A row without a group key: its columns alone place it."""
    return Answer(ranks(values), values)


def _select(select: Select, view: View) -> list[Answer]:
    members = [member for member in _joined(select, view) if holds(select.where, member.values)]
    if select.is_grouped:
        found = _groups(select, members, view)
    else:
        projected = (canonical_row(evaluate(o.expr, m.values) for o in select.outputs) for m in members)
        found = [_plain(values) for values in projected]
    if select.distinct:
        found = [_plain(values) for values in dict.fromkeys(row.values for row in found)]
    return found


def _joined(select: Select, view: View) -> list[Member]:
    """The cross product of what the inputs hold, in order of the pairs' times, then of the rows themselves.

    A pair's time is that of its later row: the moment at which it came about.
    """
    sides = [held(i, view.rows[i.stream.name], view.moment, view.horizon, view.level) for i in select.inputs]

    def order(rows: tuple[OracleRow, ...]) -> tuple[Any, ...]:
        return (max(row.ts for row in rows), *(row.order for row in rows))

    joined = (rows for rows in product(*sides) if _as_of_its_rows(select, rows, view))
    return [_member(select, rows, view) for rows in sorted(joined, key=order)]


def _as_of_its_rows(select: Select, rows: tuple[OracleRow, ...], view: View) -> bool:
    """Does each row of a non-retroactive relation count at the time of the streams' latest row (seed 001, def. 3.1)?"""
    pairs = list(zip(select.inputs, rows, strict=True))
    came = max(row.ts for source, row in pairs if not source.stream.is_table)
    return all(
        held_at(source, view.rows[source.stream.name], row, came)
        for source, row in pairs
        if isinstance(source.window, RelationWindow) and not source.window.retroactive
    )


def _member(select: Select, rows: tuple[OracleRow, ...], view: View) -> Member:
    values = tuple(value for row in rows for value in row.values)
    ts = max(row.ts for row in rows)
    window = select.inputs[0].window
    if not isinstance(window, MultiWindow):
        return Member(values, ts)
    step = step_of(window, view.moment.time, ts)
    weight = decimal(1.0 if window.weights is None else window.weights[step])
    return Member(values, ts, weight, step)


def _groups(select: Select, members: Sequence[Member], view: View) -> list[Answer]:
    groups: dict[tuple[Value, ...], list[Member]] = {}
    if not select.keys:
        groups[()] = []
    for member in members:
        key = canonical_row(evaluate(expr, member.values) for expr in select.keys)
        groups.setdefault(key, []).append(member)
    found = []
    for key, group in groups.items():
        for row, place in _group_rows(select, key, group, view):
            if holds(select.having, row):
                values = canonical_row(evaluate(output.expr, row) for output in select.outputs)
                found.append(Answer((*ranks(key), *place, *ranks(values)), values))
    return found


def _group_rows(
    select: Select, key: tuple[Value, ...], group: Sequence[Member], view: View
) -> list[tuple[tuple[Value, ...], tuple[Any, ...]]]:
    """The group rows of a group, each with its place inside it: one, or one per item."""
    window = select.inputs[0].window
    weighted = isinstance(window, MultiWindow) and window.weights is not None
    if select.aggregates and select.aggregates[0].function in ITEM_FUNCTIONS:
        spec = select.aggregates[0]
        if isinstance(window, TimeWindow) and spec.function == "APPROX_FREQUENT":
            ends = [first_multiple(window.slide, window.offset, member.ts + window.lag) for member in group]
            found = known_items(spec, group, ends)
        else:
            found = items(spec, group, steps_of(window, view.level))
        return [((*key, item, count), (-count, rank(item))) for item, count in found]
    answers = [aggregate(spec, group, view.moment.time, weighted) for spec in select.aggregates]
    return [((*key, *answers), ())]
