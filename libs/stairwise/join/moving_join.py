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

A table is an input whose rows are replaced key by key. Of one that is not retroactive (seed 001's NRR) a joined row has
the update that held when the rows of the streams came together. So updates do not move, and nothing is looked for when
one comes:

    n (NON RETROACTIVE)   k1 ───────┤k2 ──────────▶       a1 k1, a2 k2 and a3 k2; k2 changes nothing of a1
    a                        a1        a2    a3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Select
from stairwise.changes.passage import Moves, VersionPassage, WindowPassage, together
from stairwise.expressions.conditions import fields
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.expressions.views import Bools, Ints
from stairwise.join.links import Equalities
from stairwise.operators.preparation import computed, row_expressions
from stairwise.reports.cells import canonical_column
from stairwise.reports.moments import Moments
from stairwise.schema import Instant
from stairwise.state.chains import GrowingInts
from stairwise.state.key_index import KeyIndex
from stairwise.state.row_log import RowLog
from stairwise.windows.spec import RelationWindow

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
        self._times = GrowingInts()
        self.passage = passage
        self._kept = 0
        self._indexes: dict[tuple[Expr, ...], KeyIndex] = {}
        self.begin, self.end = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """By row, the reports of the block at which it enters and leaves."""

    def numbers(self, values: Sequence[pa.Array], places: Rows) -> Ints:
        """The numbers of new rows, under which they stand in their passage."""
        self._times.extend(places.time)
        return self._rows.append(values, len(places.time))

    def index(self, exprs: tuple[Expr, ...]) -> KeyIndex:
        return self._indexes.setdefault(exprs, KeyIndex([expr.type.arrow for expr in exprs]))

    def columns(self, rows: Ints, width: int) -> list[pa.Array | None]:
        """The columns of some rows at their places in an input row."""
        taken = self._rows.take(rows)
        columns: list[pa.Array | None] = [None] * width
        for name, column in zip(taken.schema.names, taken.columns, strict=True):
            columns[int(name)] = column
        return columns

    def begin_block(self, moves: Moves, width: int) -> Ints:
        """Let rows enter; those that leave are still there. Gives those that move."""
        more = len(self._rows) - len(self.begin)
        if more > 0:
            self.begin = np.concatenate([self.begin, np.full(2 * more, _BEFORE, np.int64)])
            self.end = np.concatenate([self.end, np.full(2 * more, _BEHIND, np.int64)])
        enters = moves.diff > 0
        entered = moves.number[enters]
        self.begin[entered], self.end[moves.number[~enters]] = moves.report[enters], moves.report[~enters]
        if self._indexes:
            columns = self.columns(entered, width)
            for exprs, index in self._indexes.items():
                index.add(keys_of(exprs, columns, len(entered)), entered)
        return np.unique(moves.number)

    def times(self, rows: Ints) -> Ints:
        """When some rows were."""
        return self._times.at(rows)

    def oldest(self, reached: Instant) -> Instant:
        """The time of the first row that is there, or above which the next ones will be."""
        return int(self.times(self.passage.numbers()).min(initial=reached))

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
        if self.are_many:
            kept = np.unique(self.passage.numbers())
            numbers, times = self._rows.keep(kept), self._times.at(kept)
            self._kept, self._times = len(self._rows), GrowingInts()
            self._times.extend(times)
            self.passage.renumber(numbers)
            for index in self._indexes.values():
                index.renumber(numbers)

    @property
    def are_many(self) -> bool:
        return len(self._rows) > 2 * self._kept + _MANY


class _Versions(_Input):
    """The updates of a table that is not retroactive, as long as a row can ask for them."""

    passage: VersionPassage

    def begin_block(self, moves: Moves, width: int) -> Ints:
        """Let updates enter, which move no joined row."""
        super().begin_block(moves, width)
        self.begin[moves.number] = _BEFORE
        return np.zeros(0, np.int64)

    def hold(self, rows: Ints, came: Ints) -> Bools:
        """Were some updates the last of their keys at some instants?"""
        return np.asarray((self.times(rows) <= came) & (came < self.passage.until(rows)))

    def forget_replaced(self, upto: Instant) -> None:
        """Forget updates that were replaced by an instant, when there are many."""
        if self.are_many:
            before = self.passage.numbers()
            self.passage.forget_replaced(upto)
            gone = np.setdiff1d(before, self.passage.numbers())
            for index in self._indexes.values():
                index.remove(gone)


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
        schemas = [pa.schema([(str(i), types[i]) for i in mine]) for mine in asked]
        self.inputs = [
            _Versions(schema, passage) if isinstance(passage, VersionPassage) else _Input(schema, passage)
            for schema, passage in zip(schemas, passages, strict=True)
        ]
        self._versions = {i: one for i, one in enumerate(self.inputs) if isinstance(one, _Versions)}
        relations = [isinstance(source.window, RelationWindow) for source in select.inputs]
        self._streams = [i for i, is_relation in enumerate(relations) if not is_relation]
        values = Equalities(condition).values
        moving = [i for i in range(len(self.inputs)) if i not in self._versions]
        self._orders = {i: _order(i, len(self.inputs), values) for i in moving}
        for order in self._orders.values():
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

    def moves(self, moments: Moments) -> Moves:
        """What comes about and what ceases up to the last of some moments, all behind those asked for before."""
        moves = [one.passage.moves(moments).by_report() for one in self.inputs]
        before = np.cumsum(np.bincount(np.concatenate([own.report for own in moves]), minlength=len(moments)))
        parts, start = [], 0
        while start < len(moments):
            most = before[start] + max(_FEW, self._there)
            stop = max(start + 1, int(np.searchsorted(before, most, side="right")))
            parts.append(self._block([own.between(start, stop) for own in moves]))
            start = stop
        self._forget(int(moments.times[-1]))
        return together(parts)

    def _forget(self, reached: Instant) -> None:
        if any(one.are_many for one in self._versions.values()):
            asked = max(self.inputs[i].oldest(reached) for i in self._streams)
            for table in self._versions.values():
                table.forget_replaced(asked - 1)
        for one in self.inputs:
            one.forget()

    def _block(self, moves: list[Moves]) -> Moves:
        """What moves at some reports."""
        moved = [one.begin_block(own, self._width) for one, own in zip(self.inputs, moves, strict=True)]
        found = [self._found(i, moved[i]) for i in self._orders]
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
                columns = self.inputs[i].columns(at[i], self._width)
                keys += keys_of((expr,), columns, len(at[i]))
            probe, partner = self.inputs[other].index(exprs).probe(keys, len(at[first]))
            if other < first:
                stays = self.inputs[other].stays(partner)
                probe, partner = probe[stays], partner[stays]
            at = {i: mine[probe] for i, mine in at.items()} | {other: partner}
        return self._as_of([at[i] for i in range(len(self.inputs))])

    def _as_of(self, joined: list[Ints]) -> list[Ints]:
        """Those of some joined rows that have the updates which held when their rows came together."""
        if not self._versions:
            return joined
        came = np.max([self.inputs[i].times(joined[i]) for i in self._streams], axis=0)
        holds = np.logical_and.reduce([one.hold(joined[i], came) for i, one in self._versions.items()])
        return [rows[holds] for rows in joined]

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
            mine = one.columns(rows, self._width)
            columns = [theirs if own is None else own for own, theirs in zip(mine, columns, strict=True)]
            times.append(one.times(rows))
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
