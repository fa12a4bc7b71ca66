"""What a condition is made of: the parts that must all hold, and the fields that they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stairwise.expressions.tree import Call, Expr, Field
from stairwise.schema import Type


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def fields(expr: Expr) -> Iterator[Field]:
    """The fields that an expression asks for."""
    if isinstance(expr, Field):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from fields(arg)


def all_of(conditions: Sequence[Expr]) -> Expr:
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), Type.BOOLEAN)


def balanced(op: str, operands: Sequence[Expr]) -> Expr:
    """``and`` or ``or`` over any number of operands as a tree of logarithmic depth."""
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    return Call(op, (balanced(op, operands[:middle]), balanced(op, operands[middle:])), Type.BOOLEAN)


def places(expr: Expr) -> frozenset[int]:
    """The places of the row that an expression looks at."""
    return frozenset(field.index for field in fields(expr))


def moved(expr: Expr, by: int) -> Expr:
    """The same over rows in which the columns stand so many places further on."""
    if isinstance(expr, Field):
        return replace(expr, index=expr.index + by)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(moved(arg, by) for arg in expr.args))
    return expr
