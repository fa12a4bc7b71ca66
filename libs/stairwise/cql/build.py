"""From grammar rules to syntax nodes: one method per rule of grammar.lark, called by Lark as it reduces.

Nothing here can fail and nothing recurses: what a piece of text is worth is decided later, with the text at
hand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lark import Token, Transformer, v_args

from stairwise.cql import ast
from stairwise.cql.source import Span

_GLUED = re.compile(r"([\d.]+)(.*)")


def _span(token: Token) -> Span:
    start = token.start_pos or 0
    return Span(start, start + len(token))


@v_args(inline=True)
class SyntaxBuilder(Transformer[Token, Any]):
    # ── names and literals ──────────────────────────────────────────────────────────────────────────────

    def name(self, token: Token) -> ast.Name:
        if token.type == "QUOTED":
            return ast.Name(token[1:-1].replace('""', '"'), _span(token), quoted=True)
        return ast.Name(str(token), _span(token))

    column_name = type_name = option_name = key_name = granted_name = quota_name = name

    def thing(self, first: Token, second: Token | None) -> ast.Name:
        """The name of a stream, table or query; one in a namespace is called ``namespace.name``."""
        if second is None:
            return self.name(first)
        namespace, name = self.name(first), self.name(second)
        return ast.Name(f"{namespace.text}.{name.text}", namespace.span.to(name.span), name.quoted)

    altered_thing = granted_thing = thing

    def number(self, token: Token) -> ast.Number:
        return ast.Number(str(token), _span(token))

    integer = number

    def negative(self, minus: Token, number: ast.Number) -> ast.Number:
        return ast.Number("-" + number.text, _span(minus).to(number.span))

    negative_integer = negative

    def string(self, token: Token) -> ast.String:
        return ast.String(token[1:-1].replace("''", "'"), _span(token))

    def timestamp(self, type_: ast.Name, token: Token) -> ast.TypedString:
        text = self.string(token)
        return ast.TypedString(type_, text, type_.span.to(text.span))

    instant_string = string

    def typed_instant(self, keyword: Token, token: Token) -> ast.TypedString:
        return self.timestamp(ast.Name(str(keyword), _span(keyword)), token)

    def true(self, token: Token) -> ast.Boolean:
        return ast.Boolean(True, _span(token))

    def false(self, token: Token) -> ast.Boolean:
        return ast.Boolean(False, _span(token))

    def null(self, token: Token) -> ast.Null:
        return ast.Null(_span(token))

    def glued_duration(self, token: Token) -> ast.Duration:
        match = _GLUED.fullmatch(token)
        assert match is not None, "the terminal DURATION is digits and a unit"
        return ast.Duration(match[1], match[2], _span(token))

    def spelled_duration(self, count: Token, unit: Token) -> ast.Duration:
        return ast.Duration(str(count), str(unit), _span(count).to(_span(unit)))

    def glued_size(self, token: Token) -> ast.Size:
        match = _GLUED.fullmatch(token)
        assert match is not None, "the terminal SIZE is digits and a unit"
        return ast.Size(match[1], match[2], _span(token))

    def spelled_size(self, count: Token, unit: Token) -> ast.Size:
        return ast.Size(str(count), str(unit), _span(count).to(_span(unit)))

    def durations(self, *durations: ast.Duration) -> tuple[ast.Duration, ...]:
        return durations

    # ── expressions ─────────────────────────────────────────────────────────────────────────────────────

    def disjunction(self, *operands: ast.Expression) -> ast.Logical:
        return ast.Logical("OR", operands, operands[0].span.to(operands[-1].span))

    def conjunction(self, *operands: ast.Expression) -> ast.Logical:
        return ast.Logical("AND", operands, operands[0].span.to(operands[-1].span))

    def not_(self, token: Token, operand: ast.Expression) -> ast.Unary:
        return ast.Unary("NOT", operand, _span(token).to(operand.span))

    def sign(self, token: Token, operand: ast.Expression) -> ast.Unary:
        return ast.Unary(str(token), operand, _span(token).to(operand.span))

    def binary(self, left: ast.Expression, op: Token, right: ast.Expression) -> ast.Binary:
        return ast.Binary("<>" if op == "!=" else str(op), left, right, left.span.to(right.span))

    def is_null(self, operand: ast.Expression, null: Token) -> ast.IsNull:
        return ast.IsNull(operand, False, operand.span.to(_span(null)))

    def is_not_null(self, operand: ast.Expression, null: Token) -> ast.IsNull:
        return ast.IsNull(operand, True, operand.span.to(_span(null)))

    def between(self, operand: ast.Expression, low: ast.Expression, high: ast.Expression) -> ast.Between:
        return ast.Between(operand, low, high, False, operand.span.to(high.span))

    def not_between(self, operand: ast.Expression, low: ast.Expression, high: ast.Expression) -> ast.Between:
        return ast.Between(operand, low, high, True, operand.span.to(high.span))

    def in_list(self, operand: ast.Expression, items: tuple[ast.Expression, ...], close: Token) -> ast.InList:
        return ast.InList(operand, items, False, operand.span.to(_span(close)))

    def not_in_list(self, operand: ast.Expression, items: tuple[ast.Expression, ...], close: Token) -> ast.InList:
        return ast.InList(operand, items, True, operand.span.to(_span(close)))

    def like(self, operand: ast.Expression, pattern: ast.Expression) -> ast.Like:
        return ast.Like(operand, pattern, False, operand.span.to(pattern.span))

    def not_like(self, operand: ast.Expression, pattern: ast.Expression) -> ast.Like:
        return ast.Like(operand, pattern, True, operand.span.to(pattern.span))

    def column(self, name: ast.Name) -> ast.ColumnRef:
        return ast.ColumnRef(None, name, name.span)

    def qualified_column(self, qualifier: ast.Name, name: ast.Name) -> ast.ColumnRef:
        return ast.ColumnRef(qualifier, name, qualifier.span.to(name.span))

    def arguments(self, *arguments: ast.Expression) -> tuple[ast.Expression, ...]:
        return arguments

    def call_without_arguments(self, name: ast.Name, close: Token) -> ast.FunctionCall:
        return ast.FunctionCall(name, (), name.span.to(_span(close)))

    def call_of_star(self, name: ast.Name, star: Token, close: Token) -> ast.FunctionCall:
        return ast.FunctionCall(name, (), name.span.to(_span(close)), star=True)

    def call(self, name: ast.Name, arguments: tuple[ast.Expression, ...], close: Token) -> ast.FunctionCall:
        return ast.FunctionCall(name, arguments, name.span.to(_span(close)))

    def call_distinct(self, name: ast.Name, arguments: tuple[ast.Expression, ...], close: Token) -> ast.FunctionCall:
        return ast.FunctionCall(name, arguments, name.span.to(_span(close)), distinct=True)

    def cast(self, function: ast.Name, operand: ast.Expression, type_: ast.Name, close: Token) -> ast.Cast:
        return ast.Cast(function, operand, type_, function.span.to(_span(close)))

    def short_cast(self, operand: ast.Expression, type_: ast.Name) -> ast.Cast:
        span = operand.span.to(type_.span)
        return ast.Cast(ast.Name("CAST", span), operand, type_, span)

    def extract(self, name: ast.Name, field: ast.Name, operand: ast.Expression, close: Token) -> ast.FunctionCall:
        what = ast.String(field.text, field.span)
        return ast.FunctionCall(name, (what, operand), name.span.to(_span(close)), by_from=True)

    def filtered(
        self, call: ast.FunctionCall, filter_: Token, condition: ast.Expression, close: Token
    ) -> ast.FunctionCall:
        return replace(call, filter=condition, span=call.span.to(_span(close)))

    def parenthesised(self, open_: Token, inner: ast.Expression, close: Token) -> ast.Expression:
        """The same expression; only its text is longer."""
        return replace(inner, span=_span(open_).to(_span(close)))

    def when(self, condition: ast.Expression, result: ast.Expression) -> ast.When:
        return ast.When(condition, result, condition.span.to(result.span))

    def case(self, case: Token, operand: ast.Expression | None, *rest: Any) -> ast.Case:
        *whens, otherwise, end = rest
        return ast.Case(operand, tuple(whens), otherwise, _span(case).to(_span(end)))

    # ── windows ─────────────────────────────────────────────────────────────────────────────────────────

    def option(self, keyword: Token, value: Any = None) -> ast.Option:
        span = _span(keyword)
        return ast.Option(keyword.upper(), value, span if value is None else span.to(value.span))

    slide = row_slide = lag = row_lag = offset = left_closed = retain = option
    lateness = idle_after = partition_by = partitions = granule = live = future = reject = option
    retroactive = lateness_default = idle_default = retain_default = option

    def time_unit(self, word: Token) -> ast.Name:
        return ast.Name(word.upper(), _span(word))

    def timestamp_by(self, keyword: Token, name: ast.Name, unit: ast.Name | None) -> ast.Option:
        span = name.span if unit is None else name.span.to(unit.span)
        return self.option(keyword, ast.TimeColumn(name, unit, span))

    def unlimited(self, word: Token) -> ast.Unlimited:
        return ast.Unlimited(_span(word))

    def retain_past(self, keyword: Token, *bounds: ast.Duration | ast.Size | None) -> ast.Option:
        given = [bound for bound in bounds if bound is not None]
        time = next((bound for bound in given if isinstance(bound, ast.Duration)), None)
        size = next((bound for bound in given if isinstance(bound, ast.Size)), None)
        return self.option(keyword, ast.Retention(time, size, given[0].span.to(given[-1].span)))

    def key(self, keyword: Token, *names: ast.Name) -> ast.Option:
        return ast.Option("KEY", names, _span(keyword).to(names[-1].span))

    def window(self, open_: Token, clause: ast.WindowClause, close: Token) -> ast.WindowClause:
        return replace(clause, span=_span(open_).to(_span(close)))

    def range_window(self, range_: ast.Duration, *options: ast.Option) -> ast.RangeClause:
        return ast.RangeClause(range_, options, range_.span)

    def tumbling_window(self, range_: ast.Duration, *options: ast.Option) -> ast.TumbleClause:
        return ast.TumbleClause(range_, options, range_.span)

    def now_window(self) -> ast.NowClause:
        return ast.NowClause(Span(0, 0))

    def lower_landmark(self, start: ast.Instant, end: ast.Instant | None, *options: ast.Option) -> ast.LandmarkClause:
        return ast.LandmarkClause(start, end, options, start.span)

    def upper_landmark(self, end: ast.Instant, *options: ast.Option) -> ast.LandmarkClause:
        return ast.LandmarkClause(None, end, options, end.span)

    def rows_window(self, rows: ast.Number, slide: ast.Option | None, lag: ast.Option | None) -> ast.RowsClause:
        return ast.RowsClause(rows, slide, lag, rows.span)

    def partitioned_window(self, *parts: Any) -> ast.PartitionClause:
        *keys, rows, slide, lag = parts
        return ast.PartitionClause(tuple(keys), rows, slide, lag, rows.span)

    def horizon(self, duration: ast.Duration) -> ast.Duration:
        return duration

    def weights(self, *weights: ast.Number) -> tuple[ast.Number, ...]:
        return weights

    def multi_window(
        self,
        ranges: tuple[ast.Duration, ...],
        slides: tuple[ast.Duration, ...],
        horizon: ast.Duration | None,
        weights: tuple[ast.Number, ...] | None,
    ) -> ast.MultiClause:
        return ast.MultiClause(ranges, slides, horizon, weights, ranges[0].span)

    # ── relations ───────────────────────────────────────────────────────────────────────────────────────

    def star(self, token: Token) -> ast.Star:
        return ast.Star(None, _span(token))

    def qualified_star(self, qualifier: ast.Name, token: Token) -> ast.Star:
        return ast.Star(qualifier, qualifier.span.to(_span(token)))

    def alias(self, as_: Token | None, name: ast.Name) -> ast.Alias:
        return ast.Alias(name, explicit=as_ is not None)

    def item(self, expression: ast.Expression, alias: ast.Alias | None) -> ast.Item:
        return ast.Item(expression, alias)

    def items(self, *items: ast.Item | ast.Star) -> tuple[ast.Item | ast.Star, ...]:
        return items

    def source(self, stream: ast.Name, window: ast.WindowClause | None, alias: ast.Alias | None) -> ast.SourceClause:
        return ast.SourceClause(stream, window, alias)

    def join(self, source: ast.SourceClause, on: ast.Expression) -> ast.SourceClause:
        return replace(source, on=on)

    def from_clause(self, *sources: ast.SourceClause) -> tuple[ast.SourceClause, ...]:
        return sources

    def where(self, condition: ast.Expression) -> ast.Expression:
        return condition

    def group_by(self, *keys: ast.Expression) -> tuple[ast.Expression, ...]:
        return keys

    def having(self, condition: ast.Expression) -> ast.Expression:
        return condition

    def select(
        self,
        select: Token,
        distinct: Token | None,
        items: tuple[ast.Item | ast.Star, ...],
        sources: tuple[ast.SourceClause, ...],
        where: ast.Expression | None,
        group_by: tuple[ast.Expression, ...] | None,
        having: ast.Expression | None,
    ) -> ast.Select:
        return ast.Select(distinct is not None, items, sources, where, group_by or (), having, _span(select))

    def set_operation(self, left: ast.Relation, op: Token, right: ast.Relation) -> ast.SetOperation:
        return ast.SetOperation(op.upper(), left, right, _span(op))

    # ── statements ──────────────────────────────────────────────────────────────────────────────────────

    def emit(self, token: Token) -> ast.Name:
        return ast.Name(token.upper(), _span(token))

    def using(self, using: Token, lookups: Token) -> Span:
        return _span(using).to(_span(lookups))

    def order_term(self, expression: ast.Expression, direction: ast.Name | None) -> ast.OrderTerm:
        return ast.OrderTerm(expression, direction)

    def order_by(self, order: Token, *terms: ast.OrderTerm) -> ast.Ordering:
        return ast.Ordering(terms, None, _span(order))

    def limit(self, limit: Token, count: ast.Number) -> ast.Ordering:
        return ast.Ordering((), count, _span(limit))

    def select_statement(
        self,
        relation: ast.Relation,
        order: ast.Ordering | None,
        limit: ast.Ordering | None,
        emit: ast.Name | None,
        using: Span | None = None,
    ) -> ast.SelectStatement:
        ordering = limit if order is None else order if limit is None else replace(order, limit=limit.limit)
        return ast.SelectStatement(relation, emit, using, ordering)

    def column_definition(
        self, name: ast.Name, type_: ast.Name, not_: Token | None, null: Token | None
    ) -> ast.ColumnDefinition:
        return ast.ColumnDefinition(name, type_, not_null=not_ is not None)

    def create_stream(
        self, unless: Token | None, name: ast.Name, *parts: ast.ColumnDefinition | ast.Option
    ) -> ast.CreateStream:
        return ast.CreateStream(
            name,
            columns=tuple(p for p in parts if isinstance(p, ast.ColumnDefinition)),
            options=tuple(p for p in parts if isinstance(p, ast.Option)),
            if_not_exists=unless is not None,
        )

    def create_table(
        self, unless: Token | None, name: ast.Name, *parts: ast.ColumnDefinition | ast.Option
    ) -> ast.CreateTable:
        return ast.CreateTable(
            name,
            columns=tuple(p for p in parts if isinstance(p, ast.ColumnDefinition)),
            options=tuple(p for p in parts if isinstance(p, ast.Option)),
            if_not_exists=unless is not None,
        )

    def alter_stream(self, name: ast.Name, *options: ast.Option) -> ast.AlterStream:
        return ast.AlterStream(name, options)

    def drop_table(self, if_exists: Token | None, name: ast.Name) -> ast.DropTable:
        return ast.DropTable(name, if_exists is not None)

    def drop_stream(self, if_exists: Token | None, name: ast.Name) -> ast.DropStream:
        return ast.DropStream(name, if_exists is not None)

    def seal_stream(self, name: ast.Name) -> ast.SealStream:
        return ast.SealStream(name)

    def seal_table(self, name: ast.Name) -> ast.SealTable:
        return ast.SealTable(name)

    def create_query(
        self, replaces: Token | None, unless: Token | None, name: ast.Name, as_: Token, select: ast.SelectStatement
    ) -> ast.CreateQuery:
        select = replace(select, start=_span(as_).end)
        return ast.CreateQuery(name, select, if_not_exists=unless is not None, replaces=replaces is not None)

    def restart_query(self, name: ast.Name) -> ast.RestartQuery:
        return ast.RestartQuery(name)

    def drop_query(self, if_exists: Token | None, name: ast.Name) -> ast.DropQuery:
        return ast.DropQuery(name, if_exists is not None)

    def explain(self, explain: Token, target: ast.Name | ast.SelectStatement) -> ast.Explain:
        if isinstance(target, ast.SelectStatement):
            target = replace(target, start=_span(explain).end)
        return ast.Explain(target)

    def explain_analyze(self, explain: Token, analyze: Token, target: ast.Name | None) -> ast.Explain:
        return ast.Explain(self.name(analyze)) if target is None else ast.Explain(target, analyze=True)

    def listing(self, word: Token) -> ast.Name:
        return ast.Name(word.upper(), _span(word))

    def show_listing(self, what: ast.Name) -> ast.ShowListing:
        return ast.ShowListing(what)

    def describe(self, name: ast.Name) -> ast.Describe:
        return ast.Describe(name)

    # ── authority ───────────────────────────────────────────────────────────────────────────────────────

    def privilege(self, token: Token) -> ast.Name:
        return ast.Name(token.upper(), _span(token))

    def privileges(self, *names: ast.Name) -> tuple[ast.Name, ...]:
        return names

    targets = principals = privileges

    def target_of_kind(self, kind: Token | None, name: ast.Name) -> ast.TargetClause:
        return ast.TargetClause("" if kind is None else kind.upper(), name, name.span)

    def everything(self, star: Token) -> ast.TargetClause:
        return ast.TargetClause("EVERYTHING", ast.Name("", _span(star)), _span(star))

    def whole_namespace(self, namespace: Token, star: Token) -> ast.TargetClause:
        name = self.name(namespace)
        return ast.TargetClause("NAMESPACE", name, name.span.to(_span(star)))

    def grant(
        self, privileges: tuple[ast.Name, ...], targets: tuple[ast.TargetClause, ...], to: tuple[ast.Name, ...]
    ) -> ast.GrantPrivileges:
        return ast.GrantPrivileges(privileges, targets, to)

    def revoke(
        self, privileges: tuple[ast.Name, ...], targets: tuple[ast.TargetClause, ...], of: tuple[ast.Name, ...]
    ) -> ast.GrantPrivileges:
        return ast.GrantPrivileges(privileges, targets, of, revoked=True)

    def grant_role(self, role: ast.Name, to: tuple[ast.Name, ...]) -> ast.GrantRole:
        return ast.GrantRole(role, to)

    def revoke_role(self, role: ast.Name, of: tuple[ast.Name, ...]) -> ast.GrantRole:
        return ast.GrantRole(role, of, revoked=True)

    def create_role(self, name: ast.Name) -> ast.CreateRole:
        return ast.CreateRole(name)

    def drop_role(self, name: ast.Name) -> ast.DropRole:
        return ast.DropRole(name)

    def show_grants(self) -> ast.ShowGrants:
        return ast.ShowGrants()

    def quota(self, keyword: Token, number: ast.Number) -> ast.Option:
        return ast.Option(keyword.upper(), number, _span(keyword).to(number.span))

    def create_namespace(self, name: ast.Name, *quotas: ast.Option) -> ast.SetNamespace:
        return ast.SetNamespace(name, quotas)

    def alter_namespace(self, name: ast.Name, *quotas: ast.Option) -> ast.SetNamespace:
        return ast.SetNamespace(name, quotas, altered=True)

    def drop_namespace(self, name: ast.Name) -> ast.DropNamespace:
        return ast.DropNamespace(name)
