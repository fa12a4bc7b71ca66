"""The windowed join: pairs of rows of the same cell that satisfy the condition.

    answers        the rows of n inputs side by side where the WHERE (with its ON) holds
    update         per block of cells O(l + r + pairs): rows are matched by codes of their equality keys
    space          O(pairs) of the block
    order          none; NULL matches nothing
    from           seed 002 section 4.2 (windowed join)

The condition is cut at its ANDs. A conjunct that asks one input alone filters that input; equalities between the next
input and those joined already, written or following from others, are the keys that rows are matched by; every other
conjunct filters as soon as all the inputs that it asks are there. Next comes the input with most such keys. Without an
equality rows match by their cell alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from stairwise.algebra.conditions import Condition, Conjunct
from stairwise.algebra.query import Select
from stairwise.expressions.codes import encode
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.tree import Call, Expr
from stairwise.expressions.views import Bools, Ints
from stairwise.join.links import Equalities
from stairwise.schema import Type


@dataclass(frozen=True)
class _Joined:
    """Rows of the inputs joined so far: their cells and, for each input, which of its rows stands in each."""

    of: Ints
    at: dict[int, Ints]

    def keep(self, mask: Bools) -> _Joined:
        if mask.all():
            return self
        return _Joined(self.of[mask], {i: rows[mask] for i, rows in self.at.items()})


class Join:
    """The join of a SELECT. Columns are those of its input rows by position; unused ones may be None."""

    def __init__(self, select: Select) -> None:
        self._condition = Condition(select)
        self._inputs = len(select.inputs)
        values = Equalities(self._condition).values
        self._implied = [_equality(*sides) for value in values for sides in combinations(value.items(), 2)]
        """What follows from the equalities that are written: a.k = b.k AND b.k = c.k say a.k = c.k."""

    def pairs(
        self, cells: Sequence[Ints], columns: Sequence[pa.Array | None], faults: Faults
    ) -> tuple[Ints, list[Ints]]:
        """The cell of each joined row and, for each input, the row that stands in it.

        ``cells[i]`` are the cells of the rows of input i, ``columns`` their columns, all inputs' in a row.
        """
        waiting = list(self._condition.conjuncts)
        joined = self._alone(0, cells[0], columns, waiting, faults)
        left = list(range(1, self._inputs))
        while left:
            i = max(left, key=lambda new: len(self._keys(waiting, joined, new)))
            left.remove(i)
            other = self._alone(i, cells[i], columns, waiting, faults)
            keys = self._keys(waiting, joined, i)
            waiting = [c for c in waiting if c not in keys]
            joined = self._match(joined, other, i, keys, columns, faults)
            joined = self._filter(joined, columns, waiting, faults)
        return joined.of, [joined.at[i] for i in range(self._inputs)]

    def _alone(
        self, i: int, of: Ints, columns: Sequence[pa.Array | None], waiting: list[Conjunct], faults: Faults
    ) -> _Joined:
        """An input by itself, filtered by what asks it alone (the first takes conditions on nothing, too)."""
        rows = _Joined(of, {i: np.arange(len(of))})
        return self._filter(rows, columns, waiting, faults)

    def _filter(
        self, rows: _Joined, columns: Sequence[pa.Array | None], waiting: list[Conjunct], faults: Faults
    ) -> _Joined:
        for conjunct in [c for c in waiting if c.inputs <= rows.at.keys()]:
            waiting.remove(conjunct)
            rows = rows.keep(selects(conjunct.expr, self._side_by_side(rows, columns), len(rows.of), faults))
        return rows

    def _keys(self, waiting: list[Conjunct], joined: _Joined, new: int) -> list[Conjunct]:
        """The equalities by which a new input is matched: those that are written, else those that follow."""
        there = frozenset(joined.at)
        written = [c for c in waiting if self._is_key(c, there, new)]
        return written or [c for c in self._implied if self._is_key(c, there, new)]

    def _is_key(self, conjunct: Conjunct, joined: frozenset[int], new: int) -> bool:
        """Is it an equality with the new input on one side and inputs joined already on the other?"""
        expr = conjunct.expr
        if not (isinstance(expr, Call) and expr.op == "="):
            return False
        sides = [self._condition.inputs_of(arg) for arg in expr.args]
        return any(mine == {new} and bool(theirs) and theirs <= joined for mine, theirs in (sides, sides[::-1]))

    def _match(
        self,
        left: _Joined,
        right: _Joined,
        new: int,
        keys: list[Conjunct],
        columns: Sequence[pa.Array | None],
        faults: Faults,
    ) -> _Joined:
        left_keys, right_keys = [], []
        for key in keys:
            assert isinstance(key.expr, Call)
            first, second = key.expr.args
            mine, theirs = (first, second) if new in self._condition.inputs_of(first) else (second, first)
            right_keys.append(evaluate(mine, self._side_by_side(right, columns), len(right.of), faults))
            left_keys.append(evaluate(theirs, self._side_by_side(left, columns), len(left.of), faults))
        left_at, right_at = match(left.of, left_keys, right.of, right_keys)
        at = {i: rows[left_at] for i, rows in left.at.items()}
        return _Joined(left.of[left_at], {**at, new: right.at[new][right_at]})

    def _side_by_side(self, rows: _Joined, columns: Sequence[pa.Array | None]) -> list[pa.Array | None]:
        """The columns of the input rows as joined so far."""
        out: list[pa.Array | None] = [None] * len(columns)
        for i, at in rows.at.items():
            index = pa.array(at)
            for j in range(self._condition.starts[i], self._condition.starts[i + 1]):
                column = columns[j]
                out[j] = None if column is None else column.take(index)
        return out


def _equality(one: tuple[int, Expr], other: tuple[int, Expr]) -> Conjunct:
    return Conjunct(Call("=", (one[1], other[1]), Type.BOOLEAN), frozenset({one[0], other[0]}))


def match(left_of: Ints, left_keys: list[pa.Array], right_of: Ints, right_keys: list[pa.Array]) -> tuple[Ints, Ints]:
    """All pairs of a left and a right row of the same cell with equal keys, none of them NULL."""
    left_rows, right_rows = _without_null(left_of, left_keys), _without_null(right_of, right_keys)
    both = [pa.array(np.concatenate([left_of[left_rows], right_of[right_rows]]))]
    for mine, theirs in zip(left_keys, right_keys, strict=True):
        both.append(pa.concat_arrays([mine.take(pa.array(left_rows)), theirs.take(pa.array(right_rows))]))
    codes, _ = encode(both)
    left_codes, right_codes = codes[: len(left_rows)], codes[len(left_rows) :]
    order = np.argsort(right_codes, kind="stable")
    in_order = right_codes[order]
    start = np.searchsorted(in_order, left_codes, side="left")
    count = np.searchsorted(in_order, left_codes, side="right") - start
    right_at = right_rows[order[expand_ranges(start, count)]]  # first: it asks whether there is room
    return np.repeat(left_rows, count), right_at


def _without_null(of: Ints, keys: list[pa.Array]) -> Ints:
    valid = np.ones(len(of), bool)
    for key in keys:
        if key.null_count:
            valid &= key.is_valid().to_numpy(zero_copy_only=False)
    return np.flatnonzero(valid)
