"""The messages of a report as one kind of subscriber gets them, made once for all subscribers of that kind.

    journal ─▶ report ─▶ rendition (query, encoding, filter) ─▶ bytes ─▶ subscriber
                                                                  ├────▶ subscriber      the same bytes
                                                                  └────▶ subscriber

A rendition remembers the answer that it showed last, so that the next difference costs one expansion; a subscriber
that is elsewhere makes it begin anew from the report before its own. Bytes are kept while they are shared, the most
recently used ones up to a bound.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from opentelemetry.trace import SpanKind

from services.results import encoding, protobuf_rows
from services.results.assembly import Released
from services.results.cursor import Cursor
from services.results.encoding import Encoding
from services.results.moved_report import MovedReport, lost, stood_before
from services.results.selection import Selection
from stairwise.algebra.query import Emit, Query, levels_of
from stairwise.errors import LimitError
from stairwise.platform import telemetry
from stairwise.reports.contract import Position
from stairwise.reports.emission import Emission
from stairwise.reports.expansion import Expansion
from stairwise.reports.standing_answer import KeptAnswer, StandingRows, entering, tells_ends, without_last
from stairwise.schema import DAWN
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered

KEPT_BYTES = 64 << 20
"""How many bytes of messages are kept for other subscribers."""
HUGE = 16 << 20
"""Of an answer of so many bytes a few messages are made at a time, for each subscriber as it takes them."""
AHEAD = 16
KEPT_STANDING = 2
"""After how many reports what stands is remembered: for the slowest and the quickest of its subscribers, say."""
HUGE_IN_ALL = 1 << 30
"""How many bytes the answers of this size may have together, those that are being sent at a time."""
LARGE = 64 << 10
MANY = 1_000
"""A report of so many bytes, or a whole answer of more rows, is expanded in a thread: the loop goes on meanwhile."""
_UPDATE, _TOKEN = b"\x12", b"\x2a"


@dataclass(frozen=True)
class Sending:
    """A ``SubscribeResponse``, serialised, and the token that it carries."""

    message: bytes
    token: bytes
    is_update: bool = False


@dataclass(frozen=True)
class _Huge:
    """A report whose messages are not all made at once."""

    size: int
    sendings: Iterator[Sending]


Key = tuple[str, Encoding, bytes]


class Renditions:
    """One rendition for each kind of subscription that there is."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._renditions: dict[Key, Rendition] = {}
        self._cache = _MessageCache(kept_bytes)

    @contextmanager
    def use(self, registered: Registered, encoding: Encoding, selection: Selection) -> Iterator[Rendition]:
        """The rendition for a subscription, shared with all that are like it."""
        if compares_by_level(registered.query):
            yield Rendition(registered, encoding, selection, self._cache)
            return
        key = registered.identity, encoding, selection.digest
        if key not in self._renditions:
            self._renditions[key] = Rendition(registered, encoding, selection, self._cache)
        found = self._renditions[key]
        found.users += 1
        try:
            yield found
        finally:
            found.users -= 1
            if not found.users:
                del self._renditions[key]


def compares_by_level(query: Query) -> bool:
    """Does each level have a last answer of its own? Then more than the last report tells what comes next."""
    return query.emit is not Emit.RSTREAM and levels_of(query) is not None


class Rendition:
    """What subscribers of one kind get of each report."""

    def __init__(self, registered: Registered, encoding: Encoding, selection: Selection, cache: _MessageCache) -> None:
        self.registered = registered
        self.users = 0
        self._kind: Key = registered.identity, encoding, selection.digest
        self._encoding = encoding
        self._selection = selection
        self._cache = cache
        self._expansion = Expansion(registered.query)
        self._last: Position | None = None
        """The report that the expansion has seen last."""
        self._standings: OrderedDict[Position, KeptAnswer] = OrderedDict()
        """What stands after the last reports that subscribers of this kind have come to, where rows tell their ends."""
        self._rendering = asyncio.Lock()
        self._is_shared = not compares_by_level(registered.query)

    @property
    def shows_lifetimes(self) -> bool:
        return self._selection.lifetimes

    def token(self, cursor: Cursor) -> bytes:
        return replace(cursor, filter=self._selection.digest).token(self.registered)

    def response(self, cursor: Cursor, message: pb.SubscribeResponse) -> Sending:
        """A message that is not shared, with the token of a cursor."""
        token = self.token(cursor)
        message.token = token
        return Sending(message.SerializeToString(), token)

    def resume(self, released: Released) -> None:
        """Take a report as shown before. Only what compares by level has to be told of more than the last one."""
        if not self._is_shared:
            self._expansion.resume(released.report())
            self._last = released.position

    async def updates(self, released: Released, base: Released | None, start: Cursor) -> AsyncIterator[Sending]:
        """The updates of a report and its progress mark. ``base`` is the report before; ``start`` where to begin."""
        found: tuple[Sending, ...] | _Huge | None
        if start.sent or start.snapshot:
            found = await self._run(released, base, start)
        else:
            key = (*self._kind, released.position, base.position if base is not None else None)
            async with self._rendering:
                found = self._cache.get(key)
                if found is None:
                    found = await self._run(released, base, start)
                    if self.users > 1 and isinstance(found, tuple):
                        self._cache.put(key, found)
        if isinstance(found, tuple):
            for sending in found:
                yield sending
            return
        with self._cache.beside(found.size):
            following = found.sendings
            while some := await asyncio.to_thread(lambda: list(islice(following, AHEAD))):
                for sending in some:
                    yield sending

    async def _run(self, released: Released, base: Released | None, start: Cursor) -> tuple[Sending, ...] | _Huge:
        stood = await self._stood(released, base, start) if isinstance(released, MovedReport) else None
        is_whole = stood is not None and (start.snapshot or base is None)
        if released.size < LARGE and not (is_whole and len(stood or ()) > MANY):
            return self._render(released, base, start, stood)
        return await asyncio.to_thread(self._render, released, base, start, stood)

    async def _stood(self, released: MovedReport, base: Released | None, start: Cursor) -> KeptAnswer | None:
        """What it takes to show a report that says what moved: what stands after it where it is shown whole, what stood
        before it where rows tell their ends and someone has to be told who leaves."""
        if start.snapshot or base is None:
            return await released.standing(self.registered.query)
        if not tells_ends(released.moves) or self._selection.lifetimes:
            return None
        if not start.sent and (found := self._standings.pop(base.position, None)) is not None:
            return found
        if isinstance(base, MovedReport):
            return await base.standing(self.registered.query)
        if released.said.before is None:
            raise lost(self.registered.query, released)
        return stood_before(self.registered.query, released)  # the first one that does not hold a whole answer

    def _render(
        self, released: Released, base: Released | None, start: Cursor, stood: KeptAnswer | None
    ) -> tuple[Sending, ...] | _Huge:
        if isinstance(released, MovedReport):
            emission = self._moved(released, stood, whole=start.snapshot or base is None)
            if isinstance(stood, StandingRows) and not start.sent and not self._selection.lifetimes:
                self._standings[released.position] = stood
                while len(self._standings) > KEPT_STANDING:
                    self._standings.popitem(last=False)
        else:
            emission = self._expanded(released, base, start)
        emission = self._selection.apply(emission)
        within = Cursor(
            released.position,
            sent=start.sent,
            snapshot=start.snapshot,
            offset=released.offset if base is None else base.offset,
        )
        sendings = self._sendings(released, emission, within)
        return tuple(sendings) if emission.rows.nbytes < HUGE else _Huge(emission.rows.nbytes, sendings)

    def _moved(self, released: MovedReport, stood: KeptAnswer | None, *, whole: bool) -> Emission:
        """The lines of a report that says what moved. What stood before stands after it then."""
        time, ordinal = released.position
        moves = released.moves
        if whole:
            assert stood is not None
            moved = entering(stood.rows())
        elif isinstance(stood, StandingRows):
            moved = replace(entering(moves), left=without_last(stood.leave(time)))
            stood.take(time, moves)
        else:
            moved = entering(moves)
        if self._selection.lifetimes and moved.until is not None:
            return self._expansion.lifetimes(time, ordinal, moved)
        return self._expansion.expand_moves(time, ordinal, moved)

    def _expanded(self, released: Released, base: Released | None, start: Cursor) -> Emission:
        expansion, report = self._expansion_after(base, start), released.report()
        whole_first = start.snapshot and not self._is_shared
        emission = expansion.standing(report) if whole_first else expansion.expand(report)
        if expansion is self._expansion:
            self._last = released.position
        return emission

    def _sendings(self, released: Released, emission: Emission, within: Cursor) -> Iterator[Sending]:
        query = self.registered.query
        with self._span(released) as traceparent:
            update = pb.Update(time_ms=released.position[0], snapshot=within.snapshot, traceparent=traceparent)
            head = update.SerializeToString()
            for piece in encoding.pieces(query, self._encoding, emission, within.sent):
                within = replace(within, sent=within.sent + piece.rows)
                token = self.token(within)
                message = protobuf_rows.delimited(_UPDATE, head + piece.body) + protobuf_rows.delimited(_TOKEN, token)
                yield Sending(encoding.sendable(query, message), token, is_update=True)
        yield self._progress(released)

    def _progress(self, released: Released) -> Sending:
        horizon = released.horizon if released.horizon > DAWN else None
        progress = pb.Progress(time_ms=released.position[0], horizon_ms=horizon)
        cursor = Cursor(released.position, complete=True, offset=released.offset)
        return self.response(cursor, pb.SubscribeResponse(progress=progress))

    def _expansion_after(self, base: Released | None, start: Cursor) -> Expansion:
        """One that has shown the report before, and nothing else where a subscription begins with a snapshot."""
        query = self.registered.query
        if not self._is_shared:
            return self._expansion
        if start.snapshot or start.sent:
            expansion = Expansion(query)
            if base is not None and not start.snapshot:
                expansion.resume(base.report())
            return expansion
        before = base.position if base is not None else None
        if query.emit is not Emit.RSTREAM and self._last != before:
            self._expansion = Expansion(query)
            if base is not None:
                self._expansion.resume(base.report())
        return self._expansion

    @contextmanager
    def _span(self, released: Released) -> Iterator[str]:
        """The delivery as a span, if the report came with a trace."""
        if not released.contexts:
            yield ""
            return
        attributes = {"stairwise.query": self.registered.query.name, "stairwise.time": released.position[0]}
        span = telemetry.begin("results deliver", released.contexts, attributes, SpanKind.PRODUCER)
        try:
            yield telemetry.traceparent(span)
        finally:
            span.end()


class _MessageCache:
    """The most recently used messages, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._beside = 0
        self._kept: OrderedDict[tuple[object, ...], tuple[Sending, ...]] = OrderedDict()

    @contextmanager
    def beside(self, size: int) -> Iterator[None]:
        """An answer that is too large to be kept takes memory while it is sent: so much, and no more, at a time."""
        if self._beside and self._beside + size > HUGE_IN_ALL:
            raise LimitError(
                f"this replica is sending {self._beside} bytes of large reports, and has no room for {size} more",
                hint="resume with the last token later or at another replica, or subscribe with a filter",
            )
        self._beside += size
        try:
            yield
        finally:
            self._beside -= size

    def get(self, key: tuple[object, ...]) -> tuple[Sending, ...] | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: tuple[object, ...], sendings: tuple[Sending, ...]) -> None:
        self._kept[key] = sendings
        self._size += _size(sendings)
        while self._size > self._most:
            self._size -= _size(self._kept.popitem(last=False)[1])


def _size(sendings: tuple[Sending, ...]) -> int:
    return sum(200 + 2 * len(s.token) + len(s.message) for s in sendings)
