"""A SELECT with every name resolved and every type known: its inputs, conditions, groups and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from stairwise.aggregates.catalogue import AGGREGATES
from stairwise.algebra.query import Input, Select
from stairwise.cql import ast
from stairwise.cql.aggregation import AggregateCalls, GroupRow, UngroupedColumnError, refuse_aggregates
from stairwise.cql.expressions import ExpressionResolver, RepetitionBudget
from stairwise.cql.literals import count
from stairwise.cql.names import NameScope
from stairwise.cql.source import Source, Span
from stairwise.cql.window_clauses import resolve_window, window_edges
from stairwise.errors import nearest
from stairwise.expressions.conditions import all_of
from stairwise.expressions.tree import ITEM_FUNCTIONS, Aggregate, Const, Expr, Field, Output
from stairwise.schema import DIFF_COLUMN, TIME_COLUMN, UNTIL_COLUMN, Stream
from stairwise.windows.spec import LandmarkWindow, MultiWindow, RelationWindow, TimeWindow, Window

MAX_INPUTS = 8
MAX_KEYS = 32
MAX_OUTPUTS = 1_000
MAX_LIMIT = 1_000_000

LEVEL = "level"
"""The column that a multi-granular window adds in front."""

RESERVED_OUTPUTS = {
    TIME_COLUMN: "the time of the report",
    DIFF_COLUMN: "the +1 or -1 of a change",
    UNTIL_COLUMN: "the time from which a row is gone",
}
"""What clients put beside the columns of a query."""

_OUTER = {"left", "right", "full", "outer", "cross", "natural"}


def resolve_select(
    source: Source, select: ast.Select, streams: Mapping[str, Stream], ordering: ast.Ordering | None = None
) -> Select:
    return _SelectResolver(source, select, streams, ordering).resolve()


class _SelectResolver:
    def __init__(
        self, source: Source, select: ast.Select, streams: Mapping[str, Stream], ordering: ast.Ordering | None
    ) -> None:
        self._source = source
        self._ordering = ordering
        self._select = select
        self._budget = RepetitionBudget()
        self._inputs = _inputs(source, select, streams)
        self._scope = NameScope(self._inputs)
        self._aliases = {
            item.alias.name.text: item.expression
            for item in select.items
            if isinstance(item, ast.Item) and item.alias is not None
        }
        arguments = self._resolver("an aggregate", "aggregates do not nest")
        edges = window_edges(select.sources[0].window, self._inputs[0].window) if len(self._inputs) == 1 else None
        self._calls = AggregateCalls(source, arguments, weighted=_weighted(self._inputs), edges=edges)

    def resolve(self) -> Select:
        where = self._where()
        keys = self._keys()
        group_row = GroupRow(keys)
        item_call = self._item_call()
        order: tuple[tuple[Expr, bool], ...] = ()
        if item_call is not None:
            outputs, aggregates, having = self._items(item_call, group_row)
        else:
            given = list(self._given_outputs())
            having_over_rows = self._having()
            order_over_rows = self._order()
            aggregates = tuple(self._calls.found)
            if keys or aggregates:
                outputs = [(name, self._grouped(group_row, expr, node), span) for name, expr, node, span in given]
                having = self._grouped_having(group_row, having_over_rows)
                order = tuple((self._grouped(group_row, expr, node), down) for expr, node, down in order_over_rows)
            else:
                self._refuse_having()
                outputs = [(name, expr, span) for name, expr, _, span in given]
                having = None
        select = Select(
            self._inputs,
            self._named(outputs),
            where=where,
            keys=keys,
            aggregates=aggregates,
            having=having,
            distinct=self._select.distinct,
            order=order,
            limit=self._limit(),
        )
        self._check_ordering(select)
        self._check(select)
        return select

    def _resolver(self, clause: str, hint: str, scope: NameScope | None = None) -> ExpressionResolver:
        """For the expressions of a clause in which aggregates have no place."""
        refuse = refuse_aggregates(self._source, clause, hint)
        return ExpressionResolver(self._source, scope or self._scope, self._budget, refuse)

    # ── conditions and keys ─────────────────────────────────────────────────────────────────────────────

    def _where(self) -> Expr | None:
        """ON conditions, each of which sees the inputs up to its own, and WHERE."""
        conditions = []
        for index, clause in enumerate(self._select.sources):
            if clause.on is not None:
                seen = NameScope(self._inputs[: index + 1])
                conditions.append(self._resolver("ON", "write it in HAVING", seen).condition(clause.on, "ON"))
        if self._select.where is not None:
            resolver = self._resolver("WHERE", "WHERE sees single rows: write it in HAVING, which sees groups")
            conditions.append(resolver.condition(self._select.where, "WHERE"))
        return all_of(conditions) if conditions else None

    def _keys(self) -> tuple[Expr, ...]:
        hint = "group by the columns that the aggregate is over; WINDOW_START and WINDOW_END need no GROUP BY"
        refuse = refuse_aggregates(self._source, "GROUP BY", hint)
        resolver = ExpressionResolver(self._source, self._scope, self._budget, refuse, self._aliases)
        keys: dict[Expr, None] = {}
        for node in self._select.group_by:
            key = resolver.resolve(node)
            if isinstance(key, Const):
                raise self._source.error(
                    node.span,
                    "GROUP BY a constant makes one group",
                    hint="name a column, or leave GROUP BY out",
                )
            keys[key] = None
            if len(keys) > MAX_KEYS:
                raise self._source.error(node.span, f"GROUP BY has more than {MAX_KEYS} keys")
        return tuple(keys)

    def _having(self) -> Expr | None:
        if self._select.having is None:
            return None
        resolver = ExpressionResolver(self._source, self._scope, self._budget, self._calls, self._aliases)
        return resolver.condition(self._select.having, "HAVING")

    def _order(self) -> list[tuple[Expr, ast.Expression, bool]]:
        """The terms of ORDER BY over the input row (with place-holders), what was written, whether from the top."""
        if self._ordering is None:
            return []
        resolver = ExpressionResolver(self._source, self._scope, self._budget, self._calls, self._aliases)
        for term in self._ordering.terms:
            word = term.direction
            if word is not None and (word.quoted or word.text.upper() not in ("ASC", "DESC")):
                raise self._source.error(word.span, f"{word.text!r} does not fit here", expected="ASC or DESC")
        nodes = [(self._listed(term.expression), term.descending) for term in self._ordering.terms]
        terms = [(resolver.resolve(node), node, descending) for node, descending in nodes]
        for expr, node, _ in terms:
            if isinstance(expr, Const):
                raise self._source.error(
                    node.span, "ORDER BY a constant orders nothing", hint="name a column of the list"
                )
        return terms

    def _listed(self, node: ast.Expression) -> ast.Expression:
        """What a name alone stands for in ORDER BY: as in SQL, that of the list goes before a column."""
        if isinstance(node, ast.ColumnRef) and node.qualifier is None:
            return self._aliases.get(node.name.text, node)
        return node

    def _limit(self) -> int | None:
        if self._ordering is None or self._ordering.limit is None:
            return None
        return count(self._source, self._ordering.limit, "LIMIT", MAX_LIMIT)

    def _check_ordering(self, select: Select) -> None:
        """Rows that come and go would have to be counted again and again: groups are there as a whole."""
        is_item = any(aggregate.function in ITEM_FUNCTIONS for aggregate in select.aggregates)
        if self._ordering is not None and (not select.is_grouped or select.distinct or is_item):
            raise self._source.error(
                self._ordering.span,
                "ORDER BY and LIMIT choose among the groups of a report, and this SELECT shows other rows",
                expected="SELECT k, SUM(x) AS total FROM s [...] GROUP BY k ORDER BY total DESC LIMIT 10",
                hint="the order of other rows inside a report is fixed; [ROWS n] holds the last n rows",
            )

    def _grouped_having(self, group_row: GroupRow, having: Expr | None) -> Expr | None:
        if having is None or self._select.having is None:
            return None
        return self._grouped(group_row, having, self._select.having)

    def _refuse_having(self) -> None:
        if self._select.having is not None:
            raise self._source.error(
                self._select.having.span,
                "HAVING without groups",
                hint="without GROUP BY or aggregates, use WHERE",
            )

    # ── outputs ─────────────────────────────────────────────────────────────────────────────────────────

    def _given_outputs(self) -> Iterator[tuple[str, Expr, ast.Expression | None, Span]]:
        """Name, expression over the input row (with place-holders), what was written, where."""
        resolver = ExpressionResolver(self._source, self._scope, self._budget, self._calls)
        for item in self._select.items:
            if isinstance(item, ast.Star):
                wanted = None if item.qualifier is None else self._scope.input(self._source, item.qualifier)
                for _, column in self._scope.fields(wanted):
                    yield column.name, column, None, item.span
            else:
                expr = resolver.resolve(item.expression)
                yield self._name(item), expr, item.expression, _name_span(item)

    def _name(self, item: ast.Item) -> str:
        if item.alias is not None:
            return item.alias.name.text
        if isinstance(item.expression, ast.ColumnRef):
            return item.expression.name.text
        return re.sub(r"\s+", " ", self._source.slice(item.expression.span))

    def _grouped(self, group_row: GroupRow, expr: Expr, node: ast.Expression | None) -> Expr:
        try:
            return group_row.over(expr)
        except UngroupedColumnError as error:
            name = error.column.name
            span = self._select.span if node is None else self._place(node, error.column)
            raise self._source.error(
                span,
                f"column {name!r} is neither in GROUP BY nor inside an aggregate",
                hint=f"add {name} to GROUP BY, or say which of its values: LAST({name}), MIN({name}), ...",
            ) from None

    def _place(self, node: ast.Expression, column: Field) -> Span:
        """Where an expression mentions a column outside its aggregates."""
        for reference in _bare_columns(node):
            if self._scope.find(reference.name.text) and self._scope.resolve(self._source, reference) == column:
                return reference.span
        return node.span

    def _named(self, outputs: Iterable[tuple[str, Expr, Span]]) -> tuple[Output, ...]:
        """The outputs under their names, of which no two may be equal."""
        levels = any(map(_has_levels, self._inputs))
        seen = {LEVEL} if levels else set()
        named = []
        for name, expr, span in outputs:
            if name in RESERVED_OUTPUTS:
                raise self._source.error(
                    span,
                    f"a column of a result cannot be called {name!r}: {RESERVED_OUTPUTS[name]} stands under that name",
                    hint=f"give it another name with AS, as {name.lstrip('_')}",
                )
            if name in seen:
                raise self._source.error(
                    span,
                    "a window with several levels adds a column 'level' by itself"
                    if levels and name == LEVEL
                    else f"two columns are called {name!r}",
                    hint=f"give this one a name of its own with AS, as {_fresh(name, seen)}",
                )
            seen.add(name)
            named.append(Output(name, expr))
            if len(named) > MAX_OUTPUTS:
                raise self._source.error(span, f"a SELECT has at most {MAX_OUTPUTS:,} columns")
        return tuple(named)

    # ── TOP, FREQUENT, RECURRING ────────────────────────────────────────────────────────────────────────

    def _item_call(self) -> ast.FunctionCall | None:
        for item in self._select.items:
            if isinstance(item, ast.Item) and isinstance(item.expression, ast.FunctionCall):
                call = item.expression
                if call.name.text.upper() in ITEM_FUNCTIONS:
                    if item.alias is not None:
                        raise self._source.error(
                            item.alias.name.span,
                            f"{call.name.text.upper()} yields two columns, item and count: it takes no alias",
                        )
                    return call
        return None

    def _items(
        self, call: ast.FunctionCall, group_row: GroupRow
    ) -> tuple[list[tuple[str, Expr, Span]], tuple[Aggregate, ...], Expr | None]:
        aggregate = self._calls.resolve(call)
        item, count = group_row.item(aggregate.type)
        if self._select.having is not None:
            raise self._source.error(
                self._select.having.span,
                f"HAVING has no place beside {aggregate.function}",
                hint="choose the items by the second argument, or the rows by WHERE",
            )
        outputs: list[tuple[str, Expr, Span]] = []
        alone = refuse_aggregates(
            self._source, f"a list with {aggregate.function}", "only group keys may stand beside it"
        )
        resolver = ExpressionResolver(self._source, self._scope, self._budget, alone)
        for entry in self._select.items:
            if isinstance(entry, ast.Star):
                raise self._source.error(entry.span, f"only group keys may stand beside {aggregate.function}")
            if entry.expression is call:
                outputs += [("item", item, call.span), ("count", count, call.span)]
                continue
            key = self._grouped(group_row, resolver.resolve(entry.expression), entry.expression)
            outputs.append((self._name(entry), key, _name_span(entry)))
        return outputs, (aggregate,), None

    # ── what fits together ──────────────────────────────────────────────────────────────────────────────

    def _check(self, select: Select) -> None:
        sources = self._select.sources
        windowed = [i.window is not None for i in select.inputs]
        if any(windowed) and not all(windowed):
            clause = sources[windowed.index(False)]
            raise self._source.error(
                clause.stream.span,
                f"{clause.stream.text!r} has no window while another input has one",
                hint=f"{clause.stream.text} [RANGE 60 SECONDS], or [NOW] for the rows of the moment",
            )
        if not any(windowed):
            self._check_append_only(select)
        if all(isinstance(i.window, RelationWindow) for i in select.inputs):
            table = sources[0].stream
            raise self._source.error(
                table.span,
                f"a table alone never reports: {table.text!r} has no report times",
                hint=f"join it with a stream: FROM trades [RANGE 60 SECONDS] JOIN {table.text} ON ...",
            )
        if any(aggregate.function == "APPROX_FREQUENT" for aggregate in select.aggregates):
            self._check_sub_windows(select)
        has_steps = isinstance(select.inputs[0].window, MultiWindow)
        if any(aggregate.function == "RECURRING" for aggregate in select.aggregates) and not has_steps:
            raise self._source.error(
                sources[0].stream.span,
                "RECURRING looks for what comes back at every level, and this window has none",
                expected="[RANGES 1 DAY, 1 HOUR SLIDES 1 HOUR, 1 MINUTE], two levels or more",
                hint="TOP(x, k) and FREQUENT(x, theta) tell what is frequent in any window",
            )
        for clause, input_ in zip(sources, select.inputs, strict=True):
            if clause.window is None:
                continue
            if isinstance(input_.window, LandmarkWindow):
                self._check_landmark(select, input_.window, clause.window.span)
            if isinstance(input_.window, MultiWindow):
                self._check_multi(select, input_.window, clause.window.span)

    def _check_append_only(self, select: Select) -> None:
        what = ""
        if select.is_grouped:
            what = "aggregates and GROUP BY"
        elif len(select.inputs) > 1:
            what = "a join"
        elif select.distinct:
            what = "DISTINCT"
        if what:
            stream = self._select.sources[0].stream
            raise self._source.error(
                stream.span,
                f"{what} without a window would have to remember the whole stream",
                hint=f"give it a window: FROM {stream.text} [RANGE 60 SECONDS SLIDE 10 SECONDS]",
            )

    def _check_sub_windows(self, select: Select) -> None:
        """Its sub-windows are one slide long, and the window is made of them."""
        window = select.inputs[0].window
        if len(select.inputs) > 1 or not isinstance(window, TimeWindow) or window.range % window.slide:
            raise self._source.error(
                self._select.sources[0].stream.span,
                "APPROX_FREQUENT counts by sub-windows of one slide, and these windows are not made of them",
                expected="one window [RANGE w SLIDE b] with w a multiple of b",
                hint="FREQUENT(x, theta) and TOP(x, k) are exact over every window",
            )

    def _check_landmark(self, select: Select, window: LandmarkWindow, span: Span) -> None:
        folds = select.is_grouped and len(select.inputs) == 1
        if window.retain is None and not folds:
            raise self._source.error(
                span,
                "a landmark window grows without end, and this query needs its rows",
                hint="say how many of the latest to keep: [FROM ... RETAIN 1000 ROWS]; or aggregate",
            )
        if window.retain is not None and folds:
            raise self._source.error(
                span, "RETAIN keeps rows, and this query keeps aggregates only", hint="leave RETAIN out"
            )

    def _check_multi(self, select: Select, window: MultiWindow, span: Span) -> None:
        if len(select.inputs) > 1:
            raise self._source.error(
                span,
                "a window with several levels has no place in a join",
                hint="join over the level you need",
            )
        if window.weights is not None and not select.aggregates:
            raise self._source.error(span, "WEIGHTED BY needs an aggregate", hint="COUNT, SUM or AVG")


def _inputs(source: Source, select: ast.Select, streams: Mapping[str, Stream]) -> tuple[Input, ...]:
    if len(select.sources) > MAX_INPUTS:
        raise source.error(select.sources[MAX_INPUTS].stream.span, f"a join has at most {MAX_INPUTS} inputs")
    inputs: list[Input] = []
    for clause in select.sources:
        stream = streams.get(clause.stream.text)
        if stream is None:
            raise source.error(
                clause.stream.span,
                f"there is no stream {clause.stream.text!r}",
                hint=nearest(clause.stream.text, streams, "stream"),
            )
        name = _own_name(clause.stream) if clause.alias is None else clause.alias.name
        if clause.alias is not None and not clause.alias.explicit and name.text.lower() in _OUTER and not name.quoted:
            raise source.error(
                name.span,
                f"there is no {name.text.upper()} JOIN",
                hint="joins are inner: write JOIN ... ON ...",
            )
        if any(i.alias == name.text for i in inputs):
            raise source.error(
                name.span,
                f"two inputs are called {name.text!r}",
                hint=f"name it otherwise: {clause.stream.text} [...] AS {_fresh(name.text, {name.text})}",
            )
        inputs.append(Input(stream, _window(source, clause, stream), name.text))
    return tuple(inputs)


def _own_name(stream: ast.Name) -> ast.Name:
    """What a stream is called in the SELECT: its name without the namespace."""
    return ast.Name(stream.text.rpartition(".")[2], stream.span, stream.quoted)


def _window(source: Source, clause: ast.SourceClause, stream: Stream) -> Window | None:
    """The window of an input. A table has none to write: its state is what has a place in a join."""
    if not stream.is_table:
        return None if clause.window is None else resolve_window(source, clause.window, stream)
    if clause.window is not None:
        raise source.error(
            clause.window.span,
            f"{stream.name!r} is a table, which has no window",
            hint=f"write JOIN {stream.name} ON ...: of each key the last row counts",
        )
    return RelationWindow(stream.keys, stream.retroactive)


def _name_span(item: ast.Item) -> Span:
    """Where the name of a column comes from."""
    return item.expression.span if item.alias is None else item.alias.name.span


def _weighted(inputs: tuple[Input, ...]) -> bool:
    return any(isinstance(i.window, MultiWindow) and i.window.weights is not None for i in inputs)


def _has_levels(input_: Input) -> bool:
    return isinstance(input_.window, MultiWindow) and input_.window.horizon is None


def _fresh(name: str, taken: set[str]) -> str:
    base = name if name.isidentifier() else "x"
    return next(f"{base}{n}" for n in range(2, len(taken) + 3) if f"{base}{n}" not in taken)


def _bare_columns(node: object) -> Iterator[ast.ColumnRef]:
    """The column references of an expression outside aggregates, from left to right."""
    if isinstance(node, ast.ColumnRef):
        yield node
    elif isinstance(node, ast.FunctionCall) and node.name.text.upper() in AGGREGATES:
        return
    elif isinstance(node, tuple):
        for part in node:
            yield from _bare_columns(part)
    elif is_dataclass(node) and not isinstance(node, (ast.Name, Span)):
        for part in fields(node):
            yield from _bare_columns(getattr(node, part.name))
