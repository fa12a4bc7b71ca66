"""Each key's recent rows as a ring of slots, all rings in one arena.

answers     the positions of a key's rows in a time span, or of its last rows; the slots of positions
update      O(1) amortised a row: a compiled loop
lookup      O(log n) by time (n rows of the key), O(1) by rows
space       8 bytes a slot, fewer than three slots a row that was kept at a time, and 40 bytes a key
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

from collections import deque
from collections.abc import Sequence

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.structures.compiled_loops import have_room, place
from stairwise.structures.contract import SMALLEST, Arrivals, Intervals, Move, Structure, grown, moved, spread
from stairwise.structures.rings import Rings, rank_of

_NONE: Ints = np.empty(0, np.int64)
_RECENT = 4
"""Batches that are remembered as they came."""
_MANY = 8
"""To count for so many keys costs what a search for one does."""


class Substreams:
    """The rings of all keys. Keys are numbers from 0 on, as a ``KeyTable`` gives them."""

    def __init__(self, structures: Sequence[Structure] = ()) -> None:
        self._structures = list(structures)
        self._times = _NONE
        self._used = 0
        """Slots that were given out, to rings that are still in use or not."""
        self._start = _NONE
        self._mask = _NONE
        """The size of each key's ring, less one."""
        self._first = _NONE
        self._end = _NONE
        self._came = _NONE
        """A zero for each key."""
        self._recent: deque[tuple[Ints, Ints]] = deque(maxlen=_RECENT)
        """The times and keys of the batches that came last."""
        self._until: tuple[Instant, Ints] | None = None
        """An instant, and the position after the last row of each key up to it."""
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
        recent = sum(times.nbytes + key.nbytes for times, key in self._recent)
        return self._times.nbytes + recent + 5 * self._start.nbytes + sum(s.size_bytes for s in self._structures)

    def add(self, key: Ints, times: Ints, keys: int) -> Arrivals:
        """Give rows their places: ``key`` is each row's number, of ``keys`` that there are now."""
        self.know(keys)
        if len(times):
            self._make_room(key)
            self.newest = max(self.newest, int(times[-1]))
        position, slot = np.empty_like(key), np.empty_like(key)
        place(key, times, self._start, self._mask, self._end, self._times, position, slot)
        self._recent.append((times, key))
        self._until = None
        return Arrivals(key, position, slot, self._mask)

    def know(self, keys: int) -> None:
        """New keys get their first ring. Slots are given out once between two moves of all: a new ring holds zeros."""
        new = keys - self.keys
        if new <= 0:
            return
        self._start, self._mask, self._first, self._end, self._came = (
            grown(column, keys) for column in (self._start, self._mask, self._first, self._end, self._came)
        )
        self._until = None
        self._mask[-new:] = SMALLEST - 1
        self._start[-new:] = self._allot(np.full(new, SMALLEST))
        self._tell(Move.to_size(len(self._times)))

    def forget(self, horizon: Instant, *, give_back: bool = False) -> None:
        """No lookup reaches to or below ``horizon`` any more. Memory is given back when much of it can be, or now."""
        self._horizon = max(self._horizon, horizon)
        rings = Rings(self._start, self._mask, self._first, self._end)
        self._first = rings.rank(self._times, np.full(self.keys, self._horizon))
        if self._used > 16 * SMALLEST and (give_back or len(self) * 8 < self._used):
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

    def up_to(self, key: Ints, rear: Ints, front: Instant) -> Intervals:
        """The same where all windows end together, as they do in most lookups."""
        rings = self.rings(key)
        left = rings.rank(self._times, rear)
        if front >= self.newest:
            right = rings.end
        elif (ends := self._ends_at(front, len(key))) is not None:
            right = ends.take(key)
        else:
            right = rings.rank(self._times, np.full(len(key), front))
        return Intervals(key, left, np.maximum(left, right), rings.start, rings.mask)

    def _ends_at(self, front: Instant, asked: int) -> Ints | None:
        """The position after the last row of each key up to an instant not long past, by counting those after it.

        A partition that is ahead of others is asked for the same instant until its next batch. None where a search for
        the keys that are asked is cheaper, or has to be.
        """
        if self._until is not None and self._until[0] == front:
            return self._until[1]
        if _MANY * asked < self.keys:
            return None
        ends = self._end
        for times, key in reversed(self._recent):
            passed = int(times.searchsorted(front, side="right"))
            ends = ends - np.bincount(key[passed:], minlength=self.keys)
            if passed:
                self._until = front, ends
                return ends
        return None

    def span_of(self, key: int, rear: int, front: int, column: Ints | None = None) -> tuple[int, int, int]:
        """Of one key: the slots of the last row up to ``rear`` and of the last up to ``front``; the rows between.

        They are told apart by their times, or by another column over slots that grows along a ring.

        What ``by_time`` does for many: arrays of length one cost more than the search.
        """
        start, mask = int(self._start[key]), int(self._mask[key])
        first, end = int(self._first[key]), int(self._end[key])
        if column is None:
            column, front = self._times, DUSK if front >= self.newest else front
        left = rank_of(column, start, mask, first, end, rear)
        right = end if front == DUSK else max(left, rank_of(column, start, mask, first, end, front))
        return start + (left - 1 & mask), start + (right - 1 & mask), right - left

    def last_up_to(self, key: Ints, front: Instant, rows: int, skip: int) -> Intervals:
        """The last ``rows`` rows of each key up to an instant, after leaving out the ``skip`` newest of those."""
        whole = self.up_to(key, np.full(len(key), DAWN), front)
        right = np.maximum(whole.right - skip, whole.left)
        return Intervals(key, np.maximum(right - rows, whole.left), right, whole.start, whole.mask)

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
        length = self._end - self._first
        key = np.repeat(np.arange(self.keys), length)
        position = spread(self._first, length)
        return Arrivals(key, position, self._slots(key, position), self._mask)

    def rings(self, key: Ints, *, before_first: bool = False) -> Rings:
        """The rings of keys, for searches; with the position before the first row, if that is asked for."""
        first = self._first[key] - 1 if before_first else self._first[key]
        return Rings(self._start[key], self._mask[key], first, self._end[key])

    def _intervals(self, key: Ints, left: Ints, right: Ints) -> Intervals:
        return Intervals(key, left, right, self._start[key], self._mask[key])

    def _rank(self, key: Ints, instant: Ints) -> Ints:
        """The position after the last row of each key at or before an instant."""
        return self.rings(key).rank(self._times, instant)

    def _slots(self, key: Ints, position: Ints) -> Ints:
        return self._start[key] + (position & self._mask[key])

    def _make_room(self, key: Ints) -> None:
        """For a row more of each of these keys; the position before a key's first row has a slot too."""
        if have_room(key, self._first, self._end, self._mask, self._came):
            return
        key, rows = np.unique(key, return_counts=True)
        full = self._end[key] + rows - self._first[key] > self._mask[key]
        key, rows = key[full], rows[full]
        if self._horizon > DAWN:
            self._first[key] = self._rank(key, np.full(len(key), self._horizon))
        needed = self._end[key] + rows - self._first[key] + 1
        crowded = _roomy(needed) > self._mask[key] + 1
        if not crowded.any():
            return
        key, needed = key[crowded], needed[crowded]
        capacity = _roomy(needed)
        if self._used > 4 * int((self._mask + 1).sum() + capacity.sum()):
            self._compact()
        sources, positions, masks = self._kept(key)
        self._mask[key] = capacity - 1
        self._start[key] = self._allot(capacity)
        targets, _, _ = self._kept(key)
        self._tell(Move(sources, targets, positions, masks, len(self._times), fresh=False))

    def _compact(self) -> None:
        """All keys move into an arena of their own size."""
        every = np.arange(self.keys)
        sources, positions, masks = self._kept(every)
        self._used = 0
        capacity = np.maximum(_roomy(self._end - self._first + 1), SMALLEST)
        self._mask = capacity - 1
        old = self._times
        self._times = _NONE
        self._start = self._allot(capacity)
        size = len(self._times)
        self._times = old
        targets, _, smaller = self._kept(every)
        self._tell(Move(sources, targets, positions, np.minimum(masks, smaller), size, fresh=True))

    def _tell(self, move: Move) -> None:
        self._times = moved(self._times, move)
        for structure in self._structures:
            structure.move(move)

    def _kept(self, key: Ints) -> tuple[Ints, Ints, Ints]:
        """The slots, positions and masks of all that is kept of these keys, and of the position before it."""
        before = self._first[key] - 1
        length = self._end[key] - before
        position = spread(before, length)
        mask = np.repeat(self._mask[key], length)
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
