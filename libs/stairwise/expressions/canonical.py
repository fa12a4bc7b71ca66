"""The canonical form of an expression: two spellings of one condition become one tree, so that their queries share.

    5 < x,  NOT x <= 2 + 3,  x > 5                          x > 5
    x IN (3, 1, 3),  x = 1 OR 3 = x                         x IN (1, 3)
    x IN (1),  NOT x <> 1                                   x = 1
    NOT (a OR b > 1),  b <= 1 AND NOT a AND b <= 1          NOT a AND b <= 1

    answers        an expression that has the same value, and counts the same faults, in every row
    cost           O(n log n) for n nodes
    from           the laws of three-valued logic: De Morgan's hold, and NOT turns a comparison round, since values have
                   a total order in which NaN, too, has its place

Constants are folded, a constant stands on the right of a comparison, NOT stands at the leaves only, AND and OR are
flat, sorted and without repetitions, and equalities of one subject are one IN over a sorted set. What overflows or
divides by zero is counted as often as the author wrote it: it is not folded, not left out and not written once for
twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Call, Const, Expr, Field
from stairwise.schema import Type

TRUE, FALSE = Const(True, Type.BOOLEAN), Const(False, Type.BOOLEAN)

_NAN = float("nan")
"""The one NaN of all constants: another one would not equal it."""
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_JUNCTIONS = {"and": "or", "or": "and"}
_FAULTLESS = frozenset(
    {*_MIRRORED, *_JUNCTIONS, "not", "is_null", "in", "like", "case", "coalesce", "to_double", "to_hugeint", "excess"}
    | {"lower", "upper", "length", "concat"}
)
"""What gives NULL for NULLs only, whatever its type."""
_FAULTLESS_OF_DOUBLE = frozenset({"+", "-", "*", "neg", "abs", "floor", "ceil", "round", "sqrt", "ln", "exp"})


def canonical(expr: Expr) -> Expr:
    """The same expression in the form that all of its spellings have."""
    if isinstance(expr, Const):
        return _constant(expr)
    if isinstance(expr, Field):
        return expr
    call = Call(expr.op, tuple(canonical(arg) for arg in expr.args), expr.type)
    match _value_of(call):
        case Const() as value:
            return value
        case Call("and" | "or"):
            return _junction(call.op, call.args)
        case Call("not", (operand,)):
            return _negated(operand)
        case Call("in", (subject, *members)):
            return _membership(subject, members)
        case Call(op, (left, right)) if op in _MIRRORED:
            return _comparison(op, left, right)
        case _:
            return call


def canonical_condition(condition: Expr | None) -> Expr | None:
    """The same of what rows have to meet; None where all do."""
    found = None if condition is None else canonical(condition)
    return None if found == TRUE else found


def _constant(const: Const) -> Const:
    value = const.value
    if const.type is Type.DOUBLE and value is not None:
        value = float(value)
        value = value if value == value else _NAN
    return Const(value, const.type)


def _value_of(call: Call) -> Call | Const:
    """Its value, where it is made of constants and counts no fault in each row; else itself."""
    if not all(isinstance(arg, Const) for arg in call.args):
        return call
    faults = Faults()
    value = evaluate(call, (), 1, faults)[0].as_py()
    if faults.total:
        return call
    return _constant(Const(int(value) if call.type is Type.HUGEINT and value is not None else value, call.type))


def _is_faultless(expr: Expr) -> bool:
    """Does it never overflow or divide by zero?"""
    if not isinstance(expr, Call):
        return True
    is_safe = expr.op in _FAULTLESS or (expr.op in _FAULTLESS_OF_DOUBLE and expr.type is Type.DOUBLE)
    return is_safe and all(map(_is_faultless, expr.args))


def _distinct(exprs: Iterable[Expr]) -> list[Expr]:
    """In order; what may count faults as often as it was written."""
    ordered = sorted(exprs, key=repr)
    seen: set[Expr] = set()
    found: list[Expr] = []
    for expr in ordered:
        if expr not in seen or not _is_faultless(expr):
            seen.add(expr)
            found.append(expr)
    return found


def _comparison(op: str, left: Expr, right: Expr) -> Expr:
    left, right = _compared(left), _compared(right)
    if isinstance(left, Const) or (not isinstance(right, Const) and _is_turned(op, left, right)):
        op, left, right = _MIRRORED[op], right, left
    if isinstance(right, Const) and isinstance(right.value, bool) and op in ("=", "<>"):
        return left if right.value is (op == "=") else _negated(left)
    return _value_of(Call(op, (left, right), Type.BOOLEAN))


def _is_turned(op: str, left: Expr, right: Expr) -> bool:
    return repr(left) > repr(right) if op in ("=", "<>") else op in (">", ">=")


def _compared(expr: Expr) -> Expr:
    """−0.0 equals 0.0."""
    return Const(0.0, expr.type) if isinstance(expr, Const) and expr.type is Type.DOUBLE and expr.value == 0.0 else expr


def _membership(subject: Expr, members: Sequence[Expr]) -> Expr:
    constants = {_compared(member) for member in members if isinstance(member, Const)}
    others = _distinct(member for member in members if not isinstance(member, Const))
    if len(constants) + len(others) == 1:
        return _comparison("=", subject, *constants, *others)
    if others and _is_faultless(subject):
        equal = [_comparison("=", subject, other) for other in others]
        return _junction("or", [*([_membership(subject, [*constants])] if constants else []), *equal])
    return _value_of(Call("in", (subject, *sorted(constants, key=_by_value), *others), Type.BOOLEAN))


def _by_value(member: Expr) -> tuple[bool, bool, object]:
    """NULL comes last, before it NaN."""
    assert isinstance(member, Const)
    return member.value is None, member.value != member.value, member.value


def _negated(expr: Expr) -> Expr:
    """NOT of a canonical expression."""
    match expr:
        case Const():
            return expr if expr.value is None else FALSE if expr.value else TRUE
        case Call("not", (operand,)):
            return operand
        case Call(op, args) if op in _JUNCTIONS:
            return _junction(_JUNCTIONS[op], [_negated(arg) for arg in args])
        case Call(op, (left, right)) if op in _OPPOSITE:
            return _comparison(_OPPOSITE[op], left, right)
        case _:
            return Call("not", (expr,), Type.BOOLEAN)


def _junction(op: str, operands: Sequence[Expr]) -> Expr:
    """AND or OR of canonical expressions."""
    neutral, deciding = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat = [a for arg in operands for a in (arg.args if isinstance(arg, Call) and arg.op == op else (arg,))]
    if deciding in flat and all(map(_is_faultless, flat)):
        return deciding
    parts = _distinct(_gathered(op, (part for part in flat if part != neutral)))
    if len(parts) <= 1:
        return parts[0] if parts else neutral
    return Call(op, tuple(parts), Type.BOOLEAN)


def _gathered(op: str, parts: Iterable[Expr]) -> Iterable[Expr]:
    """Equalities of one subject with constants as one IN; below AND those that are negated."""
    members: dict[Expr, list[Expr]] = {}
    for part in parts:
        match op, part:
            case ("or", Call("=" | "in", (subject, *constants))) if _is_set_of(subject, constants):
                members.setdefault(subject, []).extend(constants)
            case ("and", Call("<>", (subject, *constants))) if _is_set_of(subject, constants):
                members.setdefault(subject, []).extend(constants)
            case ("and", Call("not", (Call("in", (subject, *constants)),))) if _is_set_of(subject, constants):
                members.setdefault(subject, []).extend(constants)
            case _:
                yield part
    for subject, constants in members.items():
        gathered = _membership(subject, constants)
        yield gathered if op == "or" else _negated(gathered)


def _is_set_of(subject: Expr, members: Sequence[Expr]) -> bool:
    return _is_faultless(subject) and all(isinstance(member, Const) for member in members)
