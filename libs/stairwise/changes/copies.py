"""How many copies of each value a query has, counted up and down by rows that enter and leave its windows.

τ      rows of one SELECT                    copies of k    SELECT    SELECT DISTINCT
10     k and k enter                         2              +k +k     +k
20     one leaves                            1              −k
30     the other leaves                      0              −k        −k

answers        ISTREAM, DSTREAM and CHANGES from the moves of rows (``changes.passage``)
update         changes O(m log m) for m rows that entered or left, whatever the windows hold
space          the copies of each value on each side
order          report times ascend
from           seed 002 section 4.3 (multiplicities); seed 001 section 3.5.2 (delta*: duplicates are eliminated by
               counts, and no input is stored)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.query import Emit, Except, Query, Relation, Select, Union, Widen
from stairwise.changes.passage import Moves, Way
from stairwise.expressions.views import Ints
from stairwise.reports.answers import ranked
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import output_schema
from stairwise.reports.moments import Moments
from stairwise.state.chains import in_order
from stairwise.state.key_table import KeyTable

_MANY = 4096


class _Side:
    """One SELECT: the way of its rows through its window, and how many copies of each value are in it."""

    def __init__(self, passage: Way) -> None:
        self.passage = passage
        self.copies = np.zeros(0, np.int64)

    def copies_of(self, keys: Ints) -> Ints:
        if len(keys) and keys.max() >= len(self.copies):
            room = np.zeros(2 * (int(keys.max()) + 1), np.int64)
            room[: len(self.copies)] = self.copies
            self.copies = room
        found: Ints = self.copies[keys]
        return found

    def renumber(self, numbers: Ints, used: Ints) -> None:
        self.passage.renumber(numbers)
        copies = self.copies_of(used)
        self.copies = np.zeros(len(numbers), np.int64)
        self.copies[numbers[used]] = copies


class Copies:
    """What a query shows of the rows of its SELECTs, of each of which it is known when it will show."""

    def __init__(self, query: Query, passages: Sequence[Way]) -> None:
        """``passages``: the way of the rows of each SELECT, which stand there under the numbers of their values."""
        self.query = query
        self._sides = [_Side(passage) for passage in passages]
        self._schema = output_schema(query)
        self._keys = KeyTable([field.type for field in self._schema])
        self._kept = 0

    def numbers(self, values: Sequence[pa.Array], places: Rows) -> Ints:
        """The numbers of rows, by their values in the one spelling: they hold until changes are asked for."""
        return self._keys.numbers(values, len(places.time))

    def changes(self, moments: Moments) -> Emissions:
        """What changes at some moments, at least one, all behind those that were asked for before."""
        lines = self._lines(moments, [side.passage.moves(moments) for side in self._sides])
        self._forget()
        return lines

    def _lines(self, moments: Moments, moves: list[Moves]) -> Emissions:
        """From what moved on each side to what changed: for each value and time, its copies before and after."""
        key = np.concatenate([keys for keys, _, _ in moves])
        report = np.concatenate([reports for _, reports, _ in moves])
        if not len(key):
            return self._emissions(moments, key, report, key)
        value, at = in_order([key, report])
        new = np.concatenate(([True], (value[1:] != value[:-1]) | (at[1:] != at[:-1])))
        value, at = value[new], at[new]
        first = np.concatenate(([True], value[1:] != value[:-1]))
        before, after = [], []
        for side, (keys, reports, diff) in zip(self._sides, moves, strict=True):
            place = np.searchsorted(value * len(moments) + at, keys * len(moments) + reports)
            moved = np.bincount(place, weights=diff, minlength=len(value)).astype(np.int64)
            total = np.cumsum(moved)
            start = np.flatnonzero(first)
            base = np.repeat((total - moved)[start], np.diff(np.append(start, len(value))))
            now = side.copies_of(value) + total - base
            before.append(now - moved)
            after.append(now)
        last = np.append(first[1:], True)
        for side, now in zip(self._sides, after, strict=True):
            side.copies[value[last]] = now[last]
        change = copies(self.query.relation, iter(after)) - copies(self.query.relation, iter(before))
        if self.query.emit is Emit.ISTREAM:
            change = np.maximum(change, 0)
        if self.query.emit is Emit.DSTREAM:
            change = np.minimum(change, 0)
        return self._emissions(moments, value, at, change)

    def _emissions(self, moments: Moments, value: Ints, report: Ints, change: Ints) -> Emissions:
        value = np.repeat(value, np.abs(change))
        columns = self._keys.columns(value)
        report, diff = np.repeat(report, np.abs(change)), np.repeat(np.sign(change), np.abs(change))
        order = np.lexsort([ranked(columns, len(value)), diff, report])
        at = pa.array(order)
        rows = pa.RecordBatch.from_arrays([column.take(at) for column in columns], schema=self._schema)
        times, ordinals = moments.times[report[order]], moments.ordinals[report[order]]
        return Emissions(times, ordinals, diff[order].astype(np.int8), rows, len(moments))

    def _forget(self) -> None:
        """Forget the values that no window holds or will hold, when there are twice as many as after the last time."""
        if len(self._keys) <= 2 * self._kept + _MANY:
            return
        parts = [part for side in self._sides for part in (side.passage.numbers(), np.flatnonzero(side.copies))]
        used = np.unique(np.concatenate(parts))
        self._kept = len(used)
        numbers = self._keys.keep(used)
        for side in self._sides:
            side.renumber(numbers, used)


def copies(relation: Relation, sides: Iterator[Ints]) -> Ints:
    """How many copies of each value a relation has, from those of its SELECTs, left to right."""
    match relation:
        case Select():
            found = next(sides)
            return np.minimum(found, 1) if relation.distinct else found
        case Union():
            return copies(relation.left, sides) + copies(relation.right, sides)
        case Except():
            left, right = copies(relation.left, sides), copies(relation.right, sides)
            return np.asarray(np.maximum(left - right, 0))
        case Widen():
            raise TypeError("values are counted in one type")
