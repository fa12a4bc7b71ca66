"""Each key's recent rows as a ring of slots, all rings in one arena.

answers     the positions of a key's rows in a time span, or of its last rows; the slots of positions
update      O(1) amortised a row: a sort of the batch by key (radix) and scattered writes
lookup      O(log n) by time (n rows of the key), O(1) by rows
space       8 bytes a slot, fewer than three slots a row that was kept at a time, and 32 bytes a key
order       rows must come in stream order: ``reorder`` sees to it
source      seed 004 sections 3 (tuple-based windows, as positions) and 5 (circular arrays); windows by time, which
            the seed leaves to its full version, are turned into positions by a search in the key's own times

    arena      │ key 0: ring of 8        │ key 2: ring of 4 │ free ...
    slot        0  1  2  3  4  5  6  7    8  9 10 11
    position    8  9  .  .  4  5  6  7                         a ring's size is a power of two, and it starts
                      end   first                              at a multiple of it

A key whose ring is full first forgets what no lookup can ask for any more. If that leaves less than an eighth of it
it gets a ring of at least twice the size, and the structures move its rows. When most of the arena is no longer in use,
all keys move together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stairwise.aggregates import grouped
from stairwise.expressions.views import Ints
from stairwise.lookups.contract import SMALLEST, Arrivals, Intervals, Move, Structure, grown, moved, spread
from stairwise.lookups.rings import Rings, rank_of
from stairwise.schema import DAWN, Instant

_NONE: Ints = np.empty(0, np.int64)
_ZERO: Ints = np.zeros(1, np.int64)
_ALL = slice(None)


class Substreams:
    """The rings of all keys. Keys are numbers from 0 on, as a ``KeyTable`` gives them."""

    def __init__(self, structures: Sequence[Structure] = ()) -> None:
        self._structures = list(structures)
        self._times = _NONE
        self._used = 0
        """Slots that were given out, to rings that are still in use or not."""
        self._start = _NONE
        self._capacity = _NONE
        self._first = _NONE
        self._end = _NONE
        self._horizon = DAWN
        """At or below it rows need not be kept."""
        self.newest: Instant = DAWN
        """The time of the last row."""

    def __len__(self) -> int:
        """How many rows are kept."""
        return int((self._end - self._first).sum())

    @property
    def keys(self) -> int:
        return len(self._start)

    @property
    def keys_with_rows(self) -> int:
        return int(np.count_nonzero(self._end > self._first))

    @property
    def size_bytes(self) -> int:
        return self._times.nbytes + 4 * self._start.nbytes + sum(s.size_bytes for s in self._structures)

    def add(self, key: Ints, times: Ints, keys: int) -> Arrivals:
        """Give rows their places: ``key`` is each row's number, of ``keys`` that there are now."""
        self.know(keys)
        order, run_key, run, length, run_of = self._runs(key)
        if len(times):
            self._make_room(run_key, length)
            self.newest = max(self.newest, int(times[-1]))
        begin, start, mask = self._end[run_key], self._start[run_key], self._capacity[run_key] - 1
        position = (begin - run).take(run_of)
        position += grouped.numbers_below(len(times))
        start_of, mask_of = start.take(run_of), mask.take(run_of)
        slot = position & mask_of
        slot += start_of
        next_slot = position + 1
        next_slot &= mask_of
        next_slot += start_of
        run_slot = start + (begin & mask)
        self._times[slot] = times if order is None else times[order]
        self._end[run_key] += length
        return Arrivals(order, position, slot, next_slot, mask_of, run, length, run_key, run_slot, run_of)

    def know(self, keys: int) -> None:
        """New keys get their first ring. Slots are given out once between two moves of all: a new ring holds zeros."""
        new = keys - self.keys
        if new <= 0:
            return
        self._start, self._capacity, self._first, self._end = (
            grown(column, keys) for column in (self._start, self._capacity, self._first, self._end)
        )
        fresh = np.arange(keys - new, keys)
        self._capacity[fresh] = SMALLEST
        self._start[fresh] = self._allot(self._capacity[fresh])
        self._tell(Move.to_size(len(self._times)))

    def _runs(self, key: Ints) -> tuple[Ints | None, Ints | slice, Ints, Ints, Ints]:
        """The rows by key; the keys, where each one's rows begin and how many they are; the run of each row.

        Where keys are few, all of them have a run, perhaps an empty one: counting is cheaper than finding out.
        """
        if self.keys == 1:
            return None, _ALL, _ZERO, np.array([len(key)]), np.zeros(len(key), np.int64)
        order, by_key = grouped.sorted_codes(key, self.keys)
        if self.keys <= len(key):
            length = np.bincount(key, minlength=self.keys)
            return order, _ALL, np.cumsum(length) - length, length, by_key
        run = grouped.run_starts(by_key)
        length = np.diff(run, append=len(key))
        return order, by_key[run], run, length, np.repeat(np.arange(len(run)), length)

    def forget(self, horizon: Instant) -> None:
        """No lookup reaches to or below ``horizon`` any more. Memory is given back when much of it can be."""
        self._horizon = max(self._horizon, horizon)
        every = np.arange(self.keys)
        self._first = self._rank(every, np.full(self.keys, self._horizon))
        if self._used > 16 * SMALLEST and len(self) * 8 < self._used:
            self._compact()

    def active(self, rear: Instant) -> Ints:
        """The keys that have a row after ``rear``."""
        some = np.flatnonzero(self._end > self._first)
        last = self._times[self._slots(some, self._end[some] - 1)]
        return some[last > rear]

    def by_time(self, key: Ints, rear: Ints, front: Ints) -> Intervals:
        """The rows of each key with rear < time ≤ front."""
        rings = self.rings(key)
        left = rings.rank(self._times, rear)
        if len(front) and int(front.min()) >= self.newest:
            return Intervals(key, left, rings.end, rings.start, rings.mask)
        right = rings.rank(self._times, front)
        return Intervals(key, left, np.maximum(left, right), rings.start, rings.mask)

    def span_of(self, key: int, rear: Instant, front: Instant) -> tuple[int, int, int]:
        """Of one key: the slots of the first row after ``rear`` and of the one after ``front``; the rows between.

        What ``by_time`` does for many: arrays of length one cost more than the search.
        """
        start, mask = int(self._start[key]), int(self._capacity[key]) - 1
        first, end = int(self._first[key]), int(self._end[key])
        left = rank_of(self._times, start, mask, first, end, rear)
        right = end if front >= self.newest else max(left, rank_of(self._times, start, mask, first, end, front))
        return start + (left & mask), start + (right & mask), right - left

    def by_rows(self, key: Ints, rows: Ints, skip: Ints) -> Intervals:
        """The last ``rows`` rows of each key after leaving out its ``skip`` newest."""
        end, first = self._end[key], self._first[key]
        right = np.maximum(end - skip, first)
        return self._intervals(key, np.maximum(right - rows, first), right)

    def times(self, key: Ints, position: Ints) -> Ints:
        """The times of rows that are kept."""
        return self._times[self._slots(key, position)]

    def ends(self, key: Ints) -> tuple[Ints, Ints]:
        """The first position that is kept of each key, and the one after its last row."""
        return self._first[key], self._end[key]

    def whole(self, key: Ints) -> Intervals:
        """All that is kept of each key."""
        return self._intervals(key, self._first[key], self._end[key])

    def everything(self) -> Arrivals:
        """All that is kept, as if it came in one batch."""
        begin, length = self._first, self._end - self._first
        run_of = np.repeat(np.arange(self.keys), length)
        position = spread(begin, length)
        start_of, mask = self._start.take(run_of), (self._capacity - 1).take(run_of)
        slot, next_slot = start_of + (position & mask), start_of + (position + 1 & mask)
        run_slot = self._start + (begin & (self._capacity - 1))
        run = np.cumsum(length) - length
        return Arrivals(None, position, slot, next_slot, mask, run, length, _ALL, run_slot, run_of)

    def rings(self, key: Ints, *, after_last: bool = False) -> Rings:
        """The rings of keys, for searches; with the position after the last row, if that is asked for."""
        end = self._end[key] + 1 if after_last else self._end[key]
        return Rings(self._start[key], self._capacity[key] - 1, self._first[key], end)

    def _intervals(self, key: Ints, left: Ints, right: Ints) -> Intervals:
        return Intervals(key, left, right, self._start[key], self._capacity[key] - 1)

    def _rank(self, key: Ints, instant: Ints) -> Ints:
        """The position after the last row of each key at or before an instant."""
        return self.rings(key).rank(self._times, instant)

    def _slots(self, key: Ints, position: Ints) -> Ints:
        return self._start[key] + (position & (self._capacity[key] - 1))

    def _make_room(self, keys: Ints | slice, rows: Ints) -> None:
        """One slot more than there are rows: the position after the last has one too."""
        full = self._end[keys] + rows - self._first[keys] >= self._capacity[keys]
        if not full.any():
            return
        key, rows = np.arange(self.keys)[keys][full], rows[full]
        if self._horizon > DAWN:
            self._first[key] = self._rank(key, np.full(len(key), self._horizon))
        needed = self._end[key] + rows - self._first[key] + 1
        crowded = _roomy(needed) > self._capacity[key]
        if not crowded.any():
            return
        key, needed = key[crowded], needed[crowded]
        capacity = _roomy(needed)
        if self._used > 4 * int(self._capacity.sum() + capacity.sum()):
            self._compact()
        sources, positions, masks = self._kept(key)
        self._capacity[key] = capacity
        self._start[key] = self._allot(capacity)
        targets, _, _ = self._kept(key)
        self._tell(Move(sources, targets, positions, masks, len(self._times), fresh=False))

    def _compact(self) -> None:
        """All keys move into an arena of their own size."""
        every = np.arange(self.keys)
        sources, positions, masks = self._kept(every)
        self._used = 0
        self._capacity = np.maximum(_roomy(self._end - self._first + 1), SMALLEST)
        old = self._times
        self._times = _NONE
        self._start = self._allot(self._capacity)
        size = len(self._times)
        self._times = old
        targets, _, smaller = self._kept(every)
        self._tell(Move(sources, targets, positions, np.minimum(masks, smaller), size, fresh=True))

    def _tell(self, move: Move) -> None:
        self._times = moved(self._times, move)
        for structure in self._structures:
            structure.move(move)

    def _kept(self, key: Ints) -> tuple[Ints, Ints, Ints]:
        """The slots, positions and masks of all that is kept of these keys, and of the position after it."""
        length = self._end[key] - self._first[key] + 1
        position = spread(self._first[key], length)
        mask = np.repeat(self._capacity[key] - 1, length)
        return np.repeat(self._start[key], length) + (position & mask), position, mask

    def _allot(self, capacity: Ints) -> Ints:
        """Rings of these sizes, the largest first, so that each starts at a multiple of its size."""
        order = np.argsort(-capacity, kind="stable")
        largest = int(capacity.max(initial=1))
        begin = -(-self._used // largest) * largest
        ends = begin + np.cumsum(capacity[order])
        starts = np.empty(len(capacity), np.int64)
        starts[order] = ends - capacity[order]
        self._used = int(ends[-1]) if len(ends) else begin
        if self._used > len(self._times):
            self._times = grown(self._times, 1 << (self._used - 1).bit_length())
        return starts


def _roomy(slots: Ints) -> Ints:
    """The size of rings for so many slots: an eighth stays free, so that they are not full again at once."""
    size: Ints = np.int64(1) << np.ceil(np.log2(slots * (8 / 7))).astype(np.int64)
    return size
