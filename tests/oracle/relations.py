"""Relations as written, read into their columns and their whole answer at a moment, by one recursion over the tree.

SELECT: cross product, condition, groups, projection, DISTINCT. UNION ALL and EXCEPT: both sides in the types in which
their columns meet, then the sum or the difference of multisets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from stairwise.cql import ast
from stairwise.cql.source import Source
from stairwise.schema import Instant, Type
from tests.oracle.aggregates import EDGES, ITEMS, Aggregate, Member, aggregate, items, known_items, read_aggregate
from tests.oracle.expressions import Column, Reader, Typed, common_type, widened
from tests.oracle.rows import OracleRow
from tests.oracle.streams import Stream
from tests.oracle.values import Value, canonical, canonical_row, rank, ranks
from tests.oracle.windows import (
    Moment,
    Rows,
    Window,
    first_multiple,
    held,
    last_of_each,
    read_window,
    step_of,
    steps_of,
)


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


@dataclass(frozen=True)
class Input:
    """A stream or a table in FROM."""

    name: str
    stream: Stream
    window: Window

    @property
    def columns(self) -> list[Column]:
        return [Column(self.name, name, type_) for name, type_ in self.stream.columns]

    def held(self, view: View) -> Rows:
        rows = held(self.window, view.rows[self.stream.name], view.moment, view.level)
        return rows if self.stream.is_table else [row for row in rows if row.ts > view.horizon]

    def held_at(self, view: View, time: Instant) -> Rows:
        """Of a table, the last row of each key at a time."""
        updates = [row for row in view.rows[self.stream.name] if row.ts <= time]
        return last_of_each(updates, self.stream.places(self.stream.keys), 1)


def read_relation(node: ast.Relation, source: Source, streams: Mapping[str, Stream]) -> Select | SetOperation:
    if isinstance(node, ast.Select):
        return Select(node, source, streams)
    left, right = (read_relation(side, source, streams) for side in (node.left, node.right))
    return SetOperation(node.op, left, right)


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


# ── UNION ALL, EXCEPT ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class SetOperation:
    op: str
    left: Select | SetOperation
    right: Select | SetOperation
    is_grouped = False

    @property
    def inputs(self) -> list[Input]:
        return [*self.left.inputs, *self.right.inputs]

    @cached_property
    def columns(self) -> list[tuple[str, Type | None]]:
        """The names of the left side, each with the type in which both sides meet."""
        pairs = zip(self.left.columns, self.right.columns, strict=True)
        return [(name, common_type([ours, theirs])) for (name, ours), (_, theirs) in pairs]

    def answer(self, view: View) -> list[Answer]:
        ours, theirs = (self._widened(side.answer(view)) for side in (self.left, self.right))
        found = [*ours, *theirs] if self.op == "UNION" else surplus(ours, Counter(row.values for row in theirs))
        return sorted(found, key=lambda row: row.place)

    def _widened(self, rows: Sequence[Answer]) -> list[Answer]:
        types = [type_ for _, type_ in self.columns]
        return [_plain(tuple(map(widened, row.values, types))) for row in rows]


# ── SELECT ──────────────────────────────────────────────────────────────────────────────────────────────


class Select:
    """A SELECT. The rows of its groups are the first row of each, then the aggregates.

    What stands outside aggregates is the same for all rows of a group, so the first one tells.
    """

    def __init__(
        self, node: ast.Select, source: Source, streams: Mapping[str, Stream], ordering: ast.Ordering | None = None
    ) -> None:
        self.inputs = [_input(clause, streams) for clause in node.sources]
        self._levels = self.inputs[0].window.levels
        self._is_weighted = self._levels is not None and self._levels.weights is not None
        self._distinct = node.distinct
        self._columns = [column for one in self.inputs for column in one.columns]
        self._aggregates: list[Aggregate] = []
        named = [i for i in node.items if isinstance(i, ast.Item) and i.alias is not None]
        aliases = {item.alias.name.text: item.expression for item in named}  # type: ignore[union-attr]
        self._conditions = list(self._read_conditions(node))
        self._keys = [Reader(self._columns, aliases).read(key) for key in node.group_by]
        self._outputs = [output for item in node.items for output in self._read_item(item, source)]
        having = Reader(self._columns, aliases, self._aggregate)
        self._having = None if node.having is None else having.read(node.having)
        terms = () if ordering is None else ordering.terms
        self._order = [(having.read(_listed(term.expression, aliases)), term.descending) for term in terms]
        self._limit = None if ordering is None or ordering.limit is None else int(ordering.limit.text)
        self.is_grouped = bool(self._keys or self._aggregates)
        self.columns = [(name, output.type) for name, output in self._outputs]

    def _read_conditions(self, node: ast.Select) -> Iterator[Typed]:
        """Each ON sees the inputs up to its own, WHERE all of them."""
        for number, clause in enumerate(node.sources, start=1):
            if clause.on is not None:
                seen = [column for one in self.inputs[:number] for column in one.columns]
                yield Reader(seen).read(clause.on)
        if node.where is not None:
            yield Reader(self._columns).read(node.where)

    def _aggregate(self, call: ast.FunctionCall) -> Typed | None:
        """An aggregate's value behind the columns of its group's first row; None if the call is no aggregate."""
        name, edges = call.name.text.upper(), self.inputs[0].window.edges
        found: Aggregate | None
        if name in EDGES and edges is not None:
            found = Aggregate(name, None, Type.TIMESTAMP, parameter=Fraction(edges[EDGES.index(name)]))
        else:
            found = read_aggregate(call, Reader(self._columns), self._is_weighted)
        if found is None:
            return None
        place = len(self._columns) + len(self._aggregates)
        self._aggregates.append(found)
        return Typed(found.type, lambda row: row[place])

    def _read_item(self, item: ast.Item | ast.Star, source: Source) -> list[tuple[str, Typed]]:
        """Names and expressions of what an entry of the list shows."""
        if isinstance(item, ast.Star):
            of = None if item.qualifier is None else item.qualifier.text
            shown = [(place, column) for place, column in enumerate(self._columns) if of in (None, column.of)]
            return [(column.name, _at(place, column.type)) for place, column in shown]
        typed = Reader(self._columns, aggregate=self._aggregate).read(item.expression)
        if isinstance(item.expression, ast.FunctionCall) and item.expression.name.text.upper() in ITEMS:
            return [("item", typed), ("count", _at(len(self._columns) + 1, Type.BIGINT))]
        return [(_name(item, source), typed)]

    def answer(self, view: View) -> list[Answer]:
        """The multiset that it is at that moment, in the order of a report."""
        members = [m for m in self._joined(view) if all(c.of(m.values) is True for c in self._conditions)]
        if self.is_grouped:
            found = list(self._groups(members, view))
        else:
            found = [_plain(self._shown(member.values)) for member in members]
        if self._distinct:
            found = [_plain(values) for values in dict.fromkeys(row.values for row in found)]
        return sorted(found, key=lambda row: row.place)[: self._limit]

    def _shown(self, row: Sequence[Value]) -> tuple[Value, ...]:
        return canonical_row(output.of(row) for _, output in self._outputs)

    def _joined(self, view: View) -> list[Member]:
        """The cross product of what the inputs hold, in order of the pairs' times, then of the rows themselves.

        A pair's time is that of its later row: the moment at which it came about.
        """

        def order(rows: tuple[OracleRow, ...]) -> tuple[Any, ...]:
            return (max(row.ts for row in rows), *(row.order for row in rows))

        joined = [rows for rows in product(*(one.held(view) for one in self.inputs)) if self._is_as_of(rows, view)]
        return [self._member(rows, view) for rows in sorted(joined, key=order)]

    def _is_as_of(self, rows: tuple[OracleRow, ...], view: View) -> bool:
        """Does each row of a non-retroactive table count at the time of the streams' latest row (seed 001, 3.1)?"""
        fixed = [(one, row) for one, row in zip(self.inputs, rows, strict=True) if not one.stream.retroactive]
        if not fixed:
            return True
        came = max(row.ts for one, row in zip(self.inputs, rows, strict=True) if not one.stream.is_table)
        return all(row in one.held_at(view, came) for one, row in fixed)

    def _member(self, rows: tuple[OracleRow, ...], view: View) -> Member:
        values = tuple(value for row in rows for value in row.values)
        ts = max(row.ts for row in rows)
        if self._levels is None:
            return Member(values, ts)
        step = step_of(self._levels, view.moment.time, ts)
        return Member(values, ts, self._levels.weights[step] if self._levels.weights else Fraction(1), step)

    def _groups(self, members: Sequence[Member], view: View) -> Iterator[Answer]:
        groups: dict[tuple[Value, ...], list[Member]] = {} if self._keys else {(): []}
        for member in members:
            groups.setdefault(canonical_row(key.of(member.values) for key in self._keys), []).append(member)
        for key, group in groups.items():
            first = group[0].values if group else (None,) * len(self._columns)
            for told, place in self._told(group, view):
                row = (*first, *told)
                if self._having is None or self._having.of(row) is True:
                    values = self._shown(row)
                    by = [_standing(rank(canonical(term.of(row))), down) for term, down in self._order]
                    yield Answer((*by, *ranks(key), *place, *ranks(values)), values)

    def _told(self, group: Sequence[Member], view: View) -> list[tuple[tuple[Value, ...], tuple[Any, ...]]]:
        """What the aggregates say of a group, once or for each item, and its place inside the group."""
        if not self._aggregates or self._aggregates[0].function not in ITEMS:
            return [(tuple(aggregate(a, group, view.moment.time, self._is_weighted) for a in self._aggregates), ())]
        (asked,), window = self._aggregates, self.inputs[0].window
        if asked.function == "APPROX_FREQUENT":
            ends = [first_multiple(*window.grids[0], member.ts + window.lag) for member in group]
            found = known_items(asked, group, ends)
        else:
            found = items(asked, group, steps_of(window.levels, view.level))
        return [((item, count), (-count, rank(item))) for item, count in found]


@dataclass(frozen=True)
class _Descending:
    """A rank that stands the other way round."""

    rank: tuple[Any, ...]

    def __lt__(self, other: _Descending) -> bool:
        return other.rank < self.rank


def _listed(node: ast.Expression, aliases: Mapping[str, ast.Expression]) -> ast.Expression:
    """In ORDER BY a name of the list goes before a column."""
    is_name = isinstance(node, ast.ColumnRef) and node.qualifier is None
    return aliases.get(node.name.text, node) if is_name else node  # type: ignore[union-attr]


def _standing(rank_: tuple[Any, ...], descending: bool) -> Any:
    return _Descending(rank_) if descending else rank_


def _input(clause: ast.SourceClause, streams: Mapping[str, Stream]) -> Input:
    stream = streams[clause.stream.text]
    name = clause.stream if clause.alias is None else clause.alias.name
    return Input(name.text, stream, read_window(clause.window, stream))


def _at(place: int, type_: Type | None) -> Typed:
    return Typed(type_, lambda row: row[place])


def _name(item: ast.Item, source: Source) -> str:
    """What a column is called: by AS, by the column's own name, or by the expression's text in single spaces."""
    if item.alias is not None:
        return item.alias.name.text
    if isinstance(item.expression, ast.ColumnRef):
        return item.expression.name.text
    return re.sub(r"\s+", " ", source.slice(item.expression.span))
