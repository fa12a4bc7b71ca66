"""The state of a shared operator as pages of its store: a batch rewrites what it changed and nothing else.

    m          the cuts, and what is kept
    c<end>     slices that closed between two flushes, under the end of the last: written once, deleted when all of
               its slices are gone; merged slices take the place of the pages that they were in
    o<n>       the open slices of one stretch of time; rewritten while rows come in

Keys stand in the pages by their values, since their numbers do not survive.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import identity
from stairwise.aggregation.cuts import Eras, cuts_at
from stairwise.aggregation.partials import Partials
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.slices import Slices, in_order
from stairwise.expressions.views import int64_view
from stairwise.schema import DAWN, Duration, Instant
from stairwise.state.pages import from_page, number_of, numbered, to_page
from stairwise.state.store import Store
from stairwise.windows.schedule import Grid

_STATE, _CLOSED, _OPEN = b"m", b"c", b"o"


class State(msgspec.Struct):
    """What has to survive of an operator beside its slices."""

    since: dict[str, Instant]
    faults: dict[str, tuple[int, int]]
    low: Instant = DAWN
    kept: list[tuple[str, int]] = []
    """The partials in the pages, in order, with the number of columns of each."""
    eras: list[tuple[Instant, list[tuple[Duration, Duration]]]] = []
    """Where each era begins, and the slide and offset of its progressions of cuts."""


class Pages:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._closed: set[Instant] = set()
        """Pages of closed slices in the store."""
        self._written = DAWN
        """Closed slices up to this end are in the store."""
        self._open: set[int] = set()
        self._span: Duration = 0
        self._is_stale = False
        """Do the pages in the store have their partials in another order than the slices that were filled from them?"""

    def state(self) -> State | None:
        page = self._store.get(_STATE)
        return None if page is None else msgspec.msgpack.decode(page, type=State)

    def flush(self, slices: SliceStore, state: State) -> None:
        state.low = slices.low
        state.kept = _layout(slices)
        if self._is_stale:
            self.rewrite()
        eras = zip(slices.eras.begins, slices.eras.cuts, strict=True)
        state.eras = [(begin, [(p.slide, p.offset) for p in cuts.progressions]) for begin, cuts in eras]
        self._write_closed(slices)
        self._write_open(slices)
        self._store.put(_STATE, msgspec.msgpack.encode(state))

    def rewrite(self) -> None:
        """What is kept has changed: no page in the store is as it should be."""
        for end in self._closed:
            self._store.delete(numbered(_CLOSED, end))
        for number in self._open:
            self._store.delete(numbered(_OPEN, number))
        self._closed.clear()
        self._open.clear()
        self._written, self._span = DAWN, 0
        self._is_stale = False

    def _write_closed(self, slices: SliceStore) -> None:
        self._rewrite_merged(slices)
        fresh = slices.closed_since(self._written)
        if len(fresh):
            end = int(fresh.number[-1])
            self._store.put(numbered(_CLOSED, end), _page(slices, fresh))
            self._closed.add(end)
            self._written = end
        for end in [end for end in self._closed if end <= slices.low]:
            self._store.delete(numbered(_CLOSED, end))
            self._closed.remove(end)

    def _rewrite_merged(self, slices: SliceStore) -> None:
        """One page in place of all whose slices have been merged, or are older: merged slices are few."""
        upto, slices.merged_upto = slices.merged_upto, DAWN
        if upto == DAWN:
            return
        last = min((end for end in self._closed if end >= upto), default=self._written)
        for end in [end for end in self._closed if end <= last]:
            self._store.delete(numbered(_CLOSED, end))
            self._closed.remove(end)
        if last < upto:
            self._written = DAWN
            return
        closed = slices.closed_since(DAWN)
        self._store.put(numbered(_CLOSED, last), _page(slices, closed.upto(last)))
        self._closed.add(last)

    def _write_open(self, slices: SliceStore) -> None:
        is_other_span = self._span != slices.eras.now.page_span
        self._span = slices.eras.now.page_span
        there = {end // self._span for end in slices.open_ends()}
        touched = there if is_other_span else {end // self._span for end in slices.touched}
        for number in self._open if is_other_span else self._open - there:
            self._store.delete(numbered(_OPEN, number))
        self._open = there
        if touched:
            for number, part in _by_page(slices.opened(touched, self._span), self._span):
                self._store.put(numbered(_OPEN, number), _page(slices, part))
        slices.touched.clear()

    def load(self, slices: SliceStore, state: State) -> None:
        """Fill a slice store, which keeps the partials that are wanted now, from the pages."""
        slices.low = state.low
        self._is_stale = state.kept != _layout(slices)
        cuts = [cuts_at(Grid(*p) for p in progressions) for _, progressions in state.eras]
        slices.eras = Eras([begin for begin, _ in state.eras], cuts)
        for name, page in self._store.scan(_CLOSED):
            self._closed.add(number_of(_CLOSED, name))
            closed = _from_page(slices, page, state)
            slices.append(closed.slice(len(closed.upto(state.low)), len(closed)))
        self._written = max(self._closed, default=DAWN)
        self._span = slices.eras.now.page_span
        for name, page in self._store.scan(_OPEN):
            self._open.add(number_of(_OPEN, name))
            opened = _from_page(slices, page, state)
            # A page is written when a slice of it changes; one that has closed since stands among the closed ones.
            slices.reopen(opened.slice(len(opened.upto(max(self._written, state.low))), len(opened)))


def _layout(slices: SliceStore) -> list[tuple[str, int]]:
    """Which partials stand in the pages, in order, and how many columns each has."""
    return [(kept.key, kept.stop - kept.start) for kept in slices.partials.kept]


def _by_page(slices: Slices, span: Duration) -> Iterable[tuple[int, Slices]]:
    page = slices.number // span
    edges = np.flatnonzero(np.concatenate(([True], page[1:] != page[:-1], [True]))) if len(page) else np.zeros(1, int)
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield int(page[start]), slices.slice(start, stop)


def _page(store: SliceStore, slices: Slices) -> bytes:
    columns = [pa.array(slices.number), *store.keys.columns(slices.key), *slices.columns]
    return to_page(pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))]))


def _from_page(store: SliceStore, page: bytes, state: State) -> Slices:
    end, *columns = from_page(page).columns
    width = store.key_count
    keys = store.keys.numbers(columns[:width], len(end))
    return in_order(Slices(int64_view(end), keys, _moved(columns[width:], len(end), state.kept, store.partials)))


def _moved(columns: list[pa.Array], rows: int, kept: list[tuple[str, int]], to: Partials) -> list[pa.Array]:
    """The columns of a page as those of the partials that are kept now."""
    place: dict[str, slice] = {}
    start = 0
    for key, width in kept:
        place[key] = slice(start, start + width)
        start += width
    moved: list[pa.Array] = []
    for wanted in to.kept:
        moved += columns[place[wanted.key]] if wanted.key in place else identity(wanted.algebra, rows).columns
    return moved
