"""Conditions that hold two inputs near in time: what they say about which rows are worth a look.

    a.ts BETWEEN b.ts − 2 s AND b.ts + 1 s          −2 s ≤ time of a − time of b ≤ 1 s

    b                 ●
    a        ╌╌┼──────┴───┼╌╌▶ time                 rows lie in order of time: a band is a run of them
              −2 s       +1 s

    answers        the least and the most by which the time of one input may be ahead of another's
    from           seed 001 section 5.2 (joins that look at rows in order of time)

A band only narrows down; the condition itself is still asked of every candidate. So bounds may be generous: rounded to
whole milliseconds, and open ones taken as closed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from stairwise.algebra.conditions import Condition
from stairwise.expressions.tree import Call, Const, Expr, Field
from stairwise.schema import Stream

_FARTHEST = 2**52
"""Beyond this a bound says nothing: doubles are not exact there."""


class Band(NamedTuple):
    """``least`` ≤ time of input ``later`` − time of input ``earlier``."""

    later: int
    earlier: int
    least: int


def bands_of(condition: Condition, streams: Sequence[Stream]) -> list[Band]:
    """The bands of a condition, each of which bounds one difference from below."""
    places = [
        None if stream.timestamp_by is None else start + stream.arrow_schema.get_field_index(stream.timestamp_by)
        for start, stream in zip(condition.starts, streams, strict=False)
    ]
    found: list[Band] = []
    for conjunct in condition.conjuncts:
        expr = conjunct.expr
        if not (isinstance(expr, Call) and expr.op in ("<", "<=", ">", ">=")):
            continue
        left, right = (_shifted(arg) for arg in expr.args)
        if left is None or right is None:
            continue
        (low, below), (high, above) = (left, right) if expr.op in ("<", "<=") else (right, left)
        if low in places and high in places and low != high and abs(below - above) < _FARTHEST:
            found.append(Band(places.index(high), places.index(low), math.floor(below - above)))
    return found


def _shifted(expr: Expr) -> tuple[int, float] | None:
    """The field that an expression moves by a constant, and by how much."""
    match expr:
        case Field(index=index):
            return index, 0.0
        case Call(op="to_double", args=(inner,)):
            return _shifted(inner)
        case Call(op="+" | "-" as op, args=(inner, Const(value=int() | float() as by))):
            found = _shifted(inner)
            return None if found is None else (found[0], found[1] + (by if op == "+" else -by))
        case Call(op="+", args=(Const(value=int() | float() as by), inner)):
            found = _shifted(inner)
            return None if found is None else (found[0], found[1] + by)
    return None
