"""What stands of a query's answer, kept up to date by what moves: its reports need not be whole.

    τ      ends are known                      standing       they are not      standing
    10     +a until 30  +b until 40            a b            +a +b +b          a b b
    20     +c until 40                         a b c          −b +c             a b c
    30     +d until 50                         b c d          −a −b −c

    answers        what stands after each report; which rows leave at a report, where their ends are known
    update         O(1) amortised a move; one that is known to end is looked at once more, when it does
    lookup         O(what stands)
    space          what stands, and about as much again of what has gone where no ends are known
    order          reports in order
    from           seed 001 sections 3.5.1 and 3.5.2 (WKS and WK: rows by their expiration time; STR: negative tuples)

*Moves* are rows with one more column, the last: ``until``, the report time from which a row is gone, or ``diff``, +1
or −1. Without ends, a row is known by its values, and may have copies; a group row is known by its keys: where another
one replaces it, the one goes and the other comes at the same report.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.algebra.query import Query, Select
from stairwise.expressions.views import Ints, int64_view, number_view
from stairwise.reports.expansion import Moved, report_schema
from stairwise.schema import Instant
from stairwise.state.key_table import KeyTable
from stairwise.state.pages import concat, empty

UNTIL = pa.field("until", pa.int64())
DIFF = pa.field("diff", pa.int8())

_MANY = 4096
"""So many changes wait to be taken in together, and up to so many rows are not looked through for those that went."""


class KeptAnswer(Protocol):
    def __len__(self) -> int:
        """How many rows stand."""

    def take(self, time: Instant, moves: pa.RecordBatch) -> None:
        """What moves at the next report."""

    def rows(self) -> pa.RecordBatch:
        """What stands, as moves that would bring it about."""


class StandingRows:
    """Rows by their ends, which are known."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema.append(UNTIL)
        self._by_end: dict[Instant, list[pa.RecordBatch]] = {}
        self._ends: list[Instant] = []
        """The keys of the above, as a heap."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def leave(self, time: Instant) -> pa.RecordBatch:
        """The rows that are gone at a report; they do not stand any longer."""
        left = [empty(self._schema)]
        while self._ends and self._ends[0] <= time:
            left += self._by_end.pop(heapq.heappop(self._ends))
        gone = concat(left)
        self._count -= gone.num_rows
        return gone

    def take(self, time: Instant, moves: pa.RecordBatch) -> None:
        self.leave(time)
        self._count += moves.num_rows
        ends = int64_view(moves.column(moves.num_columns - 1))
        if len(ends) and np.any(ends[1:] < ends[:-1]):
            order = np.argsort(ends, kind="stable")
            moves, ends = moves.take(pa.array(order)), ends[order]
        edges = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(ends)] if len(ends) else []
        for start, stop in pairwise(edges):
            end = int(ends[start])
            if end not in self._by_end:
                self._by_end[end] = []
                heapq.heappush(self._ends, end)
            self._by_end[end].append(moves.slice(start, stop - start))

    def rows(self) -> pa.RecordBatch:
        return concat([empty(self._schema), *(rows for end in sorted(self._ends) for rows in self._by_end[end])])


class StandingAnswer:
    """Rows that stand until a change says that they do not."""

    def __init__(self, schema: pa.Schema, identity: int) -> None:
        """So many of the first columns tell a row from the others."""
        self._identity = identity
        self._keys = KeyTable([field.type for field in schema][:identity])
        self._rows = empty(schema.append(DIFF))
        self._copies = np.zeros(0, np.int64)
        """By key, how many rows stand."""
        self._at = np.zeros(0, np.int64)
        """By key, where the row is that came last."""
        self._waiting: list[pa.RecordBatch] = []
        self._waits = self._count = 0
        self._stands: pa.RecordBatch | None = None
        """What stands, unless it has changed since it was asked for."""

    def __len__(self) -> int:
        return self._count

    def take(self, time: Instant, moves: pa.RecordBatch) -> None:
        if not moves.num_rows:
            return
        self._stands = None
        self._count += int(_diffs(moves).sum())
        self._waiting.append(moves)
        self._waits += moves.num_rows
        if self._waits > _MANY:
            self._take_in()

    def rows(self) -> pa.RecordBatch:
        if self._stands is None:
            self._take_in()
            there = np.flatnonzero(self._copies)
            self._stands = self._rows.take(pa.array(np.repeat(self._at[there], self._copies[there])))
        return self._stands

    def _take_in(self) -> None:
        if not self._waits:
            return
        moves, first = concat(self._waiting), self._rows.num_rows
        self._waiting, self._waits = [], 0
        numbers = self._keys.numbers(moves.columns[: self._identity], moves.num_rows)
        more = np.zeros(len(self._keys) - len(self._copies), np.int64)
        self._copies, self._at = np.append(self._copies, more), np.append(self._at, more)
        diff = _diffs(moves)
        comes = np.flatnonzero(diff > 0)
        np.add.at(self._copies, numbers, diff)
        self._at[numbers[comes]] = first + np.arange(len(comes))  # of equal numbers the last one counts
        self._rows = concat([self._rows, moves.take(pa.array(comes))])
        if self._rows.num_rows > 2 * self._count + _MANY:
            self._forget()

    def _forget(self) -> None:
        """Forget the rows that have gone."""
        there = np.flatnonzero(self._copies)
        self._rows, copies = self._rows.take(pa.array(self._at[there])), self._copies[there]
        self._keys = KeyTable([field.type for field in self._rows.schema][: self._identity])
        numbers = self._keys.numbers(self._rows.columns[: self._identity], len(there))
        self._copies, self._at = np.zeros(len(self._keys), np.int64), np.zeros(len(self._keys), np.int64)
        self._copies[numbers], self._at[numbers] = copies, np.arange(len(there))


def standing_of(query: Query, *, ends_are_known: bool) -> KeptAnswer:
    """What stands of a query's reports, of which nothing has come yet."""
    schema, relation = report_schema(query), query.relation
    if ends_are_known:
        return StandingRows(schema)
    is_grouped = isinstance(relation, Select) and relation.is_grouped
    return StandingAnswer(schema, len(relation.keys) if is_grouped and isinstance(relation, Select) else len(schema))


def tells_ends(moves: pa.RecordBatch) -> bool:
    """Do moves say when their rows end?"""
    return bool(moves.schema.field(moves.num_columns - 1).type == UNTIL.type)


def entering(moves: pa.RecordBatch) -> Moved:
    """What moves say by themselves: rows with known ends enter, others enter or leave."""
    rows, last = without_last(moves), moves.column(moves.num_columns - 1)
    if tells_ends(moves):
        return Moved(rows, rows.slice(0, 0), int64_view(last))
    comes = pc.greater(last, 0)
    return Moved(rows.filter(comes), rows.filter(pc.invert(comes)))


def without_last(moves: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that move."""
    return moves.select(range(moves.num_columns - 1))


def _diffs(moves: pa.RecordBatch) -> Ints:
    diffs: Ints = number_view(moves.column(moves.num_columns - 1)).astype(np.int64)
    return diffs
