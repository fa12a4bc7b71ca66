"""The changes of SELECT, UNION ALL and EXCEPT over time windows, by positive and negative tuples.

    SELECT k FROM a [..] EXCEPT SELECT k FROM b [..]

    τ      a          b          copies of k on the left, on the right        k1 − k2, not below 0      shown
    10     +k +k                 2, 0                                         2                         +k +k
    20                +k         2, 1                                         1                         −k
    30     −k −k                 0, 1                                         0                         −k
    40                −k         0, 0                                         0

    answers        ISTREAM, DSTREAM and CHANGES of one query
    update         O(log r) a row; changes O(rows that entered or left any of its windows), whatever these hold
    lookup         none of its own
    space          two numbers for each row in a window, and the copies of each value on each side
    order          blocks in order, each once
    from           seed 002 section 4.3 (difference: multiplicities go up and down with both windows, Proposition 8);
                   seed 001 sections 3.2.2 and 3.5.2 (STR: negative tuples; calendar queue)

A row is put under the day on which it will leave when it comes (``calendar``): what falls out is the negative tuple,
and difference, whose results nobody can tell the end of, takes both kinds. Selection and union let them pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from stairwise.cql.query import Emit, Except, Query, Relation, Select, Union
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.answers import ranked
from stairwise.operators.calendar import CalendarQueue
from stairwise.operators.chains import in_order
from stairwise.operators.emission import Emissions
from stairwise.operators.expansion import output_schema
from stairwise.operators.keys import KeyTable
from stairwise.operators.lifetimes import lifetimes
from stairwise.sharing.due import Life
from stairwise.sharing.flow import Flow, FlowBlock
from stairwise.sharing.roster import own_times, windows_of
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import TimeWindow

_MANY = 4096


class _Side:
    """One SELECT: when its rows enter and leave its window, and how many copies of each value are in it."""

    def __init__(self, window: TimeWindow) -> None:
        self.window = window
        self.coming, self.going = CalendarQueue(window.slide), CalendarQueue(window.slide)
        self.copies = np.zeros(0, np.int64)

    def add(self, flow_times: Ints, keys: Ints) -> None:
        begins, ends = lifetimes([self.window], [flow_times])
        shows = begins < ends
        self.coming.push(begins[shows], keys[shows])
        self.going.push(ends[shows], keys[shows])

    def moves(self, times: Ints) -> tuple[Ints, Ints, Ints]:
        """What enters (+1) and leaves (−1) up to the last time: values, numbers of the times, diffs."""
        entered, came = self.coming.pop(int(times[-1]))
        left, went = self.going.pop(int(times[-1]))
        report = np.searchsorted(times, np.concatenate([entered, left]), side="left")
        diff = np.repeat([1, -1], [len(came), len(went)])
        return np.concatenate([came, went]), report, diff

    def copies_of(self, keys: Ints) -> Ints:
        if len(keys) and keys.max() >= len(self.copies):
            room = np.zeros(2 * (int(keys.max()) + 1), np.int64)
            room[: len(self.copies)] = self.copies
            self.copies = room
        found: Ints = self.copies[keys]
        return found

    def renumber(self, numbers: Ints, used: Ints) -> None:
        self.coming.renumber(numbers)
        self.going.renumber(numbers)
        copies = self.copies_of(used)
        self.copies = np.zeros(len(numbers), np.int64)
        self.copies[numbers[used]] = copies


class FlowExpansion:
    """What one query shows of its signature's rows."""

    def __init__(self, query: Query, life: Life) -> None:
        self.query, self.life = query, life
        self.faults = Faults()
        windows = windows_of(query)
        self._sides = [_Side(window) for window in windows if isinstance(window, TimeWindow)]
        self._grids = [grid for window in windows for grid in report_grids(window)]
        self._schema = output_schema(query)
        self._keys = KeyTable([field.type for field in self._schema])

    def expand(self, block: FlowBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        for side, flow in zip(self._sides, block.flows, strict=True):
            self._add(side, flow)
        times = own_times(block.times, self.life, self._grids, block.first_row, block.sealed_at)
        times = times[np.logical_or.reduce([(times - grid.offset) % grid.slide == 0 for grid in self._grids])]
        if not len(times):
            return None
        moves = [side.moves(times) for side in self._sides]
        lines = self._lines(times, moves)
        self._forget()
        return lines

    def _add(self, side: _Side, flow: Flow) -> None:
        seen = flow.times > self.life.horizon
        if not seen.any():
            return
        mask = pa.array(seen)
        values = flow.values if seen.all() else [column.filter(mask) for column in flow.values]
        side.add(flow.times[seen], self._keys.numbers(values, int(np.count_nonzero(seen))))

    def _lines(self, times: Ints, moves: list[tuple[Ints, Ints, Ints]]) -> Emissions:
        """From what moved on each side to what changed: for each value and time, its copies before and after."""
        key = np.concatenate([keys for keys, _, _ in moves])
        report = np.concatenate([reports for _, reports, _ in moves])
        if not len(key):
            return self._emissions(times, key, report, key)
        value, at = in_order([key, report])
        new = np.concatenate(([True], (value[1:] != value[:-1]) | (at[1:] != at[:-1])))
        value, at = value[new], at[new]
        first = np.concatenate(([True], value[1:] != value[:-1]))
        before, after = [], []
        for side, (keys, reports, diff) in zip(self._sides, moves, strict=True):
            place = np.searchsorted(value * len(times) + at, keys * len(times) + reports)
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
        return self._emissions(times, value, at, change)

    def _emissions(self, times: Ints, value: Ints, report: Ints, change: Ints) -> Emissions:
        index = pa.array(np.repeat(value, np.abs(change)))
        columns = [column.take(index) for column in self._keys.all_columns()]
        report, diff = np.repeat(report, np.abs(change)), np.repeat(np.sign(change), np.abs(change))
        order = np.lexsort([ranked(columns, len(index)), diff, report])
        at = pa.array(order)
        rows = pa.RecordBatch.from_arrays([column.take(at) for column in columns], schema=self._schema)
        ordinals = np.zeros(len(order), np.int64)
        return Emissions(times[report[order]], ordinals, diff[order].astype(np.int8), rows, len(times))

    def _forget(self) -> None:
        """Forget the values that no window holds or will hold, when they are most of all."""
        rows = sum(len(side.going) for side in self._sides)
        if len(self._keys) <= 4 * rows + _MANY:
            return
        used = np.unique(np.concatenate([side.going.numbers() for side in self._sides]))
        numbers = self._keys.keep(used)
        for side in self._sides:
            side.renumber(numbers, used)


def copies(relation: Relation, sides: Iterator[Ints]) -> Ints:
    """How many copies of each value a relation has, from those of its SELECTs, left to right."""
    match relation:
        case Select():
            return next(sides)
        case Union():
            return copies(relation.left, sides) + copies(relation.right, sides)
        case Except():
            left, right = copies(relation.left, sides), copies(relation.right, sides)
            return np.asarray(np.maximum(left - right, 0))
