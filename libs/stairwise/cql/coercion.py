"""How values of different types meet: numbers widen, literals become instants, NULL fits all.

BIGINT ──▶ HUGEINT ──▶ DOUBLE          TIMESTAMP ◀── whole number or RFC 3339 string, as a literal only
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stairwise.cql.literals import timestamp
from stairwise.cql.source import Source, Span
from stairwise.expressions.tree import Call, Const, Expr
from stairwise.schema import Type


@dataclass(frozen=True)
class Typed:
    """An expression and where it was written."""

    expr: Expr
    span: Span


def is_null(expr: Expr) -> bool:
    """Is it the literal NULL, which has any type?"""
    return isinstance(expr, Const) and expr.value is None


def common_type(source: Source, operands: Sequence[Typed], what: str) -> Type | None:
    """The type in which the operands can meet; None if all of them are NULL."""
    known = [o for o in operands if not is_null(o.expr)]
    if not known:
        return None
    types = {o.expr.type for o in known}
    if len(types) == 1:
        return known[0].expr.type
    if all(t.is_numeric for t in types):
        return Type.DOUBLE if Type.DOUBLE in types else Type.HUGEINT
    if Type.TIMESTAMP in types and all(_fits_timestamp(o.expr) for o in known):
        return Type.TIMESTAMP
    first = known[0]
    other = next(o for o in known if not _meet(first.expr.type, o.expr.type))
    raise source.error(
        other.span,
        f"{what}: {first.expr.type.value} and {other.expr.type.value} do not go together",
        expected=f"an expression of type {first.expr.type.value}",
        hint=_mismatch_hint(first.expr.type, other.expr.type),
    )


def _meet(a: Type, b: Type) -> bool:
    return a is b or (a.is_numeric and b.is_numeric)


def _fits_timestamp(expr: Expr) -> bool:
    if expr.type is Type.TIMESTAMP:
        return True
    return isinstance(expr, Const) and expr.type in (Type.BIGINT, Type.STRING)


def _mismatch_hint(a: Type, b: Type) -> str:
    if Type.TIMESTAMP in (a, b):
        return "an instant compares with TIMESTAMPs and with literals: milliseconds or '2026-01-31T12:00:00Z'"
    if Type.STRING in (a, b):
        return "strings stand in 'single' quotes, names and numbers do not"
    return ""


def coerce(source: Source, operand: Typed, target: Type) -> Expr:
    """The operand as ``target``, which ``common_type`` or the caller has found to be possible."""
    expr = operand.expr
    if expr.type is target:
        return expr
    if isinstance(expr, Const):
        if expr.value is None:
            return Const(None, target)
        if target is Type.TIMESTAMP:
            if isinstance(expr.value, str):
                return Const(timestamp(source, expr.value, operand.span), target)
            return Const(expr.value, target)
        if target is Type.DOUBLE and isinstance(expr.value, int):
            return Const(float(expr.value), target)
    if target is Type.HUGEINT:
        return Call("to_hugeint", (expr,), target)
    assert target is Type.DOUBLE, f"nothing widens {expr.type.value} to {target.value}"
    return Call("to_double", (expr,), target)


def unify(source: Source, operands: Sequence[Typed], what: str, default: Type) -> tuple[Expr, ...]:
    """All operands in their common type; ``default`` if nothing but NULL is there."""
    target = common_type(source, operands, what) or default
    return tuple(coerce(source, operand, target) for operand in operands)
