"""The recent past of one partition: its rows in stream order, and the indexes that lookups have asked for.

    batch ──reorder──▶ settled rows ──┬─▶ pages: kept while RETAIN lets them
                                      └─▶ indexes of the signatures in use

While somebody asks, each batch goes that way as it comes, so that the next lookup finds all done. While nobody does,
batches are left to lie until there are ``LUMP`` rows: taken together they cost half as much.

A signature has no index at first: its lookups look through the rows. When they have looked at as many rows as there
are, an index is made of them; when it has taken in many more rows than are kept without being asked, it is given up.
Where memory is short, the past is shortened rather than an index given up that is asked.
So whoever asks often pays for updates, and whoever asks once does not (seed 004 section 1.2).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.expressions.views import Ints, int64_view
from stairwise.lookups.extent import Extent
from stairwise.lookups.reorder import ReorderBuffer
from stairwise.lookups.settled_rows import BatchRows, SettledRows
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import Bound, Lookup, LookupSignature, Need
from stairwise.schema import DAWN, DUSK, Duration, Instant, Stream
from stairwise.state.pages import concat, empty

PAGE = 2_048
"""A page with fewer rows takes in what comes next, once that is not much smaller."""
FEW = 1 << 14
"""Rows that are not worth forgetting by themselves, and for which no index is given up."""
MAKE = 1 << 19
"""Rows that a lookup gives to an index that is being made: a fraction of a second."""
LUMP = 1 << 14
"""Rows that are left to lie, at most, while nobody asks."""
PATIENCE = 8
"""An index that took in so many times the rows that are kept, without being asked, is given up."""
LEAST_SHARE = 8
"""Of the memory of a partition, rows keep this fraction, whatever structures are asked for."""
MOST_USES = 1024
"""Signatures whose use is remembered and that can have indexes."""


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


@dataclass
class _Use:
    """How a signature is used."""

    looked_at: int = 0
    """Rows that lookups without an index have looked at."""
    unasked: int = 0
    """Rows that the index took in since it was last asked."""
    making: SignatureIndex | None = None
    """An index that does not have all rows yet."""
    made: int = 0
    """The number of the first row that it does not have."""


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
        self._indexes: dict[LookupSignature, SignatureIndex] = {}
        self._uses: dict[LookupSignature, _Use] = {}
        self.rows = 0
        """Settled rows that are kept."""
        self._page_bytes = 0
        self._horizon: Instant = DAWN
        self._to_forget = 0
        """Rows that were dropped and that the indexes may still have."""
        self._is_settled = True
        """Have all rows left the buffer that the watermark has passed?"""
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

    def extent_of(self, first: int, end: int) -> Extent:
        """The rows of these numbers, of which there may be none."""
        if first == end:
            return Extent(self.watermark, self.watermark, first, end)
        return Extent(self.time_of(first) - 1, self.time_of(end - 1), first, end)

    def reaches(self, extent: Extent) -> bool:
        """Are all these rows kept?"""
        self._settle_to_answer()
        if extent.first is not None:
            return extent.first >= min(self._dropped, extent.end)
        return extent.rear >= self._horizon or self._horizon == DAWN

    @property
    def size_bytes(self) -> int:
        making = sum(use.making.size_bytes for use in self._uses.values() if use.making is not None)
        indexes = sum(index.size_bytes for index in self._indexes.values())
        return self._page_bytes + self._buffer.size_bytes + indexes + making

    def _has_room(self, size: int) -> bool:
        """Is less than half of what may be kept in use?"""
        return size < self._retain.size // 2

    def begin_after(self, rows: int, seen: Instant) -> None:
        """So many rows came before the first that is taken, and nobody has them; none of them is above an instant."""
        self._dropped = rows
        self._horizon = seen

    def keep(self, retain: Retain) -> None:
        """Keep so much from now on: what is more goes at once, what went does not come back."""
        self._retain = retain
        if self._pages:
            self._keep_within()

    def take(self, rows: pa.RecordBatch, watermark: Instant) -> None:
        """A batch of the partition, in sequence order, and its watermark afterwards."""
        self._buffer.put(rows, watermark)
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
        first = self._dropped + self.rows
        for piece in settled.pieces:
            self.rows += piece.length
            self._append(piece)
        for signature, index in list(self._indexes.items()):
            use = self._uses[signature]
            use.unasked += len(settled)
            if use.unasked > PATIENCE * max(self.rows, FEW):
                del self._indexes[signature], self._uses[signature]  # asked again, it starts over
            else:
                index.update(settled, first)
        self._keep_within()

    def index(self, lookup: Lookup, extent: Extent, *, at_once: bool = False) -> SignatureIndex | None:
        """The index that answers a lookup over a stretch, if it is worth having one and is there.

        An index is made of ``MAKE`` rows at each lookup that asks for it, so that none has to wait for all;
        ``at_once`` says that this one does.
        """
        self._settle_to_answer()
        signature = lookup.signature
        use = self._use(signature)
        index = self._indexes.get(signature)
        if index is not None and index.serves(lookup):
            return index
        use.looked_at += self.rows if at_once else sum(len(page.times) for page in self._pages_of(extent))
        if use.looked_at < self.rows or (lookup.must_look_through and lookup.asked is None):
            return None
        if use.making is None or not use.making.serves(lookup):
            use.making, use.made = self._planned(lookup, index, use.making), self._dropped
        return self._go_on(signature, use, use.making, at_once=at_once)

    def _use(self, signature: LookupSignature) -> _Use:
        """The use of a signature that is asked now; beyond ``MOST_USES``, the one asked longest ago is forgotten."""
        use = self._uses.pop(signature, None) or _Use()
        self._uses[signature] = use
        use.unasked = 0
        if len(self._uses) > MOST_USES:
            oldest = next(iter(self._uses))
            self._indexes.pop(oldest, None)
            del self._uses[oldest]
        return use

    def describe(self, lookup: Lookup) -> str:
        """How lookups of this kind are answered here now, and why."""
        self._settle_to_answer()
        kept = f"{self.partition}: {self.rows} rows and {self.size_bytes} bytes are kept"
        index = self._indexes.get(lookup.signature)
        if index is not None and index.serves(lookup):
            why = "since lookups have looked at more rows than that takes"
            return f"{kept}; {index.describe(lookup.needs)}, {why}"
        use = self._uses.get(lookup.signature, _Use())
        return f"{kept}; the rows are looked through: structures are made after {self.rows - use.looked_at} rows more"

    def span(self, extent: Extent) -> tuple[pa.RecordBatch, Rows]:
        """The settled rows of a stretch, and their places."""
        self._settle_to_answer()
        found, place = [], None
        for page in self._pages_of(extent):
            if extent.first is None:
                start, stop = page.times.searchsorted((extent.rear, extent.front), side="right").tolist()
            else:
                start, stop = max(0, extent.first - page.number), min(len(page.times), extent.end - page.number)
            if stop > start:
                found.append(page.rows.slice(start, stop - start))
                place = page.number + start if place is None else place
        rows = concat(found) if found else empty(self.stream.arrow_schema)
        return rows, self._places(rows, place or 0)

    def _pages_of(self, extent: Extent) -> Iterator[_Page]:
        """The pages that have rows of a stretch, and perhaps others beside them."""
        return islice(
            self._pages,
            bisect_left(self._pages, extent.rear, key=_last_of),
            bisect_right(self._pages, extent.front, key=_first_of),
        )

    def rows_at(self, numbers: Ints) -> tuple[pa.RecordBatch, Rows]:
        """The settled rows of these numbers, which are in order and came from an index, and their places."""
        if not len(numbers):
            rows = empty(self.stream.arrow_schema)
            return rows, self._places(rows, 0)
        pages = pa.Table.from_batches([page.rows for page in self._pages])
        (rows,) = pages.take(pa.array(numbers - self._dropped)).combine_chunks().to_batches()
        places = self._places(rows, 0)
        return rows, Rows(places.time, places.partition, numbers)

    def last_times(self, front: Instant, count: int) -> Ints:
        """The times of the last ``count`` rows at or before an instant, in order."""
        end = self.number_at(front)
        first = max(0, end - count)
        times = self.span(self.extent_of(max(first, min(end, self._dropped)), end))[1].time
        return np.concatenate((np.full(end - first - len(times), self._horizon, np.int64), times))

    def _places(self, rows: pa.RecordBatch, first: int) -> Rows:
        """Settled rows are in order of time and sequence: their number orders them as their sequence does."""
        count = rows.num_rows
        times = int64_view(rows.column(self._time))
        return Rows(times, np.full(count, self.partition, np.int32), np.arange(first, first + count))

    def _planned(self, lookup: Lookup, *others: SignatureIndex | None) -> SignatureIndex:
        """An empty index for a lookup, and for all that others of its signature were made for."""
        indexed = lookup.needs_numbers
        needs: set[Need] = set() if lookup.must_look_through else set(lookup.needs)
        bounds = [] if lookup.bound is None else [lookup.bound]
        for other in others:
            if other is not None:
                needs |= other.needs
                indexed |= other.is_indexed
                bounds += [Bound(function, args, 0, strict=False) for function, args in other.filtered]
        return SignatureIndex(self.stream, lookup.signature, needs, bounds, indexed=indexed)

    def _go_on(
        self, signature: LookupSignature, use: _Use, index: SignatureIndex, *, at_once: bool
    ) -> SignatureIndex | None:
        """Give an index some of the rows that it does not have yet; the index, if it has them all now."""
        use.made = max(use.made, self._dropped)
        end = self._dropped + self.rows
        stop = end if at_once else min(end, use.made + MAKE)
        first = self._dropped
        for page in self._pages:
            last = first + page.rows.num_rows
            if first < stop and last > use.made:
                skip = max(0, use.made - first)
                rows = page.rows.slice(skip, min(last, stop) - first - skip)
                index.update(SettledRows.of(rows, self._time), first + skip)
            first = last
        use.made = stop
        if stop < end:
            return None
        index.forget(self._horizon)
        use.making = None
        self._indexes[signature] = index
        index.has_room = self._has_room(self.size_bytes)
        return index

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
        while (size := self.size_bytes) > self._retain.size and self._give_up():
            pass
        for index in self._indexes.values():
            index.has_room = self._has_room(size)
        self._forget_much()

    def _give_up(self) -> bool:
        """Give up what is missed least; False where there is nothing but the last page.

        Indexes that nobody asks go first. One that is asked would be made anew at once, of all rows, so rows go before
        it, the oldest quarter of them at a time and with them their places in the indexes; but not to less than a
        share of the memory.
        """
        asked = {signature: use for signature, use in self._uses.items() if signature in self._indexes or use.making}
        least = max(asked, key=lambda signature: asked[signature].unasked, default=None)
        are_few = len(self._pages) == 1 or self._page_bytes < self._retain.size // LEAST_SHARE
        if least is not None and (are_few or asked[least].unasked > self.rows):
            self._indexes.pop(least, None)
            del self._uses[least]
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
        for signature, index in list(self._indexes.items()):
            index.forget(self._horizon, give_back=give_back)
            if index.is_crowded:  # the next lookups make it anew, of the keys that there are
                del self._indexes[signature]

    def _drop(self) -> None:
        page = self._pages.popleft()
        self._dropped += page.rows.num_rows
        self._to_forget += page.rows.num_rows
        self.rows -= page.rows.num_rows
        self._page_bytes -= page.rows.nbytes
        self._horizon = max(self._horizon, page.last)
