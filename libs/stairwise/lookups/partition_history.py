"""The recent past of one partition: its rows in stream order, and the indexes that lookups have asked for.

    batch ──reorder──▶ settled rows ──┬─▶ pages: kept while RETAIN lets them
                                      └─▶ indexes of the signatures in use

While somebody asks, each batch goes that way as it comes, so that the next lookup finds all done. While nobody does,
batches are left to lie until there are ``LUMP`` rows: taken together they cost half as much.

RETAIN bounds both together. Where memory is short, indexes that are asked seldom go first. Those that are asked often
may take the place of the oldest rows, until rows have a quarter of the memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.expressions.views import Ints, int64_view
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.homes import are_at_home, have_homes
from stairwise.lookups.index_making import IndexMaking
from stairwise.lookups.index_shelf import MANY, IndexShelf
from stairwise.lookups.reorder import ReorderBuffer
from stairwise.lookups.scan import SLICE, Scan, Work, finished
from stairwise.lookups.settled_rows import BatchRows
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import Lookup
from stairwise.schema import DAWN, DUSK, Duration, Instant, Stream
from stairwise.state.pages import concat, empty

PAGE = 2_048
"""A page with fewer rows takes in what comes next, once that is not much smaller."""
LUMP = 1 << 14
"""Rows that are left to lie, at most, while nobody asks."""
FEW = 1 << 14
"""Rows that are not worth forgetting by themselves."""
MAKE = 1 << 19
"""Rows that are given to an index in one go: a fraction of a second."""
ROWS_SHARE = 4
"""Of the memory of a partition, rows keep this fraction, whatever structures are asked for."""
_MOST_NUMBERS = 1024


@dataclass(frozen=True)
class Retain:
    """How much of a partition is kept, at most."""

    time: Duration = 3_600_000
    """How far back from where the stream as a whole has come; where a partition is ahead of that, up to twice as much
    of it is kept."""
    size: int = 256 << 20
    """Bytes of rows and structures."""

    def of(self, stream: Stream) -> Retain:
        """What a stream's RETAIN says, and this where it says nothing. Its bytes are for all partitions together."""
        time = self.time if stream.retain_time is None else stream.retain_time
        size = self.size if stream.retain_bytes is None else stream.retain_bytes // stream.partitions
        return Retain(time, size)


class _Page:
    """Rows that are kept, as they came: those of one batch, or a copy of those of several small ones."""

    def __init__(self, piece: BatchRows, time_column: int, number: int) -> None:
        """``number`` is that of the first row."""
        times = piece.ints(time_column)
        self.piece = piece
        self.number = number
        self.rows = piece.rows
        self.times = times
        self.first: Instant = int(times[0])
        self.last: Instant = int(times[-1])


_first_of, _last_of, _number_of = attrgetter("first"), attrgetter("last"), attrgetter("number")


class PartitionHistory:
    """What a worker keeps of one partition. All that is asked of it is at or below its watermark."""

    def __init__(
        self, stream: Stream, partition: int, retain: Retain, reached: Callable[[], Instant] = lambda: DUSK
    ) -> None:
        """``reached`` tells how far the stream has come as a whole: what is asked is asked there."""
        self.stream = stream
        self._reached = reached
        self.partition = partition
        self._time: int = stream.arrow_schema.get_field_index(stream.time_column)
        self._retain = retain
        self._buffer = ReorderBuffer(stream)
        self._pages: deque[_Page] = deque()
        self._dropped = 0
        """Settled rows that are no longer kept."""
        self._shelf = IndexShelf(stream)
        self._numbers: dict[Instant, int] = {}
        """What ``number_at`` said since rows last came or went: lookups at the same T ask for the same instants."""
        self.cuts: dict[tuple[Instant, int], dict[int, int]] = {}
        """The same for ``last_rows``: how many of the last rows of all partitions, at an instant, are in each."""
        self.rows = 0
        """Settled rows that are kept."""
        self._page_bytes = 0
        self._horizon: Instant = DAWN
        self._to_forget = 0
        """Rows that were dropped and that the indexes may still have."""
        self._is_settled = True
        """Have all rows left the buffer that the watermark has passed?"""
        self.is_tidy = have_homes(stream)
        """Does PARTITION BY send every row here that the partition ever had?"""
        self._is_asked = False
        """Was anything asked since the last batch came?"""

    @property
    def watermark(self) -> Instant:
        return self._buffer.watermark

    @property
    def horizon(self) -> Instant:
        """Rows at or below it are no longer kept."""
        self._settle_to_answer()
        return self._horizon

    def number_at(self, instant: Instant) -> int:
        """How many rows are at or before an instant, dropped ones included: the number of the first row after it.

        Rows that were dropped stand at the horizon, the latest that they can have been at. A window that begins among
        them is out of reach.
        """
        self._settle_to_answer()
        known = self._numbers.get(instant)
        if known is None:
            if len(self._numbers) >= _MOST_NUMBERS:
                self._forget_numbers()
            known = self._numbers[instant] = self._number_at(instant)
        return known

    def _forget_numbers(self) -> None:
        self._numbers.clear()
        self.cuts.clear()

    def _number_at(self, instant: Instant) -> int:
        at = bisect_right(self._pages, instant, key=_first_of)
        if not at:
            return self._dropped if instant >= self._horizon else 0
        page = self._pages[at - 1]
        return page.number + int(page.times.searchsorted(instant, side="right"))

    def time_of(self, number: int) -> Instant:
        """The time of a row."""
        if number < self._dropped:
            return self._horizon
        page = self._pages[bisect_right(self._pages, number, key=_number_of) - 1]
        return int(page.times[number - page.number])

    def extent_of(self, first: int, end: int) -> WindowExtent:
        """The rows of these numbers, of which there may be none."""
        if first == end:
            return WindowExtent(self.watermark, self.watermark, first, end)
        return WindowExtent(self.time_of(first) - 1, self.time_of(end - 1), first, end)

    def reaches(self, extent: WindowExtent) -> bool:
        """Are all these rows kept?"""
        self._settle_to_answer()
        if extent.first is not None:
            return extent.first >= min(self._dropped, extent.end)
        if extent.each is not None:  # the index tells, key by key
            return True
        return extent.rear >= self._horizon or self._horizon == DAWN

    @property
    def size_bytes(self) -> int:
        return self._page_bytes + self._buffer.size_bytes + self._shelf.size_bytes

    def begin_after(self, rows: int, seen: Instant) -> None:
        """So many rows came before the first that is taken, and nobody has them; none of them is above an instant."""
        self._dropped = rows
        self._horizon = seen
        self.is_tidy = False  # for all that anybody knows

    def keep(self, retain: Retain) -> None:
        """Keep so much from now on: what is more goes at once, what went does not come back."""
        self._retain = retain
        if self._pages:
            self._keep_within()

    def take(self, rows: pa.RecordBatch, watermark: Instant) -> None:
        """A batch of the partition, in sequence order, and its watermark afterwards."""
        self._buffer.put(rows, watermark)
        self.is_tidy = self.is_tidy and are_at_home(rows, self.stream, self.partition)
        self._is_settled = False
        if self._is_asked or self._buffer.fresh >= LUMP:
            self._settle()
        self._is_asked = False

    def _settle_to_answer(self) -> None:
        """Called before anything is answered: the rows that the watermark has passed must be there."""
        self._is_asked = True
        if not self._is_settled:
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        settled = self._buffer.take()
        if not len(settled):
            return
        self._forget_numbers()
        first = self._dropped + self.rows
        for piece in settled.pieces:
            self.rows += piece.length
            self._append(piece)
        self._shelf.update(settled, first, self.rows)
        self._keep_within()

    def index(self, lookup: Lookup, extent: WindowExtent) -> SignatureIndex | None:
        """The index that answers a lookup over a stretch, if it is there. If it is worth having one, it is made."""
        self._settle_to_answer()
        use = self._shelf.ask(lookup)
        if use.index is not None and use.index.serves(lookup):
            return use.index
        use.looked_at += sum(len(page.times) for page in self._pages_of(extent))
        if use.looked_at >= self.rows and (lookup.asked is not None or not lookup.must_look_through):
            self._shelf.begin(lookup)
        return None

    def demand(self, lookup: Lookup) -> IndexMaking | None:
        """What must be made before a lookup that only an index can answer; None where the index is there."""
        self._settle_to_answer()
        use = self._shelf.ask(lookup)
        if use.index is not None and use.index.serves(lookup):
            return None
        use.asks = max(use.asks, MANY)
        return self._shelf.begin(lookup)

    @property
    def makings(self) -> list[IndexMaking]:
        """The indexes that are to be made."""
        return self._shelf.makings

    def make(self, making: IndexMaking, most: int = MAKE) -> Work[None]:
        """Give an index up to so many of the rows that it does not have yet. Nobody else must do so meanwhile."""
        first = max(making.next, self._dropped)
        end = min(first + most, self._dropped + self.rows)
        return making.work((concat(rows), number) for rows, number in self._slices(self.extent_of(first, end)))

    def adopt(self, making: IndexMaking) -> bool:
        """Take an index into use if it has all rows but a few; is there nothing left to be made of it?"""
        if making.is_given_up:
            return True
        end = self._dropped + self.rows
        if end - max(making.next, self._dropped) > SLICE:
            self._fit(making)
            return making.is_given_up
        finished(self.make(making))
        making.index.forget(self._horizon)
        self._shelf.finish(making)
        self._fit()
        return True

    def describe(self, lookup: Lookup) -> str:
        """How lookups of this kind are answered here now, and why."""
        self._settle_to_answer()
        kept = f"{self.partition}: {self.rows} rows and {self.size_bytes} bytes are kept"
        use = self._shelf.use_of(lookup)
        if use.index is not None and use.index.serves(lookup):
            why = f"since lookups have looked at more rows than that takes; asked {use.asks:.0f} times of late"
            return f"{kept}; {use.index.describe(lookup)}, {why}"
        if use.making is not None and use.making.index.serves(lookup):
            return f"{kept}; the rows are looked through: structures are being made of them"
        if lookup.must_look_through and lookup.asked is None:
            return f"{kept}; the rows are looked through: there is no structure for it"
        left = self.rows - use.looked_at
        return f"{kept}; the rows are looked through: structures are made after {left} rows more"

    def scan(self, lookup: Lookup, extent: WindowExtent) -> Scan:
        """The settled rows of a stretch, to be looked through."""
        self._settle_to_answer()
        slices = self._slices(extent) or [([empty(self.stream.arrow_schema)], 0)]
        count = sum(rows.num_rows for pieces, _ in slices for rows in pieces)
        return Scan(lookup, count, (self._placed(concat(pieces), number) for pieces, number in slices))

    def scan_at(self, lookup: Lookup, numbers: Ints) -> Scan:
        """The same for the settled rows of these numbers, which are in order and came from an index."""
        pages = pa.Table.from_batches([page.rows for page in self._pages], self.stream.arrow_schema)
        first = self._dropped

        def taken(some: Ints) -> tuple[pa.RecordBatch, Rows]:
            rows = concat(pages.take(pa.array(some - first)).combine_chunks().to_batches() or [empty(pages.schema)])
            return rows, replace(self._placed(rows, 0)[1], sequence=some)

        parts = range(0, max(1, len(numbers)), SLICE)
        return Scan(lookup, len(numbers), (taken(numbers[start : start + SLICE]) for start in parts))

    def _slices(self, extent: WindowExtent) -> list[tuple[list[pa.RecordBatch], int]]:
        """The settled rows of a stretch, as they are now, in pieces that make up slices; and their numbers."""
        found: list[tuple[list[pa.RecordBatch], int]] = []
        room = 0
        for page in self._pages_of(extent):
            if extent.first is None:
                start, stop = page.times.searchsorted((extent.rear, extent.front), side="right").tolist()
            else:
                start, stop = max(0, extent.first - page.number), min(len(page.times), extent.end - page.number)
            for begin in range(start, stop, SLICE):
                rows = page.rows.slice(begin, min(SLICE, stop - begin))
                if rows.num_rows > room:
                    found.append(([], page.number + begin))
                    room = SLICE
                found[-1][0].append(rows)
                room -= rows.num_rows
        return found

    def _pages_of(self, extent: WindowExtent) -> Iterator[_Page]:
        """The pages that have rows of a stretch, and perhaps others beside them."""
        return islice(
            self._pages,
            bisect_left(self._pages, extent.rear, key=_last_of),
            bisect_right(self._pages, extent.front, key=_first_of),
        )

    def last_times(self, front: Instant, count: int) -> Ints:
        """The times of the last ``count`` rows at or before an instant, in order."""
        end = self.number_at(front)
        first = max(0, end - count)
        kept = self.extent_of(max(first, min(end, self._dropped)), end)
        dropped: Ints = np.full(kept.first - first if kept.first is not None else 0, self._horizon)
        times = [int64_view(rows.column(self._time)) for pieces, _ in self._slices(kept) for rows in pieces]
        return np.concatenate([dropped, *times])

    def _placed(self, rows: pa.RecordBatch, first: int) -> tuple[pa.RecordBatch, Rows]:
        """Settled rows are in order of time and sequence: their number orders them as their sequence does."""
        count = rows.num_rows
        times = int64_view(rows.column(self._time))
        return rows, Rows(times, np.full(count, self.partition, np.int32), np.arange(first, first + count))

    def _append(self, piece: BatchRows) -> None:
        """Keep settled rows: with those of the same batch that were kept before, or as a page of their own."""
        while self._pages:
            page = self._pages[-1]
            joined = page.piece.joined(piece)
            if joined is None:
                if page.rows.num_rows > min(PAGE, 2 * piece.length):
                    break
                joined = BatchRows.of(concat([page.rows, piece.rows]))
            self._page_bytes -= page.rows.nbytes
            self._pages.pop()
            piece = joined
        kept = _Page(piece, self._time, self._dropped + self.rows - piece.length)
        self._pages.append(kept)
        self._page_bytes += kept.rows.nbytes

    def release(self, instant: Instant) -> None:
        """Rows at or before an instant are not asked for any more. What is not settled yet is dropped another time."""
        while self._pages and self._pages[0].last <= instant:
            self._drop()
        self._forget_much()

    def _keep_within(self) -> None:
        """Drop the oldest pages, all but the last, while more is kept than RETAIN says."""
        # Time ends with the last row where a partition is sealed.
        newest = min(self.watermark, self._pages[-1].last)
        oldest = max(min(newest, self._reached()), newest - self._retain.time) - self._retain.time
        while self._pages and self._pages[0].last <= oldest:
            self._drop()
        self._fit()
        self._forget_much()

    def _fit(self, making: IndexMaking | None = None) -> None:
        """Give up what is missed least while more is kept than RETAIN allows.

        ``making`` is an index that nobody gives rows to just now: it can forget those that are dropped.
        """
        while (size := self.size_bytes) > self._retain.size and self._give_up():
            if making is not None:
                making.forget(self._horizon)
        self._shelf.has_room(has_room=size < self._retain.size // 2)

    def _give_up(self) -> bool:
        """Give something up; False where there is nothing but the last page.

        Indexes that are asked seldom go before rows. One that is asked often would be made anew at once, of all rows,
        so rows go before it, the oldest quarter of them at a time; but not to less than their share of the memory.
        """
        are_many = len(self._pages) > 1 and self._page_bytes > self._retain.size // ROWS_SHARE
        if self._shelf.give_up_least(self.rows, most_asks=MANY if are_many else float("inf")):
            return True
        if len(self._pages) == 1:
            return False
        kept = self.rows - self.rows // 4
        self._drop()
        while len(self._pages) > 1 and self.rows > kept:
            self._drop()
        self._forget(give_back=True)
        return True

    def _forget_much(self) -> None:
        """Let the indexes forget what was dropped, once it is much: they go through all their keys for it."""
        if self._to_forget > min(FEW, self.rows // 8):
            self._forget()

    def _forget(self, *, give_back: bool = False) -> None:
        self._to_forget = 0
        self._shelf.forget(self._horizon, give_back=give_back)

    def _drop(self) -> None:
        page = self._pages.popleft()
        self._forget_numbers()
        self._dropped += page.rows.num_rows
        self._to_forget += page.rows.num_rows
        self.rows -= page.rows.num_rows
        self._page_bytes -= page.rows.nbytes
        self._horizon = max(self._horizon, page.last)
