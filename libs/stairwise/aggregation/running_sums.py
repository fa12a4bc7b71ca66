"""Running sums over the closed slices of a signature: any part of history by one subtraction.

    slice             7    8    9   10
    sum of key a      3    1    2    5
    running      0    3    4    6   11           slices 8 to 10:   11 − 3

    answers        the sums and counts of many runs of slices that end together, by key
    aggregates     COUNT, SUM and AVG of BIGINT: whole numbers, which subtract without loss
    update         O(k) a slice of k keys
    lookup         O(m k) for m runs, however many slices they have
    space          for each slice and key 8 bytes a number and 8 more: somewhat less than the slices themselves
    order          none
    from           running intervals (R-INT): seed 004 section 3.2

The sums follow the slices when they are asked for. They have a place for every key, so they are kept only where slices
have a good part of the keys, and only where what they add up stays below 2^63: a running sum may wrap round, the
difference of two is right then too.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.aggregates import grouped
from stairwise.aggregates.counts import Count
from stairwise.aggregates.sums import IntegerSum
from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.layer import Layer
from stairwise.aggregation.partials import Partials
from stairwise.aggregation.slices import Slices
from stairwise.expressions import huge
from stairwise.expressions.views import Ints, decimal_words, from_numpy, int64_view
from stairwise.state.key_table import KeyTable

FEW_KEYS = 64
"""So few keys have a place in every slice, whether or not they have rows there."""

PLACES_PER_ROW = 4
"""How many places for keys a slice may have for each row of partials in it."""

LARGEST = 4_000_000
"""Places of all slices together."""

FEW_PLACES = 8_192
"""Room for some slices to come is made in any case, as long as it has so few places."""

_FITS = 2**63


class KeyedSlices(Protocol):
    """The closed slices of a signature."""

    keys: KeyTable
    is_global: bool
    """Is there one group, also where there are no rows?"""
    first: int
    """The number of the oldest one."""

    def layer(self, level: int) -> Layer: ...


class RunningSums:
    """Row i of each table has the sums of all slices from the oldest one that is kept up to, not including, i."""

    def __init__(self, partials: Partials) -> None:
        self.applies = all(isinstance(kept.algebra, Count | IntegerSum) for kept in partials.kept)
        self._is_wide = [pa.types.is_decimal(field.type) for field in partials.schema]
        self._differences = [_words_between if is_wide else _numbers_between for is_wide in self._is_wide]
        self._flags = partials.counts_of_sums
        self._unfit = -1
        """The newest slice that could not be taken in."""
        self._key = np.zeros(0, np.int32)
        """0, 1, ..., k−1, again and again."""
        self._keys = 0
        self._restart(0)

    def _restart(self, begin: int) -> None:
        self._begin, self._end = begin, begin
        """The numbers of the oldest slice and of the one to come."""
        self._offset = 0
        """The row of the oldest slice: rows before it are of slices that are gone."""
        self._tables = np.zeros((len(self._is_wide) + 1, 1, 1), np.int64)
        """One for each number of a partial; the last one counts in how many slices a key has rows."""
        self._reach = 0
        """No number of a partial is beyond it."""

    @property
    def nbytes(self) -> int:
        return self._tables.nbytes + self._key.nbytes

    def between(self, first: Ints, last: int, slices: KeyedSlices) -> Found | None:
        """What the slices from each of ``first``, which descend, up to ``last`` hold; None where that is not kept."""
        begin = np.minimum(first, last + 1)
        if not self._follow(int(begin[-1]), last, slices):
            return None
        distinct, run = _distinct(begin)
        runs, keys = len(distinct), len(slices.keys)
        at = distinct + (self._offset - self._begin)
        shortest, longest, top = int(at[0]), int(at[-1]), last + 1 + self._offset - self._begin
        tables = self._tables[:, :, :keys]
        is_close = shortest - longest == runs - 1
        below = tables[:, longest : shortest + 1][:, ::-1] if is_close else tables[:, at]
        are_there = np.logical_and.reduce(tables[:, top] > tables[:, shortest], axis=1)
        columns = [
            None if i in self._flags and are_there[i] else difference(tables[i, top], below[i])
            for i, difference in enumerate(self._differences)
        ]
        edges = np.arange(0, (runs + 1) * keys, keys)
        if slices.is_global or are_there[-1]:
            return Found(edges[run], edges[run + 1], self._every_key(runs, keys), columns, is_shared=True)
        there = np.flatnonzero(tables[-1, top] > below[-1])
        columns = [None if column is None else column.take(pa.array(there)) for column in columns]
        edges = np.searchsorted(there, edges)
        return Found(edges[run], edges[run + 1], (there % keys).astype(np.int32), columns, is_shared=True)

    def _every_key(self, runs: int, keys: int) -> npt.NDArray[np.int32]:
        if keys != self._keys or runs * keys > len(self._key):
            self._keys, self._key = keys, np.tile(np.arange(keys, dtype=np.int32), runs)
        return self._key[: runs * keys]

    # ── the sums follow the slices ───────────────────────────────────────────────────────────────────────────

    def _follow(self, oldest: int, last: int, slices: KeyedSlices) -> bool:
        """Have all slices from the oldest to the last; False where they do not fit."""
        if not self.applies or not len(slices.keys) or oldest <= self._unfit:
            return False
        if oldest < self._begin or self._end < slices.first:
            self._restart(max(slices.first, self._unfit + 1))
        if self._end <= last and not self._append(slices, last + 1):
            self._unfit = last
            self._restart(last + 1)
            return False
        if len(slices.keys) > self._tables.shape[2]:  # keys that have rows in open slices only
            self._make_room(self._begin, 0, len(slices.keys))
        return True

    def _append(self, slices: KeyedSlices, end: int) -> bool:
        """Take in slices up to, not including, ``end``; False where they do not fit."""
        keys, begin, count = len(slices.keys), max(self._begin, slices.first), end - self._end
        spans = slices.layer(0).span(self._end, end - 1)
        rows = sum(len(span) for span in spans)
        if (end - begin) * keys > LARGEST or (keys > FEW_KEYS and count * keys > PLACES_PER_ROW * rows):
            return False
        values = [self._numbers(span) for span in spans]
        if self._reach * (end - begin) >= _FITS:
            return False
        self._make_room(begin, count, keys)
        row = self._offset + self._end - self._begin
        fresh = self._tables[:, row + 1 : row + 1 + count]
        for span, numbers in zip(spans, values, strict=True):
            for table, number in zip(fresh, numbers, strict=True):
                if rows == keys and count == 1 and len(spans) == 1:
                    table[0, :keys] = number
                else:
                    table[span.number - self._end, span.key] = number
        fresh[:, 0] += self._tables[:, row]
        if count > 1:
            np.cumsum(fresh, axis=1, out=fresh)
        self._end = end
        return True

    def _numbers(self, span: Slices) -> list[Ints | int]:
        """The lower 64 bits of the numbers of partials, which is all where ``reach`` fits; and 1 for being there."""
        numbers: list[Ints | int] = []
        for column, is_wide in zip(span.columns, self._is_wide, strict=True):
            if is_wide:
                words = decimal_words(column)
                low = words[:, 0].view(np.int64)
                numbers.append(low)
                self._reach = max(self._reach, grouped.reach(low) if huge.fits_int64(words) else _FITS)
            else:
                numbers.append(int64_view(column))
        return [*numbers, 1]

    def _make_room(self, begin: int, count: int, keys: int) -> None:
        """For so many slices more, and for all keys; slices before ``begin`` are gone."""
        self._offset += begin - self._begin
        self._begin = begin
        kept = self._end - begin + 1
        _, rows, room = self._tables.shape
        if self._offset + kept + count <= rows and keys <= room:
            return
        if keys > room:
            room = keys if room == 1 else keys + keys // 4
        rows = kept + count + (kept + count) // 8 + min(8, FEW_PLACES // room)
        tables = np.zeros((len(self._tables), rows, room), np.int64)
        width = min(room, self._tables.shape[2])
        tables[:, :kept, :width] = self._tables[:, self._offset : self._offset + kept, :width]
        self._tables, self._offset = tables, 0


def _distinct(descending: Ints) -> tuple[Ints, Ints]:
    """The distinct ones of some numbers, and for each number its place among them."""
    if len(descending) == 1:
        return descending, np.zeros(1, np.int64)
    new = descending[1:] != descending[:-1]
    if new.all():
        return descending, np.arange(len(descending))
    return descending[np.concatenate(([True], new))], np.concatenate(([0], np.cumsum(new)))


def _numbers_between(above: Ints, below: Ints) -> pa.Array:
    return from_numpy(np.subtract(above, below, out=np.empty(below.shape, np.int64)).reshape(-1))


def _words_between(above: Ints, below: Ints) -> pa.Array:
    """Differences of 64 bits as numbers of 128."""
    buffer = pa.allocate_buffer(16 * below.size)  # Arrow's pool gives large pieces of memory back to us at less cost
    words = np.frombuffer(buffer, np.int64).reshape(*below.shape, 2)
    np.subtract(above, below, out=words[..., 0])
    np.right_shift(words[..., 0], 63, out=words[..., 1])
    return pa.Array.from_buffers(pa.decimal128(38, 0), below.size, [None, buffer])
