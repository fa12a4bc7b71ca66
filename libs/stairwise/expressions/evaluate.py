"""Expressions over the columns of a batch, a whole column at a time, with SQL's three-valued logic.

    CASE WHEN b <> 0 THEN a / b ELSE 0 END            Field, Const and Call of cql.query
        rows     b <> 0     a / b      taken          every branch is evaluated for all rows,
        (6, 3)   true       2          2              a fault counts only in a row that takes the branch
        (6, 0)   false      NULL       0

What has no answer is NULL and is counted, never raised and never a wrong number: BIGINT and HUGEINT results
that their type cannot hold, texts that CAST finds no value in, division by zero (of DOUBLE too). All
other DOUBLE arithmetic is IEEE's.
Comparisons follow the total order of ``comparison``: NaN equals NaN and is greater than everything, −0.0
equals 0.0.

``round`` rounds halves away from zero. ``lower`` and ``upper`` map code points one by one. ``length`` counts
code points. In LIKE ``%`` stands for any text, ``_`` for one code point, everything else for itself (there is
no escape). The later arguments of COALESCE are, as in its definition by CASE, only asked where the earlier
ones are NULL. AND and OR ask all their arguments.

A constant stays a scalar until the end, so that ``price > 10`` never sees a column of tens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions import arithmetic
from stairwise.expressions.arithmetic import Operand
from stairwise.expressions.casts import CASTS
from stairwise.expressions.comparison import compare, is_in
from stairwise.expressions.faults import Faults
from stairwise.expressions.functions import KERNELS
from stairwise.expressions.tree import Call, Const, Expr, Field
from stairwise.expressions.views import Bools, bool_values
from stairwise.schema import Type


def evaluate(expr: Expr, columns: Sequence[pa.Array], length: int, faults: Faults | None = None) -> pa.Array:
    """The expression's value for each of ``length`` rows: a column of exactly ``expr.type.arrow``."""
    evaluation = _Evaluation(columns, length, faults if faults is not None else Faults())
    result = evaluation.value(expr, None)
    return pa.repeat(result, length) if isinstance(result, pa.Scalar) else result


def selects(predicate: Expr, columns: Sequence[pa.Array], length: int, faults: Faults | None = None) -> Bools:
    """Which rows a WHERE or HAVING keeps: those for which the predicate is TRUE, not FALSE or NULL."""
    return bool_values(evaluate(predicate, columns, length, faults))


class _Evaluation:
    """One walk over one batch. ``asked`` is the mask of rows whose value is wanted; None means all."""

    def __init__(self, columns: Sequence[pa.Array], length: int, faults: Faults) -> None:
        self._columns = columns
        self._length = length
        self._faults = faults

    def value(self, expr: Expr, asked: Bools | None) -> Operand:
        match expr:
            case Field():
                return self._columns[expr.index]
            case Const():
                return constant(expr)
            case Call(op="case"):
                return self._case(expr, asked)
            case Call(op="coalesce"):
                return self._coalesce(expr, asked)
            case Call():
                return self._typed(self._call(expr, asked), expr.type, asked)

    def _call(self, call: Call, asked: Bools | None) -> Operand:
        args = [self.value(arg, asked) for arg in call.args]
        match call.op:
            case "+":
                return self._overflow(arithmetic.add(*args), asked)
            case "-":
                return self._overflow(arithmetic.subtract(*args), asked)
            case "*":
                return self._overflow(arithmetic.multiply(*args), asked)
            case "/":
                quotient, overflow, zero = arithmetic.divide(*args)
                self._faults.overflow += self._count(overflow, asked)
                self._faults.division += self._count(zero, asked)
                return quotient
            case "%":
                remainder, zero = arithmetic.modulo(*args)
                self._faults.division += self._count(zero, asked)
                return remainder
            case "neg":
                return self._overflow(arithmetic.negate(*args), asked)
            case "=" | "<>" | "<" | "<=" | ">" | ">=":
                return compare(call.op, *args)
            case "in":
                return is_in(args[0], args[1:])
            case op if op in CASTS:
                return self._column_by_column(CASTS[op], args, asked)
            case op if op in KERNELS:
                kernel = KERNELS[op].kernel
                assert kernel is not None
                return self._column_by_column(kernel, args, asked) if KERNELS[op].fails else kernel(*args)
            case _:
                return _OPERATORS[call.op](*args)

    def _column_by_column(
        self, kernel: Callable[..., tuple[Operand, Bools]], args: list[Operand], asked: Bools | None
    ) -> Operand:
        """A kernel that may fail. Its first argument is a column to it, also where it is a constant."""
        first, *others = args
        if not isinstance(first, pa.Scalar):
            return self._overflow(kernel(first, *others), asked)
        result, wrong = kernel(pa.array([first.as_py()], first.type), *others)
        return self._overflow((result[0], np.asarray(wrong.any())), asked)

    def _case(self, call: Call, asked: Bools | None) -> Operand:
        *pairs, otherwise = call.args
        branches: list[tuple[Operand, Operand]] = []
        left = self._all(asked)
        for when, then in zip(pairs[::2], pairs[1::2], strict=True):
            condition = self.value(when, left)
            condition = pc.coalesce(condition, pa.scalar(False))
            taken = self._mask(condition)
            branches.append((condition, self.value(then, left & taken)))
            left = left & ~taken
        result = self.value(otherwise, left)
        for condition, outcome in reversed(branches):
            result = pc.if_else(condition, outcome, result)
        return result

    def _coalesce(self, call: Call, asked: Bools | None) -> Operand:
        result = self.value(call.args[0], asked)
        left = self._all(asked)
        for arg in call.args[1:]:
            left = left & self._mask(pc.is_null(result))
            result = pc.coalesce(result, self.value(arg, left))
        return result

    def _typed(self, value: Operand, wanted: Type, asked: Bools | None) -> Operand:
        """``floor`` and its like answer in DOUBLE; where the query says BIGINT the number must fit."""
        if value.type == wanted.arrow:
            return value
        if pa.types.is_floating(value.type) and wanted.arrow == pa.int64():
            return self._overflow(arithmetic.to_bigint(value), asked)
        return pc.cast(value, wanted.arrow)

    def _overflow(self, outcome: tuple[Operand, Bools], asked: Bools | None) -> Operand:
        result, wrong = outcome
        self._faults.overflow += self._count(wrong, asked)
        return result

    def _count(self, wrong: Bools, asked: Bools | None) -> int:
        """Faults among the rows asked for. What a scalar got wrong, it got wrong in each of them."""
        if not wrong.any():
            return 0
        if wrong.ndim == 0:
            return self._length if asked is None else int(np.count_nonzero(asked))
        return int(np.count_nonzero(wrong if asked is None else wrong & asked))

    def _all(self, asked: Bools | None) -> Bools:
        return np.ones(self._length, np.bool_) if asked is None else asked

    def _mask(self, condition: Operand) -> Bools:
        if isinstance(condition, pa.Scalar):
            return np.full(self._length, condition.as_py() is True)
        return bool_values(condition)


def constant(const: Const) -> pa.Scalar:
    """A literal as an Arrow scalar of its own type."""
    value = const.value
    if const.type is Type.HUGEINT and isinstance(value, int):
        return pa.scalar(Decimal(value), const.type.arrow)
    if const.type is Type.DOUBLE and isinstance(value, int):
        return pa.scalar(float(value), const.type.arrow)
    return pa.scalar(value, const.type.arrow)


def _like(text: Operand, pattern: Operand) -> Operand:
    literal = pattern.as_py()
    if literal is None:
        return pc.if_else(pc.is_null(text), pa.scalar(None, pa.bool_()), pa.scalar(None, pa.bool_()))
    if "\\" in literal:  # which Arrow takes for an escape, and not even in every place
        return pc.match_substring_regex(text, _regex(literal))
    return pc.match_like(text, literal)


def _regex(pattern: str) -> str:
    wild = {"%": ".*", "_": "."}
    return rf"(?s)\A{''.join(wild.get(letter) or re.escape(letter) for letter in pattern)}\z"


_OPERATORS: dict[str, Callable[..., Operand]] = {
    "and": lambda *args: reduce(pc.and_kleene, args),
    "or": lambda *args: reduce(pc.or_kleene, args),
    "not": pc.invert,
    "is_null": pc.is_null,
    "like": _like,
    "to_double": arithmetic.to_double,
    "excess": arithmetic.excess,
    "to_hugeint": lambda value: pc.cast(value, pa.decimal128(38, 0)),
}
