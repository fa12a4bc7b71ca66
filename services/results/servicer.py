"""Results over gRPC: who is let in, where a subscription begins, what happens to one that does not read.

Requests and responses are bytes here: a request that is none gets a clear error, and the bytes of a response are shared
by all who get the same. A write waits until the client's window has room; while it waits nothing else does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError

from services.results import metrics
from services.results.alone_feed import AloneFeed
from services.results.assembly import END
from services.results.cursor import Cursor, TokenError, read_token
from services.results.encoding import encoding_of
from services.results.feed import Feed
from services.results.followed_plans import FollowedPlans
from services.results.history import PageReader
from services.results.journal import Journal
from services.results.query_feed import QueryFeed
from services.results.query_lives import QueryLives
from services.results.rendition import Renditions, Sending
from services.results.selection import Selection, selection_of
from services.results.snapshots import Snapshots, last_report, same_report
from services.results.update_stream import HEARTBEAT, UpdateStream
from stairwise.algebra.query import Emit
from stairwise.errors import ConfigError, FailedQueryError, LimitError, StairwiseError
from stairwise.platform.error_status import to_status
from stairwise.platform.security.caller import CALLER
from stairwise.schema import DAWN, DUSK
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark

log = logging.getLogger(__name__)

NAME = "stairwise.v1.Results"
TOKEN = "stairwise-token-bin"
"""The trailing metadata in which a subscription that was ended, for its lag or a failure, finds where to resume."""
SHORTEST_HEARTBEAT = 1.0

Request = TypeVar("Request", pb.SubscribeRequest, pb.SnapshotRequest)


class ResultsServicer:
    """Nothing is served before ``open``: until the topics have been read, "latest" would be wrong.

    ``subscriptions`` is how many are served at a time; ``stall`` for how many seconds a client may take nothing.
    """

    def __init__(
        self,
        journal: Journal,
        history: PageReader,
        plans: FollowedPlans,
        lives: QueryLives,
        *,
        subscriptions: int = 20_000,
        stall: float = 30.0,
    ) -> None:
        self._journal = journal
        self._history = history
        self._plans = plans
        self._lives = lives
        self._most = subscriptions
        self._stall = stall
        self._is_open = False
        self._served = 0
        self._renditions = Renditions()
        self._snapshots = Snapshots()

    def register(self, server: grpc.aio.Server) -> None:
        methods = {
            "Subscribe": grpc.unary_stream_rpc_method_handler(self.subscribe),
            "Snapshot": grpc.unary_unary_rpc_method_handler(self.snapshot),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, methods),))

    def open(self) -> None:
        self._is_open = True

    def close(self) -> None:
        """End all subscriptions; their clients resume elsewhere, or later."""
        self._is_open = False
        self._journal.ring_all()

    async def subscribe(self, said: bytes, context: grpc.aio.ServicerContext) -> None:
        try:
            stalled = await self._subscribe(_read(pb.SubscribeRequest.FromString, said), context)
        except StairwiseError as error:
            status = to_status(error)
            token = ((TOKEN, error.token),) if isinstance(error, FailedQueryError) else ()
            await context.abort(status.code, status.details, (*status.trailing_metadata, *token))
            return
        if stalled is not None:
            metrics.stalled.add(1)
            log.info("a subscription ends: its client took nothing for %g s", self._stall)
            text = f"nothing was taken for {self._stall:g} s (resume with the token of the last message)"
            await context.abort(grpc.StatusCode.ABORTED, text, ((TOKEN, stalled.token),))

    async def snapshot(self, said: bytes, context: grpc.aio.ServicerContext) -> bytes:
        request = _read(pb.SnapshotRequest.FromString, said)
        self._must_be_open()
        how = encoding_of(request.encoding)
        if request.page:
            version, cursor = read_token(request.page, request.query)
            registered = await self._plans.find_version(request.query, version, CALLER.get().principal)
            selection = _same_filter(registered, request, cursor)
            released = await same_report(registered, self._feed(registered), cursor.position)
            return await self._snapshots.page(registered, released, how, selection, cursor.sent)
        registered = await self._plans.find(request.query, CALLER.get().principal)
        selection = selection_of(registered.query, request.filter)
        time = max(DAWN, min(DUSK, request.time_ms)) if request.HasField("time_ms") else None
        released = await last_report(registered, self._feed(registered), time)
        return await self._snapshots.page(registered, released, how, selection)

    async def _subscribe(self, request: pb.SubscribeRequest, context: grpc.aio.ServicerContext) -> Sending | None:
        """Serve a subscription to its end; gives the message that was not taken, if it ends for that."""
        self._must_be_open()
        how = encoding_of(request.encoding)
        with self._place():
            registered, cursor, selection = await self._beginning(request)
            known = self._plans.version
            heartbeat = max(SHORTEST_HEARTBEAT, request.heartbeat_ms / 1000) if request.heartbeat_ms > 0 else HEARTBEAT
            with self._renditions.use(registered, how, selection) as rendition:
                subscription = UpdateStream(rendition, cursor, self._feed(registered), heartbeat)
                async for sending in subscription.messages():
                    self._must_be_open()
                    if self._plans.version > known:  # what was granted may have been revoked
                        known = self._plans.version
                        self._plans.check(registered, CALLER.get().principal)
                    try:
                        async with asyncio.timeout(self._stall):
                            await context.write(sending.message)
                    except TimeoutError:
                        return sending
                    metrics.updates.add(int(sending.is_update))
        return None

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._served >= self._most:
            raise LimitError(
                f"this replica serves {self._most} subscriptions already", hint="end one, or ask another replica"
            )
        self._served += 1
        metrics.subscriptions.add(1)
        try:
            yield
        finally:
            self._served -= 1
            metrics.subscriptions.add(-1)

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise ConfigError("the results service is starting or stopping", hint="try again, with the last token")

    def _feed(self, registered: Registered) -> AloneFeed | QueryFeed:
        feed = Feed(self._journal, self._history, registered.signature, self._plans.since(registered))
        if registered.shared is None:
            return AloneFeed(feed, registered.query)
        return QueryFeed(feed, registered, self._plans, self._lives)

    async def _beginning(self, request: pb.SubscribeRequest) -> tuple[Registered, Cursor, Selection]:
        """The query, where the request says to begin, and what of each report it wants."""
        start = request.WhichOneof("from")
        if start == "token":
            version, cursor = read_token(request.token, request.query)
            registered = await self._plans.find_version(request.query, version, CALLER.get().principal, restarted=True)
            selection = _same_filter(registered, request, cursor)
            if registered.version != version:  # it was restarted: what it reports since follows what was sent
                cursor = Cursor(cursor.position, snapshot=registered.query.emit is Emit.CHANGES)
            return registered, cursor, selection
        registered = await self._plans.find(request.query, CALLER.get().principal)
        selection = selection_of(registered.query, request.filter, lifetimes=request.lifetimes)
        whole_first = registered.query.emit is Emit.CHANGES
        if start == "earliest":
            return registered, Cursor(snapshot=whole_first), selection
        if start == "time_ms":
            time = max(DAWN, min(DUSK, request.time_ms))
            return registered, Cursor((time, 0), snapshot=whole_first), selection
        return registered, await self._latest(registered, whole_first), selection

    async def _latest(self, registered: Registered, whole_first: bool) -> Cursor:
        """After the latest report, or at it where it is the snapshot to begin with."""
        found = await self._feed(registered).last_before(END)
        while found is not None and found.mark is Mark.OVERSIZED:
            found = await self._feed(registered).last_before(found.position)
        if found is None:
            return Cursor(snapshot=whole_first)
        return Cursor(found.position, complete=not whole_first, snapshot=whole_first, offset=found.offset)


def _read(parse: Callable[[bytes], Request], said: bytes) -> Request:
    try:
        return parse(said)
    except DecodeError as error:
        raise StairwiseError("the request can't be read: it is not a message of its type") from error


def _same_filter(
    registered: Registered, request: pb.SubscribeRequest | pb.SnapshotRequest, cursor: Cursor
) -> Selection:
    """The filter of a request that goes on: it has to be the one with which the token was given."""
    lifetimes = isinstance(request, pb.SubscribeRequest) and request.lifetimes
    selection = selection_of(registered.query, request.filter, lifetimes=lifetimes)
    if selection.digest != cursor.filter:
        hint = "send the filter with which it was given, and ask for lifetimes if it was given with them"
        raise TokenError("the resume token is one of another filter", hint=hint)
    return selection
