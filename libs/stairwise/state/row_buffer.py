"""The rows that a window may still need, in stream order, in pages.

    answers        the rows of a stream by their position in stream order (time, partition, sequence)
    update         O(log r) amortised per row, r rows between the watermark and the newest
    lookup         O(log n) by time, O(1) by position
    space          the rows above the watermark and those that the window still reaches
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3 (a window's state as a queue in order of expiration)

                 settled: order is final              waiting: order is open
    ────────┬──────────┬──────────┬───────────┬╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▶ time
     dropped│  page    │  page    │  page     │     pages of what came in
            first                             watermark

A position counts from the stream's first row, dropped ones included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints, int64_view
from stairwise.schema import Instant
from stairwise.state.pages import concat, empty, from_page, number_of, numbered, take, to_page
from stairwise.state.store import Store

TIME, PARTITION, SEQUENCE = "_t", "_p", "_s"
PLACE = (TIME, PARTITION, SEQUENCE)
"""The columns that hold a row's place in the order of its stream; they come last."""

_DENSE = 8
"""Where at least one row in so many is asked for, the rows between are laid end to end to take them from."""

SMALL = 4096
"""A page with fewer rows takes in what comes next rather than staying alone."""


@dataclass
class _Page:
    """Rows under one key of the store; ``dirty`` where the store does not have them yet."""

    number: int
    rows: pa.RecordBatch
    dirty: bool = True

    def __len__(self) -> int:
        count: int = self.rows.num_rows
        return count

    @property
    def times(self) -> np.ndarray:
        return int64_view(self.rows.column(TIME))


class RowBuffer:
    """Rows of one input of a query, from when they come in until no report can need them."""

    def __init__(self, store: Store, prefix: bytes, schema: pa.Schema, first: int = 0) -> None:
        """``first`` is the position of the first settled row that is kept, as it stood at the last flush."""
        self._store = store
        self._settled_prefix = prefix + b"s"
        self._waiting_prefix = prefix + b"w"
        self.schema = placed(schema)
        self._settled = self._load(self._settled_prefix)
        self._waiting = self._load(self._waiting_prefix)
        self._gone: set[bytes] = set()
        self._times: np.ndarray | None = None
        """The times of the settled pages laid end to end, once they have been asked for."""
        self.first = first

    @property
    def end(self) -> int:
        """The position behind the last settled row."""
        return self._settled[-1].number + len(self._settled[-1]) if self._settled else self.first

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows with their places, all above the watermark."""
        if rows.num_rows:
            self._append(self._waiting, self._waiting_prefix, rows)

    def settle(self, watermark: Instant) -> None:
        """The order of all rows at or below the watermark is final."""
        ripe: list[pa.RecordBatch] = []
        still: list[_Page] = []
        for page in self._waiting:
            is_ripe = page.times <= watermark
            count = int(np.count_nonzero(is_ripe))
            if count == 0:
                still.append(page)
            elif count == len(page):
                ripe.append(page.rows)
                self._gone.add(numbered(self._waiting_prefix, page.number))
            elif is_ripe[:count].all():  # rows that came in order are cut, not copied
                ripe.append(page.rows.slice(0, count))
                still.append(_Page(page.number, page.rows.slice(count)))
            else:
                ripe.append(page.rows.filter(pa.array(is_ripe)))
                still.append(_Page(page.number, page.rows.filter(pa.array(~is_ripe))))
        self._waiting = still
        if ripe:
            rows = concat(ripe)
            places = [int64_view(rows.column(name)) for name in PLACE]
            if not _is_in_order(*places):
                rows = rows.take(pa.array(np.lexsort(places[::-1])))
            self._append(self._settled, self._settled_prefix, rows)
            self._times = None

    def _append(self, pages: list[_Page], prefix: bytes, rows: pa.RecordBatch) -> None:
        if pages and len(pages[-1]) < SMALL:
            last = pages[-1]
            if prefix == self._settled_prefix:
                last = self._trimmed(last)
            pages[-1] = _Page(last.number, concat([last.rows, rows]))
            return
        next_waiting = pages[-1].number + 1 if pages else 0
        pages.append(_Page(self.end if prefix == self._settled_prefix else next_waiting, rows))

    def _trimmed(self, page: _Page) -> _Page:
        """A settled page without the rows that are dropped."""
        if page.number >= self.first:
            return page
        self._gone.add(numbered(self._settled_prefix, page.number))
        return _Page(self.first, page.rows.slice(self.first - page.number))

    def rows(self, start: int, stop: int, names: list[str] | None = None) -> pa.RecordBatch:
        """The settled rows at positions start ≤ i < stop, or some columns of them."""
        parts = []
        for page in self._settled:
            low, high = max(start, page.number), min(stop, page.number + len(page))
            if low < high:
                rows = page.rows if names is None else page.rows.select(names)
                parts.append(rows.slice(low - page.number, high - low))
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        return concat(parts) if parts else empty(schema)

    def take(self, positions: Ints, names: list[str]) -> pa.RecordBatch:
        """Some columns of the settled rows at some positions, in any order."""
        if not self._settled:
            return empty(self.schema).select(names)
        if len(self._settled) > 1 and len(positions):
            low, high = int(positions.min()), int(positions.max()) + 1
            if _DENSE * len(positions) > high - low:
                return self.rows(low, high, names).take(pa.array(positions - low))
        starts = np.array([page.number for page in self._settled], np.int64)
        return take(starts, [page.rows.select(names) for page in self._settled], positions)

    @property
    def nbytes(self) -> int:
        """About how much memory its rows take."""
        total: int = sum(page.rows.nbytes for page in (*self._settled, *self._waiting))
        return total

    def passed(self, instants: np.ndarray) -> np.ndarray:
        """For each instant, the position behind the last settled row at or before it. Instants ascend."""
        if not self._settled:
            return np.full(len(instants), self.first, np.int64)
        if self._times is None:
            self._times = np.concatenate([page.times for page in self._settled])
        base = self._settled[0].number
        return np.maximum(np.searchsorted(self._times, instants, side="right") + base, self.first)

    def drop(self, before: int) -> None:
        """No report needs the settled rows at positions below ``before`` any more."""
        self.first = max(self.first, min(before, self.end))
        while self._settled and self._settled[0].number + len(self._settled[0]) <= self.first:
            page = self._settled[0]
            if len(self._settled) == 1 and len(page) < SMALL:
                break  # the page that the next rows join: it carries the position
            self._gone.add(numbered(self._settled_prefix, page.number))
            self._settled.pop(0)
            self._times = None

    def replace(self, rows: pa.RecordBatch) -> None:
        """Keep these of the settled rows only, where what is needed is not a suffix."""
        end = self.end
        self._gone.update(numbered(self._settled_prefix, page.number) for page in self._settled)
        self.first = end - rows.num_rows
        self._times = None
        self._settled = [_Page(self.first, rows)]

    def flush(self) -> None:
        for key in self._gone:
            self._store.delete(key)
        self._gone.clear()
        for prefix, pages in ((self._settled_prefix, self._settled), (self._waiting_prefix, self._waiting)):
            for page in pages:
                if page.dirty:
                    self._store.put(numbered(prefix, page.number), to_page(page.rows))
                    page.dirty = False

    def _load(self, prefix: bytes) -> list[_Page]:
        pages = self._store.scan(prefix)
        return [_Page(number_of(prefix, key), from_page(page), dirty=False) for key, page in pages]


def _is_in_order(time: Ints, partition: Ints, sequence: Ints) -> bool:
    """Are these the rows of one partition, in order of their times already?"""
    if not len(time) or partition[0] != partition[-1] or np.any(time[1:] < time[:-1]):
        return not len(time)
    return bool(np.all(partition == partition[0]) and np.all(sequence[1:] > sequence[:-1]))


def placed(schema: pa.Schema) -> pa.Schema:
    """A schema with the columns of the rows' places behind it."""
    return pa.schema([*schema, *(pa.field(name, pa.int64(), nullable=False) for name in PLACE)])
