"""The whole answer of a query, kept up to date by its changes.

    τ      changes             standing
    10     +a +b +b            a  b  b
    20     −b +c               a  b  c
    30     −a −b −c

    answers        what stands after each report
    update         O(1) amortised a change
    lookup         O(what stands)
    space          what stands, and about as much again of what has gone
    order          reports in order

A row is known by its values, and may have copies. A group row is known by its keys: where another one replaces it, the
one goes and the other comes at the same report.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Bools, Ints
from stairwise.reports.emission import Emissions
from stairwise.state.key_table import KeyTable
from stairwise.state.pages import concat, empty

_MANY = 4096
"""Up to so many rows are not looked through for those that have gone."""

_NOWHERE = -1


class StandingAnswer:
    def __init__(self, schema: pa.Schema, identity: int) -> None:
        """So many of the first columns tell a row from the others."""
        self._identity = identity
        self._keys = KeyTable([field.type for field in schema][:identity])
        self._rows = empty(schema)
        self._copies = np.zeros(0, np.int64)
        """Of each row, how many stand: 0 of one that has gone, or stands by another one like it."""
        self._at = np.zeros(0, np.int64)
        """By key, where the row is that stands or stood last; −1 of one that has not stood yet."""
        self._standing: pa.RecordBatch | None = None
        """What stands, unless it has changed since it was put together."""

    def after(self, changes: Emissions, spans: list[slice | None]) -> Iterator[pa.RecordBatch]:
        """What stands after each of some reports, whose changes are at these spans, or nowhere."""
        first = self._rows.num_rows
        numbers = self._keys.numbers(changes.rows.columns[: self._identity], changes.rows.num_rows)
        if len(numbers):
            self._rows = concat([self._rows, changes.rows])
            self._copies = np.concatenate([self._copies, np.zeros(len(numbers), np.int64)])
            self._at = np.concatenate([self._at, np.full(len(self._keys) - len(self._at), _NOWHERE, np.int64)])
        for span in spans:
            if span is not None:
                self._change(numbers[span], np.arange(first + span.start, first + span.stop), changes.diff[span] > 0)
            if self._standing is None:
                self._standing = self._put_together()
            yield self._standing
        self._forget()

    def _change(self, numbers: Ints, places: Ints, comes: Bools) -> None:
        np.subtract.at(self._copies, self._at[numbers[~comes]], 1)
        numbers, places = numbers[comes], places[comes]
        at = self._at[numbers]
        new = (at == _NOWHERE) | (self._copies[at] == 0)
        self._at[numbers[new]] = places[new]
        np.add.at(self._copies, self._at[numbers], 1)
        self._standing = None

    def _put_together(self) -> pa.RecordBatch:
        if self._copies.max(initial=0) <= 1:
            return self._rows.filter(pa.array(self._copies > 0))
        return self._rows.take(pa.array(np.repeat(np.arange(len(self._copies)), self._copies)))

    def _forget(self) -> None:
        """Forget the rows that have gone, when they are most."""
        there = np.flatnonzero(self._copies)
        if len(self._copies) <= 2 * len(there) + _MANY:
            return
        self._rows, self._copies = self._rows.take(pa.array(there)), self._copies[there]
        self._keys = KeyTable([field.type for field in self._rows.schema][: self._identity])
        numbers = self._keys.numbers(self._rows.columns[: self._identity], len(there))
        self._at = np.zeros(len(self._keys), np.int64)
        self._at[numbers] = np.arange(len(there))
