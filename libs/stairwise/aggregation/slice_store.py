"""One slice store for all windows of a signature: rows become partials of their slice once, however many windows.

    rows ──▶ open slices                    ──watermark──▶  closed slices, one behind the other, in order of time
             arrays with a place for each                   17:00:01   a 3, b 1       one row for each key that has
             key (``registers``), or lifted                 17:00:02   a 2            rows in the slice
             pieces where slices are small                  17:00:04   b 7, c 1       slices without rows are not there

    answers        the partials of any part of history between two cuts
    aggregates     any with associative partials, which all are
    update         O(1) a row and aggregate. Closed slices merge when nobody asks for the cut between them any more
                   (``aged_cuts``); a slice is copied about log n times in its life
    lookup         ``nodes``: at most 2 log n nodes for n slices
    space          slices × the keys that have rows in them, and as much again for the tree where it is used
    order          any, as long as no row comes at or below the watermark
    from           slices: seed 000 section 2.2, seed 004; the tree: B-INT of seed 004 section 3.1

Closed slices are numbered as they close. Over the numbers stands a tree: node i of level j holds slices i·2^j up to
(i+1)·2^j − 1. It is built when long parts of history are asked for, from the slices that have closed by then:

    level 2               ├───────────────┤
    level 1       ├───────┤               ├───────┤
    level 0   ├───┤                               ├───┤
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregation.cuts import Eras
from stairwise.aggregation.layer import Layer
from stairwise.aggregation.partials import Partials
from stairwise.aggregation.registers import Registers, fits_registers
from stairwise.aggregation.running_sums import RunningSums
from stairwise.aggregation.signature_rows import Prepared
from stairwise.aggregation.slices import Slices, dense, in_order, joined, merged, no_slices
from stairwise.expressions.views import Bools, Ints
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.state.key_table import KeyTable

ROWS_PER_SLICE = 512
"""Rows that a slice must get from a batch, on average, to be worth arrays of its own."""

ROOM_PER_ROW = 8
"""How many places for keys an open slice may have for each row it gets."""

PIECES = 64
"""So many lifted pieces are merged into one."""

FEWEST_KEYS = 1024

FEWEST_GROWN, GROWN_PART = 4, 8
"""Closed slices are merged when there are so many more of them, or one part in so many, than after the last time."""

LOOK_EVERY = 16
"""At every so many evictions it is looked which keys are used, or when there may be twice as many as that."""


@dataclass(frozen=True)
class Node:
    """A run of cells' nodes at one level of the tree: cell ``cell[i]`` takes nodes ``first[i]`` to ``last[i]``."""

    level: int
    cell: Ints
    first: Ints
    last: Ints


class SliceStore:
    """The slices of a signature."""

    def __init__(self, types: Sequence[pa.DataType], partials: Partials) -> None:
        self.keys = KeyTable(types)
        self.key_count = len(types)
        self.is_global = not types
        """Without group keys there is one group, also where there are no rows."""
        self.eras = Eras()
        self.partials = partials
        self._uses_registers = fits_registers(partials)
        self._registers: dict[Instant, Registers] = {}
        """Open slices by their ends."""
        self._lifted: dict[Instant, int] = {}
        """How many rows open slices got that have no registers."""
        self._pieces: list[Slices] = []
        """Lifted rows of open slices; their numbers are the slices' ends."""
        self.ends = np.zeros(0, np.int64)
        """The ends of the closed slices; that of slice i is ``ends[i − first]``."""
        self.first = 0
        self._nothing = no_slices(partials.schema)
        self._layers = [Layer()]
        """The tree, level by level; its lowest are the slices themselves."""
        self._climbed = [0]
        """For each level the first node that is not in the level above."""
        self.running = RunningSums(partials)
        self._grown_to = FEWEST_GROWN
        """With so many closed slices it is worth while to look which of them can be merged."""
        self.merged_upto = DAWN
        """Slices up to this end have been merged since that was last asked for."""
        self.low = DAWN
        """Everything at or below it is gone."""
        self._used, self._overlooked = 0, 0
        """How many keys were used when it was last looked, and the evictions since then."""
        self.next_end = DUSK
        """The end of the first open slice."""
        self.touched: set[Instant] = set()
        """Ends of open slices that have changed since they were last asked for."""

    # ── rows in ──────────────────────────────────────────────────────────────────────────────────────────────

    def insert(self, rows: Prepared, lowest: Instant, highest: Instant) -> None:
        """Rows of a batch whose times lie between the bounds."""
        if not len(rows):
            return
        codes = self.keys.numbers(rows.keys, len(rows)) if rows.keys else None
        slices = self.eras.slices(lowest, highest, len(rows) // ROWS_PER_SLICE)
        if slices is None or not self._uses_registers:
            self._lift(rows, self.eras.ends(rows.time), codes)
            return
        if len(slices) == 1:
            self._add(int(slices[0]), rows, codes)
            return
        if (rows.time[1:] >= rows.time[:-1]).all():
            edges = np.searchsorted(rows.time, slices[:-1], side="right")
        else:
            which = np.searchsorted(slices, rows.time)
            order = np.argsort(which.astype(np.uint16), kind="stable")
            rows, codes = rows.take(order), None if codes is None else codes[order]
            edges = np.cumsum(np.bincount(which, minlength=len(slices)))[:-1]
        bounds = [0, *edges.tolist(), len(rows)]
        for end, start, stop in zip(slices.tolist(), bounds[:-1], bounds[1:], strict=True):
            if start < stop:
                self._add(end, rows.slice(start, stop), None if codes is None else codes[start:stop])

    def _add(self, end: Instant, rows: Prepared, codes: Ints | None) -> None:
        """Rows of one slice: into its registers, once it has rows enough to be worth them."""
        registers = self._registers.get(end)
        if registers is None:
            seen = self._lifted.get(end, 0) + len(rows)
            if seen < ROWS_PER_SLICE or ROOM_PER_ROW * seen < len(self.keys):
                self._lifted[end] = seen
                self._lift(rows, np.full(len(rows), end), codes)
                return
            room = 1 if codes is None else max(16, len(self.keys) + len(self.keys) // 4)
            registers = self._registers[end] = Registers(self.partials, room)
        registers.add(codes, len(rows), rows.args, len(self.keys))
        self.touched.add(end)
        self.next_end = min(self.next_end, end)

    def _lift(self, rows: Prepared, ends: Ints, keys: Ints | None) -> None:
        keys = np.zeros(len(rows), np.int64) if keys is None else keys
        codes, number, key = dense(ends, keys, len(self.keys))
        self._pieces.append(Slices(number, key, self.partials.lift(rows.args, rows.places, codes, len(number))))
        self.touched.update(np.unique(number).tolist())
        self.next_end = min(self.next_end, int(number[0]))
        if len(self._pieces) > PIECES:
            self._pieces = [self._merged(self._pieces)]

    def _merged(self, pieces: Iterable[Slices]) -> Slices:
        return merged(joined([self._nothing, *pieces]), self.partials, len(self.keys))

    # ── slices that close ────────────────────────────────────────────────────────────────────────────────────

    def close(self, watermark: Instant) -> None:
        """Slices that end at or below the watermark are closed."""
        if watermark < self.next_end:
            return
        ends = [end for end in self._registers if end <= watermark]
        closing = self.open(ends)
        if self._pieces:
            every = self._merged(self._pieces)
            count = int(np.searchsorted(every.number, watermark, side="right"))
            self._pieces = [every.slice(count, len(every))] if count < len(every) else []
            closing = self._merged([closing, every.slice(0, count)]) if ends else every.slice(0, count)
        for end in ends:
            del self._registers[end]
        self._lifted = {end: rows for end, rows in self._lifted.items() if end > watermark}
        self.touched = {end for end in self.touched if end > watermark}
        self.next_end = min([*self._registers, *(int(piece.number[0]) for piece in self._pieces)], default=DUSK)
        self.append(closing)

    def open(self, ends: Iterable[Instant]) -> Slices:
        """Some of the open slices that are kept in registers, by their ends."""
        packed = [self._registers[end].packed(end) for end in sorted(ends)]
        return packed[0] if len(packed) == 1 else joined([self._nothing, *packed])

    def opened(self, pages: Collection[int] | None = None, span: Duration = 1) -> Slices:
        """Open slices as they are now, by their ends: all, or those whose end lies in some stretches of time."""
        ends = [end for end in self._registers if pages is None or end // span in pages]
        pieces = self._pieces
        if pages is not None:
            wanted = np.fromiter(pages, np.int64, len(pages))
            pieces = [_chosen(piece, np.isin(piece.number // span, wanted)) for piece in pieces]
        return self._merged([self.open(ends), *pieces])

    def open_ends(self) -> set[Instant]:
        """The ends of all open slices that have rows."""
        return set(self._registers).union(*(np.unique(piece.number).tolist() for piece in self._pieces))

    def closed_since(self, end: Instant) -> Slices:
        """The slices that have closed after the one with this end, by their ends."""
        first = int(np.searchsorted(self.ends, end, side="right"))
        found = self._layers[0].span(self.first + first, self.first + len(self.ends))
        slices = joined([self._nothing, *found])
        return slices.renumbered(self.ends[slices.number - self.first])

    def append(self, closing: Slices) -> None:
        """Put closed slices, by their ends, behind those that are there."""
        if not len(closing):
            return
        number = self.first + len(self.ends)
        if closing.number[0] == closing.number[-1]:
            ends, numbers = closing.number[:1], np.full(len(closing), number)
        else:
            new = np.concatenate(([True], closing.number[1:] != closing.number[:-1]))
            ends, numbers = closing.number[new], number - 1 + np.cumsum(new)
        self._layers[0].append(closing.renumbered(numbers))
        self.ends = np.concatenate([self.ends, ends])

    def end_at(self, instant: Instant) -> None:
        """No row above this instant has come: the slice that reaches beyond it ends there."""
        end = self.eras.end(instant)
        if end == instant:
            return
        if end in self._registers:
            self._registers[instant] = self._registers.pop(end)
        if end in self._lifted:
            self._lifted[instant] = self._lifted.pop(end)
        self._pieces = [
            piece.renumbered(np.where(piece.number == end, instant, piece.number)) for piece in self._pieces
        ]
        if end in self.touched:
            self.touched.remove(end)
            self.touched.add(instant)
        if self.next_end == end:
            self.next_end = instant

    def reopen(self, slices: Slices) -> None:
        """Take open slices, by their ends, as they were when they were written."""
        if not len(slices):
            return
        self._pieces.append(slices)
        self.next_end = min(self.next_end, int(slices.number[0]))

    # ── history ──────────────────────────────────────────────────────────────────────────────────────────────

    def between(self, rear: Ints, front: Ints) -> tuple[Ints, Ints]:
        """The numbers of the first and the last slice in each (rear, front]; last < first where there is none."""
        first = np.searchsorted(self.ends, rear, side="right") + self.first
        return first, np.searchsorted(self.ends, front, side="right") + self.first - 1

    def layer(self, level: int) -> Layer:
        return self._layers[level]

    def nodes(self, first: Ints, last: Ints) -> Iterator[Node]:
        """The nodes that make up runs of slices, walking up the tree. Cells without slices have none."""
        some = first <= last
        cell, first, last = np.flatnonzero(some), first[some], last[some]
        height = self._climb(int((last - first).max(initial=0)) + 1)
        for level in range(height - 1):
            odd = first & 1 == 1
            yield Node(level, cell[odd], first[odd], first[odd])
            first = (first + odd) >> 1
            even = last & 1 == 0
            yield Node(level, cell[even], last[even], last[even])
            last = (last - even) >> 1
            some = first <= last
            cell, first, last = cell[some], first[some], last[some]
        yield Node(height - 1, cell, first, last)

    def _climb(self, widest: int) -> int:
        """Build the tree as high as runs of ``widest`` slices need it, and no higher than it pays; its height."""
        height = 1 if self.partials.is_holistic or widest <= 4 else widest.bit_length() - 1
        while len(self._layers) < height:
            self._layers.append(Layer())
            self._climbed.append(0)
        next_slice = self.first + len(self.ends)
        for level in range(height - 1):
            complete = (next_slice >> (level + 1)) << 1  # nodes from here on have no sibling yet
            rising = self._layers[level].span(self._climbed[level], complete - 1)
            self._climbed[level] = max(self._climbed[level], complete)
            if rising:
                nodes = joined(rising)
                made = merged(nodes.renumbered(nodes.number >> 1), self.partials, len(self.keys))
                self._layers[level + 1].append(made)
        return height

    @property
    def has_grown(self) -> bool:
        """Are there some more closed slices than when they were last merged?"""
        return len(self.ends) >= self._grown_to

    def merge(self, cuts: Ints) -> None:
        """Closed slices become one where the same cut is the first at or after their ends."""
        begins = np.concatenate(([True], cuts[1:] != cuts[:-1]))
        count = int(np.count_nonzero(begins))
        self._grown_to = count + max(FEWEST_GROWN, count // GROWN_PART)
        if count == len(begins):
            return
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(begins)) - 1
        slices = joined([self._nothing, *self._layers[0].span(self.first, self.first + len(self.ends) - 1)])
        number = (np.cumsum(begins) - 1)[slices.number - self.first]
        self.merged_upto = max(self.merged_upto, int(self.ends[last[first < last][-1]]))
        self.ends, self.first = self.ends[last], 0
        self._layers, self._climbed = [Layer()], [0]
        self._layers[0].append(merged(slices.renumbered(number), self.partials, len(self.keys)))
        self.running = RunningSums(self.partials)

    # ── what is gone ─────────────────────────────────────────────────────────────────────────────────────────

    def evict(self, low: Instant) -> None:
        """Nothing at or below this instant is asked for any more."""
        if low <= self.low:
            return
        gone = int(np.searchsorted(self.ends, low, side="right"))
        self.low = low
        self.eras.forget(low)
        if not gone:
            return
        self.ends = self.ends[gone:]
        self.first += gone
        for level, layer in enumerate(self._layers):
            layer.drop_below(self.first >> level)
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Once most keys have no slice left, number the others anew."""
        self._overlooked += 1
        if len(self.keys) < FEWEST_KEYS or (self._overlooked < LOOK_EVERY and len(self.keys) < 2 * self._used):
            return
        self._overlooked = 0
        used = np.zeros(len(self.keys), bool)
        for registers in self._registers.values():
            registers.mark(used)
        for slices in (*self._layers[0].chunks, *self._pieces):
            used[slices.key] = True
        self._used = int(np.count_nonzero(used))
        if 2 * self._used > len(self.keys):
            return
        for layer in self._layers[1:]:  # a node may still hold keys of slices that are gone
            for slices in layer.chunks:
                used[slices.key] = True
        self._unload_registers()
        number = self.keys.keep(np.flatnonzero(used))
        self._change(lambda slices: in_order(Slices(slices.number, number[slices.key], slices.columns)))

    def _change(self, change: Callable[[Slices], Slices]) -> None:
        """Everything but the registers in another form."""
        self._nothing = no_slices(self.partials.schema)
        self.running = RunningSums(self.partials)
        for layer in self._layers:
            layer.replace([change(slices) for slices in layer.chunks])
        self._pieces = [change(slices) for slices in self._pieces]

    # ── other partials ───────────────────────────────────────────────────────────────────────────────────────

    def keep(self, partials: Partials) -> None:
        """Keep other partials from now on: what is not kept any more is dropped from every slice."""
        if partials is self.partials:
            return
        self._unload_registers()
        before, self.partials = self.partials, partials
        self._uses_registers = fits_registers(partials)
        self._change(lambda s: Slices(s.number, s.key, partials.moved(s.columns, len(s), before)))
        self.touched.update(self.open_ends())

    def _unload_registers(self) -> None:
        """All open slices become pieces."""
        opened = self.opened()
        self._pieces = [opened] if len(opened) else []
        self._registers.clear()
        self._lifted.clear()

    @property
    def nbytes(self) -> int:
        """About how much memory the partials take."""
        slices = [*self._pieces, *(slices for layer in self._layers for slices in layer.chunks)]
        packed = sum(part.nbytes + 16 * len(part) for part in slices)
        return packed + self.running.nbytes + sum(registers.nbytes for registers in self._registers.values())


def _chosen(slices: Slices, mask: Bools) -> Slices:
    return slices if mask.all() else slices.take(np.flatnonzero(mask))
