"""Groups over time windows by panes: rows become partial aggregates of a pane once, windows merge panes.

    answers        GROUP BY and aggregates over RANGE, TUMBLE, NOW and RANGES windows
    aggregates     any with associative partials, which all are
    update         O(1) per row and aggregate, plus O(1) merges per pane and key
    lookup         O(k log n) merges per report for n panes in the window and k keys; O(k n) for holistic partials
    space          2 n k partials
    order          any, as long as no row comes at or below the watermark
    from           panes: seed 000 section 2 and seed 004; the dyadic tree: B-INT of seed 004 section 3.1

Panes are cut at the edges that windows can have, the fronts τ−d and the rears τ−d−w, so that every window is a run
of whole panes. Where the slide divides the range there is one pane per slide, else two:

    SLIDE 4 RANGE 10       front       front       front
    ──────────────┼─────┼─────┼─────┼─────┼─────┼─────┼──▶
                     rear        rear        rear
    panes          2s   2s+1

Over the panes stands a tree: node i of level j holds panes i·2^j up to (i+1)·2^j − 1. It grows by a few dozen
closed panes at a time, since a merge has a price of its own, however few it merges. A run of n panes is at most
2 log n nodes and the panes that the tree does not hold yet:

    level 2               ├───────────────┤
    level 1       ├───────┤               ├───────┤   tree
    level 0   ├───┤                               ├───┼─┼─┼─┤
                                                      new panes
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.cql.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.buffer import PLACE
from stairwise.operators.cells import Cells
from stairwise.operators.contract import Batch, Joined
from stairwise.operators.grouping import Grouping
from stairwise.operators.join import expand_ranges
from stairwise.operators.keys import KeyTable
from stairwise.operators.moments import Moments
from stairwise.operators.pages import from_page, number_of, numbered, to_page
from stairwise.operators.preparation import Preparation
from stairwise.operators.side import at_or_before
from stairwise.operators.slices import Slices, dense, joined, merged, no_slices
from stairwise.operators.store import Store
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import MultiWindow, TimeWindow

FLAT = 4
"""A window of at most this many panes merges them as they are, without a tree."""
GROWTH = 32
"""How many panes the tree lags behind, at most."""
PANES_PER_PAGE = 64


@dataclass(frozen=True)
class Cut:
    """How time is cut into panes, and how many panes each level's window spans."""

    slide: Duration
    phase: Duration
    remainder: Duration
    """What the range is longer than a multiple of the slide: then a slide is cut in two."""
    lag: Duration
    spans: tuple[int, ...]

    def pane_of(self, times: Ints) -> Ints:
        step = -((self.phase - times) // self.slide)
        if not self.remainder:
            return step
        return 2 * step + (times > self.phase + step * self.slide - self.remainder)

    def end_of(self, panes: Ints) -> Ints:
        """The last instant of each pane."""
        if not self.remainder:
            return self.phase + panes * self.slide
        return self.phase + (panes // 2) * self.slide - np.where(panes % 2 == 0, self.remainder, 0)

    def span(self, reports: Ints, levels: Ints) -> tuple[Ints, Ints]:
        """The first and last pane of the windows that report at these times."""
        last = self.pane_of(reports - self.lag)
        return last - np.array(self.spans)[levels] + 1, last


def cut_of(window: TimeWindow | MultiWindow) -> Cut:
    if isinstance(window, TimeWindow):
        whole, remainder = divmod(window.range, window.slide)
        panes = 2 * whole + 1 if remainder else whole
        phase = (window.offset - window.lag) % window.slide
        return Cut(window.slide, phase, remainder, window.lag, (panes,))
    if window.horizon is not None:
        return Cut(window.granule, 0, 0, 0, (window.horizon // window.granule,))
    step = math.gcd(*(level.slide for level in window.levels))
    return Cut(step, 0, 0, 0, tuple(level.range // step for level in window.levels))


class Panes:
    """A grouped SELECT over one time window."""

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        window = select.inputs[0].window
        assert isinstance(window, TimeWindow | MultiWindow)
        self.select = select
        self._store, self._prefix, self._key = store, prefix + b"p", prefix + b"m"
        self._cut = cut_of(window)
        self._grids = report_grids(window)
        self._preparation = Preparation(select, 0)
        self._grouping = Grouping(select)
        self._partials = self._grouping.partials
        self._keys = KeyTable([key.type.arrow for key in select.keys])
        widest = max(self._cut.spans)
        self._height = 1 if widest <= FLAT or self._partials.is_holistic else widest.bit_length()
        nothing = no_slices(self._partials.schema)
        self._levels: list[Slices] = [nothing] * self._height
        """Closed nodes by level of the tree; those of level 0 are the panes."""
        self._nodes: Slices | None = None
        """The same laid end to end, once they have been asked for."""
        self._climbed = [0] * self._height
        """How many rows of each level are in the level above."""
        self._grown_to = -(2**62)
        """The last pane that the tree takes into account: every node up to it is made."""
        self._fresh: list[Slices] = []
        """Lifted rows of panes that are not closed yet."""
        self._touched: set[int] = set()
        """Pages that the store does not have as they are now."""
        self._stored: set[int] = set()
        self._low: int | None = None
        """Panes below it are gone."""
        self._load()

    # ── rows in ──────────────────────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        if batch.stream != self.select.inputs[0].stream.name:
            return
        rows = self._preparation.rows(batch, horizon, faults)
        if not rows.num_rows:
            return
        time, partition, sequence = (int64_view(rows.column(name)) for name in PLACE)
        pane = self._cut.pane_of(time)
        keys = [rows.column(f"k{i}") for i in range(len(self.select.keys))]
        codes, number, key = dense(pane, self._keys.numbers(keys, rows.num_rows), len(self._keys))
        places = Rows(time, partition.astype(np.int32), sequence)
        self._fresh.append(Slices(number, key, self._partials.lift(rows, places, codes, len(number))))
        self._touched.update(np.unique(number // PANES_PER_PAGE).tolist())

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        """Panes that end at or below the watermark are closed: merge them, and build the tree above them."""
        if self._fresh:
            fresh = merged(joined(self._fresh), self._partials, len(self._keys))
            closed = int(np.searchsorted(self._cut.end_of(fresh.number), watermark, side="right"))
            self._fresh = [fresh.slice(closed, len(fresh))] if closed < len(fresh) else []
            self._levels[0] = joined([self._levels[0], fresh.slice(0, closed)])
        self._nodes = None
        panes = self._levels[0].number[self._climbed[0] :]
        if self._height > 1 and len(panes) and panes[-1] - panes[0] >= GROWTH:
            self._grow(watermark)

    def _grow(self, watermark: Instant) -> None:
        """Make the nodes whose last pane is closed by now."""
        self._grown_to = int(self._cut.pane_of(np.array([watermark + 1]))[0]) - 1
        for level in range(self._height - 1):
            below = self._levels[level]
            start = self._climbed[level]
            parents = below.number[start:] >> 1
            last_pane = ((parents + 1) << (level + 1)) - 1
            count = int(np.searchsorted(last_pane, self._grown_to, side="right"))
            if count == 0:
                continue  # a node above may be complete all the same: its last panes were empty
            made = below.slice(start, start + count).renumbered(parents[:count])
            self._climbed[level] = start + count
            made = merged(made, self._partials, len(self._keys))
            self._levels[level + 1] = joined([self._levels[level + 1], made])

    # ── reports out ──────────────────────────────────────────────────────────────────────────────────────────

    def row_moments(self) -> tuple[Ints, Ints]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def work(self, moments: Moments) -> Ints:
        first, last = self._spans(moments)
        panes = self._levels[0].number
        rows = np.searchsorted(panes, last, side="right") - np.searchsorted(panes, first, side="left")
        return rows if self._height == 1 else np.minimum(rows, 2 * self._height * len(self._keys))

    def _spans(self, moments: Moments) -> tuple[Ints, Ints]:
        # Of several levels only those that are due are asked for.
        own = at_or_before(self._grids[0], moments.times) if len(self._grids) == 1 else moments.times
        return self._cut.span(own, moments.levels)

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        nodes, starts = self._laid_out()
        cells, at = [], []
        for level, cell, first, last in self._runs(*self._spans(moments)):
            numbers = self._levels[level].number
            start = np.searchsorted(numbers, first, side="left")
            count = np.searchsorted(numbers, last, side="right") - start
            cells.append(np.repeat(cell, count))
            at.append(expand_ranges(start + starts[level], count))
        found = nodes.take(np.concatenate(at)).renumbered(np.concatenate(cells))
        rank = self._keys.rank()
        ordered = Slices(found.number, rank[found.key], found.columns)
        if not self.select.keys:
            return self._global(moments, ordered)
        ordered = merged(ordered, self._partials, len(self._keys))
        by_rank = np.argsort(rank)
        keys = self._keys.columns(by_rank[ordered.key])
        return self._grouping.lowered(ordered.number, keys, ordered.columns, moments.times)

    def _laid_out(self) -> tuple[Slices, list[int]]:
        """The nodes of all levels end to end, so that reports take theirs at once, and where each level begins."""
        if self._nodes is None:
            self._nodes = joined(self._levels)
        starts = [0, *accumulate(len(level) for level in self._levels)]
        self._levels = [self._nodes.slice(i, j) for i, j in pairwise(starts)]
        return self._nodes, starts

    def _global(self, moments: Moments, found: Slices) -> Cells:
        """Without keys every moment has its row, also one without rows."""
        cell = np.arange(len(moments))
        columns = found.columns
        if not np.array_equal(found.number, cell):
            columns = self._partials.combine(columns, found.number, len(moments))
        return self._grouping.lowered(cell, [], columns, moments.times)

    def _runs(self, first: Ints, last: Ints) -> Iterator[tuple[int, Ints, Ints, Ints]]:
        """The nodes that make up runs of panes: (level, cell, first node, last node), walking up the tree."""
        cell = np.arange(len(first))
        if self._height > 1:
            new = last > self._grown_to
            yield 0, cell[new], np.maximum(first[new], self._grown_to + 1), last[new]
            last = np.minimum(last, self._grown_to)
            old = first <= last
            cell, first, last = cell[old], first[old], last[old]
        for level in range(self._height - 1):
            odd = first & 1 == 1
            yield level, cell[odd], first[odd], first[odd]
            first = (first + odd) >> 1
            even = last & 1 == 0
            yield level, cell[even], last[even], last[even]
            last = (last - even) >> 1
            some = first <= last
            cell, first, last = cell[some], first[some], last[some]
        yield self._height - 1, cell, first, last

    # ── what is gone, and what is kept ───────────────────────────────────────────────────────────────────────

    def evict(self, watermark: Instant) -> None:
        if watermark >= DUSK or watermark <= DAWN:
            return
        own = np.array([int(at_or_before(grid, np.array([watermark + 1]))[0]) for grid in self._grids])
        low = int(self._cut.span(own, np.arange(len(own)))[0].min())
        for level, nodes in enumerate(self._levels):
            gone = int(np.searchsorted(nodes.number, low >> level, side="left"))
            if gone:
                self._levels[level] = nodes.slice(gone, len(nodes))
                self._climbed[level] = max(0, self._climbed[level] - gone)
        self._low = low
        self._nodes = None
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Once most keys have left the window, number the others anew."""
        if len(self._keys) < 1024 or not self.select.keys:
            return
        used = np.unique(np.concatenate([s.key for s in (*self._levels, *self._fresh)]))
        if 2 * len(used) > len(self._keys):
            return
        number = self._keys.keep(used)
        self._levels = [Slices(s.number, number[s.key], s.columns) for s in self._levels]
        self._fresh = [Slices(s.number, number[s.key], s.columns) for s in self._fresh]

    def flush(self) -> None:
        """Pages hold the panes, closed or not; the tree is made from them again."""
        closed = self._levels[0]
        first = int(np.searchsorted(closed.number, min(self._touched, default=0) * PANES_PER_PAGE))
        changed = joined([closed.slice(first, len(closed)), *self._fresh])
        changed = merged(changed, self._partials, len(self._keys))
        for page in sorted(self._touched):
            start, stop = np.searchsorted(changed.number, (page * PANES_PER_PAGE, (page + 1) * PANES_PER_PAGE))
            rows = changed.slice(int(start), int(stop))
            if len(rows):
                columns = [pa.array(rows.number), *self._keys.columns(rows.key), *rows.columns]
                names = [str(i) for i in range(len(columns))]
                page_rows = pa.RecordBatch.from_arrays(columns, names=names)
                self._store.put(numbered(self._prefix, page), to_page(page_rows))
                self._stored.add(page)
        self._touched.clear()
        for page in [p for p in self._stored if self._low is not None and p < self._low // PANES_PER_PAGE]:
            self._store.delete(numbered(self._prefix, page))
            self._stored.remove(page)
        self._store.put(self._key, msgspec.msgpack.encode(self._low))

    def _load(self) -> None:
        page = self._store.get(self._key)
        if page is None:
            return
        self._low = msgspec.msgpack.decode(page)
        width = len(self.select.keys)
        for name, stored in self._store.scan(self._prefix):
            self._stored.add(number_of(self._prefix, name))
            number, *columns = from_page(stored).columns
            panes = int64_view(number)
            key = self._keys.numbers(columns[:width], len(panes))
            start = 0 if self._low is None else int(np.searchsorted(panes, self._low, side="left"))
            self._fresh.append(Slices(panes, key, columns[width:]).slice(start, len(panes)))
