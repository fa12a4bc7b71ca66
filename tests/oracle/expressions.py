"""Expressions as written, read into their type and their value over a row, with SQL's NULL logic.

    types meet       BIGINT ──▶ HUGEINT ──▶ DOUBLE         in CASE, COALESCE, arithmetic and set operations
                     literal ──▶ TIMESTAMP                 a number of milliseconds, or RFC 3339
    or need not      BIGINT = DOUBLE                       numbers compare as they are

A row has the values of all inputs side by side. Behind them stand those of aggregates, where there are groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stairwise.cql import ast
from stairwise.schema import Type
from tests.oracle.functions import ARITHMETIC, COMPARISONS, OF_DOUBLE, OF_INSTANTS, OF_STRINGS, SHORTEST, like, within
from tests.oracle.functions import cast as cast_value
from tests.oracle.literals import rfc_3339
from tests.oracle.values import Value, rank

Row = Sequence[Value]


@dataclass(frozen=True)
class Typed:
    """An expression: its type (None: NULL, which has any) and its value over a row."""

    type: Type | None
    of: Callable[[Row], Value]
    is_literal: bool = False


@dataclass(frozen=True)
class Column:
    """A column that expressions can see, of an input by its name in FROM."""

    of: str
    name: str
    type: Type | None


# ── types ───────────────────────────────────────────────────────────────────────────────────────────────


def common_type(types: Sequence[Type | None]) -> Type | None:
    """The type in which values meet."""
    known = {type_ for type_ in types if type_ is not None}
    for widest in (Type.TIMESTAMP, Type.DOUBLE, Type.HUGEINT):
        if widest in known:
            return widest
    assert len(known) < 2, f"{known} do not meet"
    return known.pop() if known else None


def widened(value: Value, target: Type | None) -> Value:
    return float(value) if target is Type.DOUBLE and value is not None else value


def meeting(*operands: Typed) -> tuple[Type | None, list[Typed]]:
    """The common type of some expressions, and all of them in it."""
    target = common_type([operand.type for operand in operands])
    return target, [_as(operand, target) for operand in operands]


def _as(operand: Typed, target: Type | None) -> Typed:
    if operand.type is target or operand.type is None:
        return operand
    of = operand.of
    if target is Type.TIMESTAMP:
        assert operand.is_literal, f"a {operand.type} is no instant"
        return literal(target, rfc_3339(str(of(()))) if operand.type is Type.STRING else of(()))
    return Typed(target, lambda row: widened(of(row), target))


def _number(operand: Typed) -> Typed:
    """What one can calculate with: an exact sum becomes DOUBLE."""
    return _as(operand, Type.DOUBLE if operand.type is Type.HUGEINT else operand.type)


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────


def literal(type_: Type | None, value: Value) -> Typed:
    return Typed(type_, lambda row: value, is_literal=True)


def strict(type_: Type | None, function: Callable[..., Value], *operands: Typed) -> Typed:
    """NULL as soon as an operand is."""
    arguments = [operand.of for operand in operands]

    def of(row: Row) -> Value:
        values = [argument(row) for argument in arguments]
        return None if None in values else function(*values)

    return Typed(type_, of)


def compare(op: str, left: Typed, right: Typed) -> Typed:
    if Type.TIMESTAMP in (left.type, right.type):
        _, (left, right) = meeting(left, right)
    common_type([left.type, right.type])
    return strict(Type.BOOLEAN, COMPARISONS[op], left, right)


def logical(op: str, operands: Sequence[Typed]) -> Typed:
    """AND is FALSE, and OR is TRUE, as soon as one operand is; else NULL as soon as one is."""
    arguments, decisive = [operand.of for operand in operands], op == "OR"

    def of(row: Row) -> Value:
        values = [argument(row) for argument in arguments]
        if any(value is decisive for value in values):
            return decisive
        return None if None in values else not decisive

    return Typed(Type.BOOLEAN, of)


def _not(operand: Typed, negated: bool = True) -> Typed:
    return strict(Type.BOOLEAN, lambda value: not value, operand) if negated else operand


# ── from the text to both ───────────────────────────────────────────────────────────────────────────────


@dataclass
class Reader:
    """Reads the expressions of a clause, which sees some columns.

    ``aliases`` are the names of the SELECT list where the clause may use them; a column of that name goes first.
    ``aggregate`` gives the value of an aggregate.
    """

    columns: Sequence[Column]
    aliases: Mapping[str, ast.Expression] = field(default_factory=dict)
    aggregate: Callable[[ast.FunctionCall], Typed | None] = lambda call: None

    def read(self, node: ast.Expression) -> Typed:
        match node:
            case ast.Number(text=text):
                return literal(Type.BIGINT, int(text)) if node.is_integer else literal(Type.DOUBLE, float(text))
            case ast.String(value=text):
                return literal(Type.STRING, text)
            case ast.Boolean(value=truth):
                return literal(Type.BOOLEAN, truth)
            case ast.Null():
                return literal(None, None)
            case ast.TypedString(text=ast.String(value=text)):
                return literal(Type.TIMESTAMP, rfc_3339(text))
            case ast.ColumnRef():
                return self._column(node)
            case ast.Unary(op="NOT", operand=operand):
                return _not(self.read(operand))
            case ast.Unary(op=op, operand=operand):
                return self._signed(op, _number(self.read(operand)))
            case ast.Binary(op="||", left=left, right=right):
                return strict(Type.STRING, lambda *texts: "".join(texts), self.read(left), self.read(right))
            case ast.Binary(op=op, left=left, right=right) if op in ARITHMETIC:
                return self._calculate(op, _number(self.read(left)), _number(self.read(right)))
            case ast.Binary(op=op, left=left, right=right):
                return compare(op, self.read(left), self.read(right))
            case ast.Logical(op=op, operands=operands):
                return logical(op, [self.read(operand) for operand in operands])
            case ast.IsNull(operand=operand, negated=negated):
                of = self.read(operand).of
                return Typed(Type.BOOLEAN, lambda row: (of(row) is None) is not negated)
            case ast.Between(operand=operand, low=low, high=high, negated=negated):
                sought = self.read(operand)
                bounds = [compare(">=", sought, self.read(low)), compare("<=", sought, self.read(high))]
                return _not(logical("AND", bounds), negated)
            case ast.InList(operand=operand, items=items, negated=negated):
                sought = self.read(operand)
                return _not(logical("OR", [compare("=", sought, self.read(item)) for item in items]), negated)
            case ast.Like(operand=operand, pattern=pattern, negated=negated):
                return _not(strict(Type.BOOLEAN, like, self.read(operand), self.read(pattern)), negated)
            case ast.Case():
                return self._case(node)
            case ast.Cast(operand=operand, type=name):
                return _cast(self.read(operand), Type[name.text.upper()])
            case ast.FunctionCall():
                return self.aggregate(node) or self._call(node)

    def _column(self, node: ast.ColumnRef) -> Typed:
        name, of = node.name.text, None if node.qualifier is None else node.qualifier.text
        found = [i for i, column in enumerate(self.columns) if column.name == name and of in (None, column.of)]
        if not found and of is None and name not in self.aliases:
            edge = self.aggregate(ast.FunctionCall(node.name, (), node.span))
            assert edge is not None, f"there is no column {name}"
            return edge
        if not found and of is None:
            return Reader(self.columns, {}, self.aggregate).read(self.aliases[name])
        (place,) = found
        return Typed(self.columns[place].type, lambda row: row[place])

    def _signed(self, op: str, operand: Typed) -> Typed:
        if op == "+":
            return operand
        type_ = operand.type or Type.BIGINT
        negative = strict(type_, lambda value: within(type_, -value), operand)
        return literal(type_, negative.of(())) if operand.is_literal else negative

    def _calculate(self, op: str, left: Typed, right: Typed) -> Typed:
        target, operands = meeting(left, right)
        type_, function = target or Type.BIGINT, ARITHMETIC[op]

        def calculate(a: Value, b: Value) -> Value:
            value = function(a, b)
            return None if value is None else within(type_, value)  # type: ignore[arg-type]

        return strict(type_, calculate, *operands)

    def _case(self, node: ast.Case) -> Typed:
        if node.operand is None:
            conditions = [self.read(when.condition) for when in node.whens]
        else:
            operand = self.read(node.operand)
            conditions = [compare("=", operand, self.read(when.condition)) for when in node.whens]
        otherwise = ast.Null(node.span) if node.otherwise is None else node.otherwise
        target, (*results, last) = meeting(*(self.read(when.result) for when in node.whens), self.read(otherwise))
        branches = [(condition.of, result.of) for condition, result in zip(conditions, results, strict=True)]
        return Typed(target, lambda row: next((of(row) for when, of in branches if when(row) is True), last.of(row)))

    def _call(self, node: ast.FunctionCall) -> Typed:
        name, arguments = node.name.text.upper(), [self.read(argument) for argument in node.arguments]
        if name == "COALESCE":
            target, alike = meeting(*arguments)
            return Typed(target, lambda row: next((v for one in alike if (v := one.of(row)) is not None), None))
        if name == "ABS":
            (operand,) = map(_number, arguments)
            type_ = operand.type or Type.BIGINT
            return strict(type_, lambda value: within(type_, abs(value)), operand)
        if name == "MOD":
            left, right = arguments
            return self._calculate("%", _number(left), _number(right))
        if name == "NULLIF":
            left, equal = arguments[0], compare("=", *arguments)
            return Typed(left.type, lambda row: None if equal.of(row) is True else left.of(row))
        if name in SHORTEST:
            target, alike = meeting(*arguments)

            def chosen(row: Row) -> Value:
                there = sorted((v for one in alike if (v := one.of(row)) is not None), key=rank)
                return there[SHORTEST[name]] if there else None

            return Typed(target, chosen)
        if name in OF_INSTANTS:
            type_, function = OF_INSTANTS[name]
            place = 0 if name == "FORMAT_TIMESTAMP" else 1
            arguments[place] = _as(arguments[place], Type.TIMESTAMP)
            return strict(type_, function, *arguments)
        if name in OF_DOUBLE:
            return strict(Type.DOUBLE, OF_DOUBLE[name], *(_as(argument, Type.DOUBLE) for argument in arguments))
        type_, function = OF_STRINGS[name]
        return strict(type_, function, *arguments)


def _cast(operand: Typed, target: Type) -> Typed:
    source = operand.type
    if source is target or source is None:
        return Typed(target, operand.of)
    return strict(target, lambda value: cast_value(value, source, target), operand)
