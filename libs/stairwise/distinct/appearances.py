"""Values in order of their most recent appearance: one log from which every nested window reads its distinct set.

    rows        a1  b2  a3  c4  b5  a6              value and time
    log         a1─▶a3─────────────▶a6              every appearance knows when its value came before and came next
                    b2──────▶b5
                            c4

    (3, 6]      a6  b5  c4                          at τ = 6 an appearance counts that no later one has replaced:
    (4, 6]      a6  b5                              the set of a window is what is left of the suffix after its rear

    answers        which values have an appearance in (rear, front], for any rear that is retained and any front
    update         O(r log r) a batch of r rows, by one sort of machine words
    lookup         O(s) for a suffix of s appearances
    space          one appearance for each value in the widest window and one for each change that is not shown yet,
                   and up to twice that in phantoms
    order          appended in order of time
    from           seed 000 section 4 (most recent appearance, phantoms that are tolerated and removed lazily);
                   seed 001 section 3.5.2 (the delta operator: the youngest row of a value stands for its input)

An appearance that a later one has replaced is a phantom: no window that ends from now on counts it. It stays until
there are twice as many phantoms as others, and longer where it shows that its value has entered a window since that
reported last. That a value has been in a window all the time needs no phantom: every appearance says when its value
appeared before, whether that is kept or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.chains import sorted_places
from stairwise.state.key_table import KeyTable

_FEW = 256
"""Pieces of at least so many rows, on average, are taken one by one."""

_GROWTH = 3
"""How many times as many appearances there may be before phantoms are looked for."""

_SMALL = 4096
"""Up to so many appearances phantoms are not looked for."""


class AppearanceLog:
    """Appearances by time, each with its value's number, and when that value appeared before and next.

    What was handed out stays as it was but for ``following``, which is written to where a value appears again:
    then it lies above every front that was asked for.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.keys = KeyTable(types)
        self._table = np.empty((4, _SMALL), np.int64)
        self._size = 0
        self._latest = np.full(0, -1, np.int32)
        self._since = np.full(0, DAWN, np.int64)
        """For each value, where its last appearance stands and when it was; −1 and DAWN where there is none."""
        self._compacted = 0

    def __len__(self) -> int:
        return self._size

    @property
    def time(self) -> Ints:
        return self._table[0, : self._size]

    @property
    def key(self) -> Ints:
        """The number of each one's value."""
        return self._table[1, : self._size]

    @property
    def previous(self) -> Ints:
        """When the value appeared before: DAWN where it did not, or before all windows that are left."""
        return self._table[2, : self._size]

    @property
    def following(self) -> Ints:
        """When it appeared next: DUSK while it has not."""
        return self._table[3, : self._size]

    def append(self, values: Sequence[pa.Array], time: Ints, piece: Ints) -> None:
        """Rows in order of time, behind all that are here.

        ``piece`` ascends: of the rows of a piece that have the same value only the last is kept, since no window
        ends between them.
        """
        if not len(time):
            return
        number = self.keys.numbers(values, len(time))
        if len(self._latest) < len(self.keys):
            more = max(len(self.keys), 2 * len(self._latest)) - len(self._latest)
            self._latest = np.concatenate([self._latest, np.full(more, -1, np.int32)])
            self._since = np.concatenate([self._since, np.full(more, DAWN, np.int64)])
        edges = np.flatnonzero(np.concatenate(([True], piece[1:] != piece[:-1], [True])))
        if len(edges) * _FEW > len(time):
            self._append_sorted(number, time, piece)
            return
        for start, stop in pairwise(edges.tolist()):
            self._append_piece(number[start:stop], time[start:stop])

    def restore(self, values: Sequence[pa.Array], time: Ints, previous: Ints) -> None:
        """Appearances as they stood in a log, behind all that are here, and when their values had appeared before."""
        start = self._size
        self.append(values, time, np.arange(len(time)))
        self.previous[start:] = previous

    def _append_piece(self, number: Ints, time: Ints) -> None:
        """Rows of one piece: the last of each value is found by writing all of them into one table."""
        before = self._latest[number].astype(np.int64)
        row = np.arange(len(number), dtype=np.int32)
        self._latest[number] = row
        last = np.flatnonzero(self._latest[number] == row)
        if len(last) < len(number):
            number, time, before = number[last], time[last], before[last]
        self._latest[number] = np.arange(self._size, self._size + len(number))
        previous = self._since[number]
        self._since[number] = time
        self._write(number, time, before, previous)

    def _append_sorted(self, number: Ints, time: Ints, piece: Ints) -> None:
        """Rows of many small pieces: each finds the one before it of its value by a sort."""
        in_order, row = sorted_places(number)
        again = np.concatenate((in_order[1:] == in_order[:-1], [False]))
        follows = np.concatenate((row[1:], row[:1]))
        replaced = again & (piece[follows] == piece[row])
        in_order, row = in_order[~replaced], row[~replaced]
        first = np.concatenate(([True], in_order[1:] != in_order[:-1]))
        is_kept = np.zeros(len(number), bool)
        is_kept[row] = True
        place = (np.cumsum(is_kept) + (self._size - 1))[row]
        before = np.where(first, self._latest[in_order], np.concatenate(([-1], place[:-1])))
        previous = np.where(first, self._since[in_order], np.concatenate(([DAWN], time[row[:-1]])))
        last = np.concatenate((first[1:], [True]))
        self._latest[in_order[last]] = place[last]
        self._since[in_order[last]] = time[row[last]]
        by_time = np.empty((2, len(place)), np.int64)
        by_time[:, place - self._size] = before, previous
        self._write(number[is_kept], time[is_kept], *by_time)

    def _write(self, number: Ints, time: Ints, before: Ints, previous: Ints) -> None:
        """Appearances in order of time; ``before`` and ``previous``: where and when their values appeared before."""
        start, size = self._size, self._size + len(time)
        if size > self._table.shape[1]:
            table = np.empty((4, 2 * size), np.int64)
            table[:, :start] = self._table[:, :start]
            self._table = table
        self._size = size
        self._table[0, start:size], self._table[1, start:size] = time, number
        self._table[2, start:size], self._table[3, start:size] = previous, DUSK
        if len(before) and before.min() < 0:
            known = before >= 0
            before, time = before[known], time[known]
        self.following[before] = time

    def is_due_for_compaction(self) -> bool:
        return self._size > _GROWTH * self._compacted + _SMALL // 2

    def compact(self, low: Instant, settled: Instant, fronts: Ints, rears: Ints) -> None:
        """Forget appearances at or below ``low``, and phantoms on which no answer rests.

        All fronts to come are at or above ``settled``. ``fronts``, ascending, are those of the answers that the next
        ones will be compared with; each with the highest rear of the windows that ended there.
        """
        start = int(np.searchsorted(self.time, low, side="right"))
        time, previous, following = self.time[start:], self.previous[start:], self.following[start:]
        kept = following > settled
        if len(fronts) and fronts[0] < settled:
            # A value was not in a window that ended before this appearance, and above whose rear lies none before.
            highest = np.maximum.accumulate(np.concatenate(([DAWN - 1], rears)))
            kept |= previous <= highest[np.searchsorted(fronts, time, side="left")]
        self._keep(np.flatnonzero(kept) + start)

    def _keep(self, places: Ints) -> None:
        """Keep the appearances at some places: the last of each value, and perhaps some before it."""
        size = len(places)
        table = np.empty((4, _GROWTH * size + _SMALL), np.int64)  # as much as there will be until the next time
        for row, kept in zip(self._table, table, strict=True):
            np.take(row, places, out=kept[:size])
        time, key = table[:2, :size]
        used = np.zeros(len(self.keys), bool)
        used[key] = True
        numbers = np.flatnonzero(used)
        if 2 * len(numbers) < len(self.keys):
            key[:] = self.keys.keep(numbers)[key]
        self._latest = np.full(len(self.keys), -1, np.int32)
        self._since = np.full(len(self.keys), DAWN, np.int64)
        self._latest[key] = np.arange(size)  # of several the last one written stays
        self._since[key] = time
        self._table, self._size, self._compacted = table, size, size

    def values(self, start: int = 0) -> list[pa.Array]:
        """The values of the appearances from ``start`` on."""
        return self.keys.columns(self.key[start:])

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, without the table that finds values."""
        values: int = sum(column.nbytes for column in self.keys.all_columns())
        return 4 * 8 * self._size + self._latest.nbytes + self._since.nbytes + values
