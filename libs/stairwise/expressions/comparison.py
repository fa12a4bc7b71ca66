"""Comparisons by the one total order that WHERE, GROUP BY and the order of results share.

For DOUBLE it differs from IEEE: NaN equals NaN and is greater than everything else, infinity included, and
−0.0 equals 0.0. So ``x = x`` holds for every value, and rows that are grouped together also compare equal.
Strings compare by their UTF-8 bytes, FALSE is less than TRUE. A NULL on either side gives NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.arithmetic import Operand

_ARROW = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: str, left: Operand, right: Operand) -> Operand:
    """``left op right`` for two operands of one type."""
    if pa.types.is_boolean(left.type):
        left, right = pc.cast(left, pa.uint8()), pc.cast(right, pa.uint8())
    result = _ARROW[op](left, right)
    if not pa.types.is_floating(left.type):
        return result
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    if not (_any(nan_left) or _any(nan_right)):
        return result
    # Of two values of which one is a NaN, the NaN is the greater: compare "is it NaN" instead of the values.
    nan = _ARROW[op](pc.cast(nan_left, pa.uint8()), pc.cast(nan_right, pa.uint8()))
    return pc.if_else(pc.or_(nan_left, nan_right), nan, result)


def is_in(value: Operand, members: Sequence[Operand]) -> Operand:
    """SQL's IN: TRUE if a member equals, else NULL if the value or a member is NULL, else FALSE."""
    constants = [m for m in members if isinstance(m, pa.Scalar)]
    present = [m for m in constants if m.is_valid]
    found: Operand = pa.scalar(False)
    if len(present) > 4 and not pa.types.is_floating(value.type) and isinstance(value, pa.Array):
        found = pc.is_in(value, value_set=pa.array([m.as_py() for m in present], value.type))
        found = pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), found)
        members = [m for m in members if not isinstance(m, pa.Scalar)]
        if len(present) < len(constants):
            members = [*members, pa.scalar(None, value.type)]
    for member in members:
        found = pc.or_kleene(found, compare("=", value, member))
    return found


def _any(mask: Operand) -> bool:
    if isinstance(mask, pa.Scalar):
        return mask.as_py() is True
    return pc.any(mask).as_py() is True
