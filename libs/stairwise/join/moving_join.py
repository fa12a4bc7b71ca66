"""The way of joined rows, from the ways of the rows that they are made of: every row that moves is joined.

    τ                  10              20              30
    a [ROWS 2 ..]      +a1 +a2         +a3 −a1
    b [RANGE 20 ..]    +b1                             −b1
    joined             +a1b1 +a2b1     +a3b1 −a1b1     −a2b1 −a3b1

    answers        the joined rows that come about and cease to be between reports
    update         O(1) amortised a row
    lookup         O(joined rows of which a row moves, and that the conditions beyond equality do not keep)
    space          the rows in the windows, and an index of them for each way to find them; no joined row
    order          report times ascend
    from           seed 002 section 4.2 (a joined row expires with the first of its rows; over windows that count rows
                   nobody can tell when that will be), seed 001 section 2.2 (negative tuples are joined as others are)

Rows that a report or more have in common are joined: a joined row begins with the last of its rows and ends with the
first. In a block of reports those are looked for of which a row moves, each once:

    of input 1 one that moves,          of all inputs behind it any
    of input 1 one that stays,          of input 2 one that moves,        of all inputs behind it any ...

One that ceases is made anew from its rows, so that nothing is kept of joined rows but what is counted of them above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Select
from stairwise.changes.passage import Moves, WindowPassage, together
from stairwise.expressions.conditions import fields
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.expressions.views import Ints, int64_view
from stairwise.join.links import Equalities
from stairwise.operators.preparation import computed, row_expressions
from stairwise.reports.cells import canonical_column
from stairwise.state.key_index import KeyIndex
from stairwise.state.row_buffer import TIME
from stairwise.state.row_log import RowLog

_MANY = 4096
"""Up to so many rows are not looked through for those that have left."""

_FEW = 1024
"""So many rows may move in a block of reports, or as many as are there: else most would never have met."""

_BEFORE, _BEHIND = -1, 2**62
"""A row that is there when a block of reports begins, and one that is there when it ends."""

Numbering = Callable[[Sequence[pa.Array], Rows], Ints]
"""Gives numbers to rows from their values and places."""


class _Input:
    """The rows of one input, from when they come until they leave its window."""

    def __init__(self, schema: pa.Schema, passage: WindowPassage) -> None:
        self._rows = RowLog(schema)
        self._schema, self.passage = schema, passage
        self._kept = 0
        self._indexes: dict[tuple[Expr, ...], KeyIndex] = {}
        self.begin, self.end = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """By row, the reports of the block at which it enters and leaves."""

    def numbers(self, values: Sequence[pa.Array], places: Rows) -> Ints:
        """The numbers of new rows, under which they stand in their passage."""
        return self._rows.append(pa.RecordBatch.from_arrays([*values, pa.array(places.time)], schema=self._schema))

    def index(self, exprs: tuple[Expr, ...]) -> KeyIndex:
        return self._indexes.setdefault(exprs, KeyIndex([expr.type.arrow for expr in exprs]))

    def columns(self, rows: Ints, width: int) -> tuple[list[pa.Array | None], Ints]:
        """The columns of some rows at their places in an input row, and their times."""
        taken = self._rows.take(rows)
        columns: list[pa.Array | None] = [None] * width
        for name, column in zip(taken.schema.names[:-1], taken.columns[:-1], strict=True):
            columns[int(name)] = column
        return columns, int64_view(taken.column(TIME))

    def begin_block(self, moves: Moves, width: int) -> Ints:
        """Let rows enter; those that leave are still there. Gives those that move."""
        more = len(self._rows) - len(self.begin)
        if more > 0:
            self.begin = np.concatenate([self.begin, np.full(2 * more, _BEFORE, np.int64)])
            self.end = np.concatenate([self.end, np.full(2 * more, _BEHIND, np.int64)])
        enters = moves.diff > 0
        entered = moves.number[enters]
        self.begin[entered], self.end[moves.number[~enters]] = moves.report[enters], moves.report[~enters]
        columns, _ = self.columns(entered, width)
        for exprs, index in self._indexes.items():
            index.add(keys_of(exprs, columns, len(entered)), entered)
        return np.unique(moves.number)

    def stays(self, rows: Ints) -> np.ndarray:
        """Which rows do not move in this block."""
        return np.asarray((self.begin[rows] == _BEFORE) & (self.end[rows] == _BEHIND))

    def end_block(self, moves: Moves) -> None:
        """Let rows leave."""
        left = moves.number[moves.diff < 0]
        for index in self._indexes.values():
            index.remove(left)
        self.begin[moves.number], self.end[moves.number] = _BEFORE, _BEHIND

    def forget(self) -> None:
        """Forget rows that have left, when there are many."""
        if len(self._rows) > 2 * self._kept + _MANY:
            numbers = self._rows.keep(np.unique(self.passage.numbers()))
            self._kept = len(self._rows)
            self.passage.renumber(numbers)
            for index in self._indexes.values():
                index.renumber(numbers)


class MovingJoin:
    """The way of the joined rows of a SELECT; their numbers are given when they move, and mean nothing later."""

    def __init__(self, select: Select, passages: Sequence[WindowPassage], faults: Faults) -> None:
        """``passages`` are the ways of the rows of each input, under the numbers that they get here."""
        self._select, self._faults = select, faults
        condition = Condition(select)
        self._width = condition.starts[-1]
        self._conjuncts = [conjunct for conjunct in condition.conjuncts if len(conjunct.inputs) > 1]
        asked = asked_columns(select, condition)
        types = [column.type.arrow for source in select.inputs for column in source.stream.columns]
        schemas = [pa.schema([*((str(i), types[i]) for i in mine), (TIME, pa.int64())]) for mine in asked]
        self.inputs = [_Input(schema, passage) for schema, passage in zip(schemas, passages, strict=True)]
        values = Equalities(condition).values
        self._orders = [_order(i, len(self.inputs), values) for i in range(len(self.inputs))]
        for order in self._orders:
            for other, exprs, _ in order:
                self.inputs[other].index(exprs)
        self._there = 0
        """How many rows are in the windows."""
        self._numbering: Numbering | None = None

    def number_by(self, numbering: Numbering) -> None:
        """Who counts joined rows says under which number each is known."""
        self._numbering = numbering

    def numbers(self) -> Ints:
        return np.zeros(0, np.int64)

    def renumber(self, numbers: Ints) -> None:
        """No number is kept here."""

    def moves(self, times: Ints) -> Moves:
        """What comes about and what ceases up to the last of some report times, all behind those asked for before."""
        moves = [one.passage.moves(times).by_report() for one in self.inputs]
        before = np.cumsum(np.bincount(np.concatenate([own.report for own in moves]), minlength=len(times)))
        parts, start = [], 0
        while start < len(times):
            most = before[start] + max(_FEW, self._there)
            stop = max(start + 1, int(np.searchsorted(before, most, side="right")))
            parts.append(self._block([own.between(start, stop) for own in moves]))
            start = stop
        for one in self.inputs:
            one.forget()
        return together(parts)

    def _block(self, moves: list[Moves]) -> Moves:
        """What moves at some reports."""
        moved = [one.begin_block(own, self._width) for one, own in zip(self.inputs, moves, strict=True)]
        found = [self._found(i, rows) for i, rows in enumerate(moved)]
        joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        begin = np.max([one.begin[rows] for one, rows in zip(self.inputs, joined, strict=True)], axis=0)
        end = np.min([one.end[rows] for one, rows in zip(self.inputs, joined, strict=True)], axis=0)
        comes, ceases = (begin != _BEFORE) & (begin < end), (begin == _BEFORE) & (end != _BEHIND)
        new, fresh = self._numbered(joined, np.flatnonzero(comes), self._faults)
        old, gone = self._numbered(joined, np.flatnonzero(ceases), Faults())
        for one, own in zip(self.inputs, moves, strict=True):
            one.end_block(own)
            self._there += int(own.diff.sum())
        brief = end[new] != _BEHIND
        number = np.concatenate([fresh, fresh[brief], gone])
        report = np.concatenate([begin[new], end[new[brief]], end[old]])
        return Moves(number, report, np.repeat([1, -1], [len(fresh), len(number) - len(fresh)]))

    def _found(self, first: int, rows: Ints) -> list[Ints]:
        """Rows of all inputs that may join: of one those that move, of those before it such as stay."""
        at = {first: rows}
        for other, exprs, probing in self._orders[first]:
            keys = []
            for i, expr in probing:
                columns, _ = self.inputs[i].columns(at[i], self._width)
                keys += keys_of((expr,), columns, len(at[i]))
            probe, partner = self.inputs[other].index(exprs).probe(keys, len(at[first]))
            if other < first:
                stays = self.inputs[other].stays(partner)
                probe, partner = probe[stays], partner[stays]
            at = {i: mine[probe] for i, mine in at.items()} | {other: partner}
        return [at[i] for i in range(len(self.inputs))]

    def _numbered(self, joined: list[Ints], some: Ints, faults: Faults) -> tuple[Ints, Ints]:
        """Those of some joined rows that the whole condition keeps, and their numbers."""
        columns, times = self._side_by_side([rows[some] for rows in joined])
        for conjunct in self._conjuncts:
            keep = selects(conjunct.expr, columns, len(some), faults)
            if not keep.all():
                mask = pa.array(keep)
                columns = [None if column is None else column.filter(mask) for column in columns]
                some, times = some[keep], times[keep]
        values = [canonical_column(column) for _, column in computed(self._select, columns, len(some), faults)]
        assert self._numbering is not None
        nowhere = np.zeros(len(some), np.int64)
        return some, self._numbering(values, Rows(times, nowhere.astype(np.int32), nowhere))

    def _side_by_side(self, joined: list[Ints]) -> tuple[list[pa.Array | None], Ints]:
        """The columns of joined rows, and their times: those of their latest rows."""
        columns: list[pa.Array | None] = [None] * self._width
        times: list[Ints] = []
        for one, rows in zip(self.inputs, joined, strict=True):
            mine, time = one.columns(rows, self._width)
            columns = [theirs if own is None else own for own, theirs in zip(mine, columns, strict=True)]
            times.append(time)
        return columns, np.max(times, axis=0)


def asked_columns(select: Select, condition: Condition) -> list[list[int]]:
    """For each input, the places of its columns in an input row that are asked for once it is joined."""
    exprs = [expr for _, expr in row_expressions(select)]
    exprs += [conjunct.expr for conjunct in condition.conjuncts if len(conjunct.inputs) > 1]
    asked = sorted({field.index for expr in exprs for field in fields(expr)})
    bounds = zip(condition.starts, condition.starts[1:], strict=False)
    return [[i for i in asked if start <= i < stop] for start, stop in bounds]


def keys_of(exprs: Sequence[Expr], columns: list[pa.Array | None], length: int) -> list[pa.Array]:
    return [canonical_column(evaluate(expr, columns, length, Faults())) for expr in exprs]


_Step = tuple[int, tuple[Expr, ...], list[tuple[int, Expr]]]
"""An input, the key by which its rows are found, and what of which inputs is looked for."""


def _order(first: int, inputs: int, values: Sequence[Mapping[int, Expr]]) -> list[_Step]:
    """In which order the other inputs are found from one: next is the one that has most in common with those before."""
    steps: list[_Step] = []
    found = [first]
    while len(found) < inputs:
        steps.append(max((_step(i, found, values) for i in range(inputs) if i not in found), key=lambda s: len(s[1])))
        found.append(steps[-1][0])
    return steps


def _step(i: int, found: Sequence[int], values: Sequence[Mapping[int, Expr]]) -> _Step:
    common = [value for value in values if i in value and any(other in value for other in found)]
    probing = [next((other, value[other]) for other in found if other in value) for value in common]
    return i, tuple(value[i] for value in common), probing
