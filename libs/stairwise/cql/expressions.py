"""From an expression as written to a typed one: names become fields, sugar becomes calls, types meet.

BETWEEN, IN, LIKE, simple CASE and NOT forms are spelled out in the calls of ``query.Call``. Where that
repeats an operand, the repetition is paid from a budget, so that nested sugar cannot grow without bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stairwise.aggregates.catalogue import AGGREGATES, AGGREGATES_ELSEWHERE
from stairwise.cql import ast
from stairwise.cql.coercion import Typed, coerce, common_type, is_null, unify
from stairwise.cql.column_types import column_type
from stairwise.cql.comparison import are_mixed, compare_exactly, decided, same_number
from stairwise.cql.literals import bigint, double, typed_timestamp
from stairwise.cql.names import NameScope
from stairwise.cql.other_dialects import FUNCTIONS
from stairwise.cql.source import Source, Span
from stairwise.errors import nearest
from stairwise.expressions.casts import cast_op
from stairwise.expressions.conditions import all_of, balanced
from stairwise.expressions.functions import ELSEWHERE, SCALARS, Constant, Scalar, Takes
from stairwise.expressions.tree import Call, Const, Expr
from stairwise.schema import Type

MAX_DEPTH = 64
"""How deep an expression may be."""
MAX_REPETITION = 5_000
"""How many nodes the spelling-out of sugar may add to a statement."""
MAX_LIST = 1_000
"""Values of an IN list, branches of a CASE."""

EDGES = ("WINDOW_START", "WINDOW_END")

AggregateCall = Callable[[ast.FunctionCall], Expr]


class RepetitionBudget:
    """What is left of MAX_REPETITION, for one statement."""

    def __init__(self) -> None:
        self._left = MAX_REPETITION

    def spend(self, source: Source, span: Span, operand: Expr, times: int) -> None:
        self._left -= times * size(operand)
        if self._left < 0:
            raise source.error(span, "this expression is too large once it is spelled out", hint="nest less")


def size(expr: Expr) -> int:
    """The number of nodes of an expression."""
    pending, nodes = [expr], 0
    while pending:
        node = pending.pop()
        nodes += 1
        if isinstance(node, Call):
            pending.extend(node.args)
    return nodes


class ExpressionResolver:
    """Resolves the expressions of one clause.

    ``aggregate`` turns an aggregate's call into an expression; where aggregates have no place it raises.
    ``aliases`` are the names of the SELECT list, for the clauses that may use them; a column goes first.
    """

    def __init__(
        self,
        source: Source,
        scope: NameScope,
        budget: RepetitionBudget,
        aggregate: AggregateCall,
        aliases: Mapping[str, ast.Expression] | None = None,
    ) -> None:
        self._source = source
        self._scope = scope
        self._budget = budget
        self._aggregate = aggregate
        self._aliases = dict(aliases or {})
        self._depth = 0

    def typed(self, node: ast.Expression) -> Typed:
        return Typed(self.resolve(node), node.span)

    def condition(self, node: ast.Expression, what: str) -> Expr:
        """A BOOLEAN, as WHERE, ON, HAVING, AND, OR, NOT and WHEN want it."""
        operand = self.typed(node)
        if operand.expr.type is not Type.BOOLEAN and not is_null(operand.expr):
            raise self._source.error(
                node.span,
                f"{what} needs a condition, and this is of type {operand.expr.type.value}",
                expected="a BOOLEAN expression, as price > 10",
            )
        return coerce(self._source, operand, Type.BOOLEAN)

    def resolve(self, node: ast.Expression) -> Expr:
        if self._depth == MAX_DEPTH:
            raise self._source.error(node.span, f"the expression is deeper than {MAX_DEPTH} levels", hint="nest less")
        self._depth += 1
        try:
            return self._resolve(node)
        finally:
            self._depth -= 1

    def _resolve(self, node: ast.Expression) -> Expr:
        match node:
            case ast.ColumnRef():
                return self._column(node)
            case ast.Number():
                return self._number(node, negative=False)
            case ast.String():
                return Const(node.value, Type.STRING)
            case ast.Boolean():
                return Const(node.value, Type.BOOLEAN)
            case ast.Null():
                return Const(None, Type.STRING)
            case ast.TypedString():
                return Const(typed_timestamp(self._source, node), Type.TIMESTAMP)
            case ast.FunctionCall():
                return self._call(node)
            case ast.Binary():
                return self._binary(node)
            case ast.Unary():
                return self._unary(node)
            case ast.Logical():
                if len(node.operands) > MAX_LIST:
                    raise self._source.error(node.span, f"a chain of {node.op} has at most {MAX_LIST:,} conditions")
                return balanced(node.op.lower(), [self.condition(o, node.op) for o in node.operands])
            case ast.IsNull():
                return _negate_if(node.negated, Call("is_null", (self.resolve(node.operand),), Type.BOOLEAN))
            case ast.Between():
                return self._between(node)
            case ast.InList():
                return self._in_list(node)
            case ast.Like():
                return self._like(node)
            case ast.Case():
                return self._case(node)
            case ast.Cast():
                return self._cast(node)

    # ── names and literals ──────────────────────────────────────────────────────────────────────────────

    def _column(self, node: ast.ColumnRef) -> Expr:
        aliased = self._aliases.get(node.name.text) if node.qualifier is None else None
        if aliased is None or self._scope.find(node.name.text):
            if _is_edge(node) and not self._scope.find(node.name.text):
                return self._aggregate(ast.FunctionCall(node.name, (), node.span))
            return self._scope.resolve(self._source, node)
        hidden, self._aliases = self._aliases, {}  # an alias does not see the others, nor itself
        try:
            expr = self.resolve(aliased)
        finally:
            self._aliases = hidden
        self._budget.spend(self._source, node.span, expr, 1)
        return expr

    def _number(self, node: ast.Number, *, negative: bool) -> Const:
        if node.is_integer:
            return Const(bigint(self._source, node, negative=negative), Type.BIGINT)
        value = double(self._source, node)
        return Const(-value if negative else value, Type.DOUBLE)

    # ── operators ───────────────────────────────────────────────────────────────────────────────────────

    def _unary(self, node: ast.Unary) -> Expr:
        if node.op == "NOT":
            return Call("not", (self.condition(node.operand, "NOT"),), Type.BOOLEAN)
        if isinstance(node.operand, ast.Number):
            return self._number(node.operand, negative=node.op == "-")
        operand = self._as_number(self.typed(node.operand), f"the sign {node.op}")
        return operand if node.op == "+" else Call("neg", (operand,), operand.type)

    def _as_number(self, operand: Typed, what: str) -> Expr:
        """A BIGINT or DOUBLE: an exact sum leaves its 128 bits as soon as one calculates with it."""
        if is_null(operand.expr):
            return coerce(self._source, operand, Type.BIGINT)
        self._demand_number(operand, what)
        if operand.expr.type is Type.HUGEINT:
            return coerce(self._source, operand, Type.DOUBLE)
        return operand.expr

    def _demand_number(self, operand: Typed, what: str) -> None:
        if operand.expr.type.is_numeric or is_null(operand.expr):
            return
        instant = operand.expr.type is Type.TIMESTAMP
        raise self._source.error(
            operand.span,
            f"{what} needs numbers, and this is of type {operand.expr.type.value}",
            expected="BIGINT or DOUBLE",
            hint="CAST(... AS DOUBLE) gives an instant's milliseconds" if instant else "",
        )

    def _binary(self, node: ast.Binary) -> Expr:
        operands = (self.typed(node.left), self.typed(node.right))
        if node.op == "||":
            strings = tuple(self._as_string(o, "||") for o in operands)
            return Call("concat", strings, Type.STRING)
        if node.op in ("+", "-", "*", "/", "%"):
            return self._arithmetic(node.op, operands)
        return self._compare(node.op, *operands)

    def _arithmetic(self, op: str, operands: tuple[Typed, Typed]) -> Expr:
        for operand in operands:
            self._demand_number(operand, op)
        target = common_type(self._source, operands, op) or Type.BIGINT
        target = Type.DOUBLE if target is Type.HUGEINT else target
        return Call(op, tuple(coerce(self._source, o, target) for o in operands), target)

    def _compare(self, op: str, left: Typed, right: Typed) -> Expr:
        if are_mixed(left.expr, right.expr):
            for operand in (left, right):
                self._budget.spend(self._source, operand.span, operand.expr, 2)
            return compare_exactly(op, left.expr, right.expr)
        args = unify(self._source, (left, right), op, Type.BIGINT)
        if args[0].type is Type.BOOLEAN and op not in ("=", "<>"):
            raise self._source.error(left.span, f"BOOLEANs have no order for {op}", expected="= or <>")
        return Call(op, args, Type.BOOLEAN)

    def _as_string(self, operand: Typed, what: str) -> Expr:
        if operand.expr.type is not Type.STRING:
            raise self._source.error(
                operand.span,
                f"{what} needs a STRING, and this is of type {operand.expr.type.value}",
                expected="a STRING expression",
            )
        return operand.expr

    # ── sugar ───────────────────────────────────────────────────────────────────────────────────────────

    def _between(self, node: ast.Between) -> Expr:
        operand, low, high = self.typed(node.operand), self.typed(node.low), self.typed(node.high)
        self._budget.spend(self._source, node.span, operand.expr, 1)
        return _negate_if(node.negated, all_of([self._compare(">=", operand, low), self._compare("<=", operand, high)]))

    def _in_list(self, node: ast.InList) -> Expr:
        self._limit_list(node.items, node.span, "IN")
        operand = self.typed(node.operand)
        items = [self.typed(item) for item in node.items]
        literals = [item.expr for item in items if isinstance(item.expr, Const)]
        if len(literals) == len(items):
            return _negate_if(node.negated, self._among(operand, items, literals))
        self._budget.spend(self._source, node.span, operand.expr, len(items))
        return _negate_if(node.negated, balanced("or", [self._compare("=", operand, item) for item in items]))

    def _among(self, operand: Typed, items: Sequence[Typed], literals: Sequence[Const]) -> Expr:
        """IN of literals. Those that no value of the operand's type can equal are left out."""
        members = unify(self._source, (operand, *items), "IN", Type.BIGINT)
        if is_null(operand.expr) or not members[0].type.is_numeric:
            return Call("in", members, Type.BOOLEAN)
        found = [same_number(literal, operand.expr.type) for literal in literals]
        possible = [const for const in found if const is not None]
        return Call("in", (operand.expr, *possible), Type.BOOLEAN) if possible else decided(operand.expr, False)

    def _limit_list(self, items: Sequence[object], span: Span, what: str) -> None:
        if len(items) > MAX_LIST:
            raise self._source.error(span, f"{what} has more than {MAX_LIST:,} entries")

    def _like(self, node: ast.Like) -> Expr:
        operand = self._as_string(self.typed(node.operand), "LIKE")
        pattern = self.typed(node.pattern)
        if not isinstance(pattern.expr, Const) or pattern.expr.type is not Type.STRING:
            raise self._source.error(
                node.pattern.span, "the pattern of LIKE is not a constant", expected="a string such as 'AB%_'"
            )
        if is_null(pattern.expr):
            return Const(None, Type.BOOLEAN)
        return _negate_if(node.negated, Call("like", (operand, pattern.expr), Type.BOOLEAN))

    def _case(self, node: ast.Case) -> Expr:
        self._limit_list(node.whens, node.span, "CASE")
        conditions: list[Expr]
        if node.operand is None:
            conditions = [self.condition(when.condition, "WHEN") for when in node.whens]
        else:
            operand = self.typed(node.operand)
            self._budget.spend(self._source, node.span, operand.expr, len(node.whens))
            conditions = [self._compare("=", operand, self.typed(when.condition)) for when in node.whens]
        results = [self.typed(when.result) for when in node.whens]
        otherwise = Typed(Const(None, Type.STRING), node.span) if node.otherwise is None else self.typed(node.otherwise)
        *thens, last = unify(self._source, (*results, otherwise), "the results of CASE", Type.STRING)
        branches = [part for pair in zip(conditions, thens, strict=True) for part in pair]
        return Call("case", (*branches, last), last.type)

    # ── functions ───────────────────────────────────────────────────────────────────────────────────────

    def _call(self, node: ast.FunctionCall) -> Expr:
        name = node.name.text.upper()
        if name in AGGREGATES:
            return self._aggregate(node)
        function = SCALARS.get(name)
        if function is None:
            raise self._source.error(
                node.name.span, f"there is no function {node.name.text!r}", hint=_function_hint(name)
            )
        if node.distinct or node.star:
            raise self._source.error(node.span, f"{name} takes values, neither DISTINCT nor *")
        if node.filter is not None:
            raise self._source.error(node.span, f"FILTER is for aggregates, and {name} is none", hint="write CASE WHEN")
        if node.by_from and name != "EXTRACT":
            raise self._source.error(node.span, f"{name} takes its arguments with commas", expected=function.example)
        if not function.least <= len(node.arguments) <= function.most:
            raise self._source.error(
                node.span, f"{name} takes {_arguments(function)}, not {len(node.arguments)}", expected=function.example
            )
        arguments = [self.typed(argument) for argument in node.arguments]
        if function.kernel is None:
            return self._spelled(name, function, arguments, node.span)
        args = self._fitting(name, function, arguments)
        return Call(name.lower(), args, function.result or args[0].type)

    def _spelled(self, name: str, function: Scalar, arguments: list[Typed], span: Span) -> Expr:
        """A function that says the same as other calls."""
        match name:
            case "MOD":
                left, right = arguments
                return self._arithmetic("%", (left, right))
            case "NULLIF":
                left, right = arguments
                self._budget.spend(self._source, span, left.expr, 1)
                return Call(
                    "case", (self._compare("=", left, right), Const(None, left.expr.type), left.expr), left.expr.type
                )
            case _:
                args = self._fitting(name, function, arguments)
                return Call(name.lower(), args, args[0].type)

    def _fitting(self, name: str, function: Scalar, arguments: list[Typed]) -> tuple[Expr, ...]:
        """The arguments in the types that a function takes."""
        takes = [*function.takes, *[function.takes[-1]] * (len(arguments) - len(function.takes))]
        if function.result is None and function.takes[0] is not Takes.NUMBER:
            for argument in arguments:
                self._demand_order(name, function, argument)
            return unify(self._source, arguments, name, Type.STRING)
        return tuple(self.fitting(name, wanted, a) for wanted, a in zip(takes, arguments, strict=False))

    def _demand_order(self, name: str, function: Scalar, argument: Typed) -> None:
        if function.takes[0] is Takes.ORDERED and argument.expr.type is Type.BOOLEAN:
            raise self._source.error(argument.span, f"{name} needs {Takes.ORDERED.value}, and this is of type BOOLEAN")

    def fitting(self, name: str, wanted: Takes | Constant, argument: Typed) -> Expr:
        """An argument in the type that is wanted of it."""
        match wanted:
            case Constant():
                return self._constant(name, wanted, argument)
            case Takes.STRING:
                return self._as_string(argument, name)
            case Takes.NUMBER:
                return self._as_number(argument, name)
            case Takes.DOUBLE:
                self._demand_number(argument, name)
                return coerce(self._source, argument, Type.DOUBLE)
            case Takes.INSTANT:
                return self._as_instant(name, argument)
            case _:
                return argument.expr

    def _constant(self, name: str, wanted: Constant, argument: Typed) -> Expr:
        expr = argument.expr
        if not isinstance(expr, Const) or expr.value is None or expr.type is not wanted.type:
            raise self._source.error(argument.span, f"{name} takes a constant here", expected=wanted.expected)
        if not wanted.fits(expr.value):
            shown = self._source.slice(argument.span)
            raise self._source.error(argument.span, f"{name} cannot take {shown} here", expected=wanted.expected)
        return expr

    def _as_instant(self, name: str, argument: Typed) -> Expr:
        is_text = isinstance(argument.expr, Const) and argument.expr.type is Type.STRING
        if argument.expr.type is not Type.TIMESTAMP and not is_text:
            raise self._source.error(
                argument.span,
                f"{name} needs a TIMESTAMP, and this is of type {argument.expr.type.value}",
                hint="TO_TIMESTAMP(text), or CAST(milliseconds AS TIMESTAMP)",
            )
        return coerce(self._source, argument, Type.TIMESTAMP)

    def _cast(self, node: ast.Cast) -> Expr:
        if node.function.text.upper() != "CAST":
            raise self._source.error(
                node.function.span,
                f"{node.function.text} takes no AS",
                hint=FUNCTIONS.get(node.function.text.upper(), "an alias stands behind the bracket"),
            )
        operand = self.typed(node.operand)
        target = column_type(self._source, node.type, "a value")
        known = operand.expr.type
        if target is known:
            return operand.expr
        if is_null(operand.expr) or (target is Type.DOUBLE and known in (Type.BIGINT, Type.HUGEINT, Type.TIMESTAMP)):
            return coerce(self._source, operand, target)
        op = cast_op(known, target)
        if op is None:
            raise self._source.error(node.type.span, f"there is no cast from {known.value} to {target.value}")
        return Call(op, (operand.expr,), target)


def _is_edge(node: ast.ColumnRef) -> bool:
    """Is it WINDOW_START or WINDOW_END, which stand without brackets?"""
    return node.qualifier is None and not node.name.quoted and node.name.text.upper() in EDGES


def _function_hint(name: str) -> str:
    """What a function that is not there is called here, or is near to."""
    known = {**AGGREGATES_ELSEWHERE, **ELSEWHERE}.get(name)
    if known is not None:
        return f"write {SCALARS[known].example if known in SCALARS else AGGREGATES[known].example}"
    return FUNCTIONS.get(name) or nearest(name, [*SCALARS, *AGGREGATES], "function")


def _arguments(function: Scalar) -> str:
    """How many arguments a function takes, in words."""
    if function.repeats:
        return f"{function.least} to {function.most:,} arguments"
    if function.optional:
        return f"{function.least} or {function.most} arguments"
    return "one argument" if function.most == 1 else f"{function.most} arguments"


def _negate_if(negated: bool, expr: Expr) -> Expr:
    return Call("not", (expr,), Type.BOOLEAN) if negated else expr
