"""Rows of one input by their key: each row knows the one before it with the same key.

position    0    1    2    3    4    5
key         a    b    a    c    a    b          a probe for a goes 4 ─▶ 2 ─▶ 0, backwards in time, and stops at
before      –    –    0    –    2    1          the first row that is too old: what lies behind it is older still
head        a: 4    b: 5    c: 3

answers        for many probes at once, the rows with an equal key from some position on
update         O(1) a row, vectorised
lookup         O(matches); all probes take a step together, and those with many matches end in one sort
space          two numbers a row
order          rows are added in stream order, so that expiry is from the front and needs no touch
from           seed 002 section 4.2 (symmetric hash join), seed 000 section 4 (matches in descending order of time)
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints

NONE = -1
"""The key of a row that matches nothing, and the position before the first row of a chain."""

_WORD = 62
"""Bits that a sort can take at once."""

_STEPS = 24
"""Chains that are longer than this are read off a sort instead."""


def sorted_places(numbers: Ints) -> tuple[Ints, Ints]:
    """Small numbers in order, equal ones as they came, and where each of them stood.

    One sort of words that hold both: several times as quick as a stable sort of places.
    """
    bits = max(1, len(numbers).bit_length())
    words = np.sort((numbers << bits) | np.arange(len(numbers)))
    return words >> bits, words & ((1 << bits) - 1)


def in_order(columns: list[Ints]) -> list[Ints]:
    """The rows of some columns, at least one, sorted by the first, then the second, and so on."""
    lows = [int(column.min()) for column in columns]
    widths = [(int(column.max()) - low).bit_length() for column, low in zip(columns, lows, strict=True)]
    if sum(widths) > _WORD:
        order = np.lexsort(columns[::-1])
        return [column[order] for column in columns]
    words = np.zeros(len(columns[0]), np.int64)
    for column, low, width in zip(columns, lows, widths, strict=True):
        words = (words << width) | (column - low)
    words.sort()
    found: list[Ints] = []
    for low, width in zip(lows[::-1], widths[::-1], strict=True):
        found.append((words & ((1 << width) - 1)) + low)
        words = words >> width
    return found[::-1]


class GrowingInts:
    """An array that grows at its end and is forgotten from its front; places are counted from the very first."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._array = np.empty(1024, np.int64)
        self._start, self._stop = 0, 0

    @property
    def end(self) -> int:
        return self.first + self._stop - self._start

    @property
    def kept(self) -> Ints:
        """The numbers from ``first`` on."""
        return self._array[self._start : self._stop]

    def at(self, places: Ints) -> Ints:
        return self.kept.take(places - self.first)

    def extend(self, numbers: Ints) -> None:
        if self._stop + len(numbers) > len(self._array):
            kept = self.kept
            if 2 * (len(kept) + len(numbers)) > len(self._array):
                self._array = np.empty(max(1024, 3 * (len(kept) + len(numbers))), np.int64)
            self._array[: len(kept)] = kept  # into the room of those that are forgotten, where there is enough
            self._start, self._stop = 0, len(kept)
        self._array[self._stop : self._stop + len(numbers)] = numbers
        self._stop += len(numbers)

    def drop(self, before: int) -> None:
        """Forget all places below ``before``."""
        gone = max(0, min(before, self.end) - self.first)
        self._start, self.first = self._start + gone, self.first + gone


class Chains:
    """The rows of one input by the numbers of their keys."""

    def __init__(self, first: int = 0) -> None:
        self.keys = GrowingInts(first)
        """By position, the number of the row's key."""
        self._before = GrowingInts(first)
        self._head = np.full(1024, NONE, np.int64)

    def extend(self, keys: Ints) -> None:
        """The next rows, by the numbers of their keys."""
        start = self.keys.end
        self.keys.extend(keys)
        before = np.full(len(keys), NONE, np.int64)
        key, row = sorted_places(keys - NONE)
        key += NONE
        valid = np.searchsorted(key, 0)
        key, row = key[valid:], row[valid:]
        if len(key):
            self._make_room(int(key[-1]) + 1)
            first = np.concatenate(([True], key[1:] != key[:-1]))
            before[row[first]] = self._head[key[first]]
            again = np.flatnonzero(~first)
            before[row[again]] = row[again - 1] + start
            self._head[key] = row + start  # of several the last one written stays
        self._before.extend(before)

    def _make_room(self, keys: int) -> None:
        if keys > len(self._head):
            head = np.full(2 * keys, NONE, np.int64)
            head[: len(self._head)] = self._head
            self._head = head

    @property
    def distinct(self) -> int:
        """How many different keys there are."""
        return int(np.count_nonzero(self._head >= self.keys.first))

    def firsts(self, start: int, stop: int) -> int:
        """How many of the rows at positions start ≤ i < stop are the first there with their key, or have none."""
        before = self._before.kept[start - self.keys.first : stop - self.keys.first]
        return int(np.count_nonzero(before < start))

    def drop(self, before: int) -> None:
        """No probe asks for positions below ``before`` any more."""
        self.keys.drop(before)
        self._before.drop(before)

    def probe(self, keys: Ints, lowest: Ints) -> tuple[Ints, Ints]:
        """All (probe, position) with the key of the probe and a position at or above its lowest."""
        lowest = np.maximum(lowest, self.keys.first)
        at = self._heads(keys)
        probe = np.flatnonzero(at >= lowest)
        at = at[probe]
        found: list[tuple[Ints, Ints]] = []
        for _ in range(_STEPS):
            if not len(probe):
                break
            found.append((probe, at))
            at = self._before.at(at)
            goes_on = at >= lowest[probe]
            probe, at = probe[goes_on], at[goes_on]
        if len(probe):
            found.append(self._long(probe, keys[probe], lowest[probe], at))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([p for p, _ in found]), np.concatenate([a for _, a in found])

    def _heads(self, keys: Ints) -> Ints:
        """The last row of each key."""
        known = (keys >= 0) & (keys < len(self._head))
        if known.all():
            return self._head.take(keys)
        return np.where(known, self._head.take(keys, mode="clip"), NONE)

    def _long(self, probe: Ints, keys: Ints, lowest: Ints, highest: Ints) -> tuple[Ints, Ints]:
        """The rest of long chains: the rows of those keys, sorted by key once, hold each of them in one piece."""
        asked = np.zeros(len(self._head) + 1, bool)  # the last place is that of rows without a key
        asked[keys] = True
        place = np.flatnonzero(asked[self.keys.kept])
        key, order = sorted_places(self.keys.kept[place])
        position = place[order] + self.keys.first
        bits = max(1, self.keys.end.bit_length())
        words = (key << bits) | position
        start = np.searchsorted(words, (keys << bits) | lowest, side="left")
        count = np.searchsorted(words, (keys << bits) | highest, side="right") - start
        at = expand_ranges(start, count)
        return np.repeat(probe, count), position[at]
