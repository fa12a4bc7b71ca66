"""What a subscription has received and where it goes on: the part of it that does no I/O.

    server     header  update(a b)  update(c)  progress(10)   ✗ gone
    client     ──────────────────────────────▶ Update(10: a b c)
                                                              back off, subscribe with the last token
    server                                                    header  update(d)  progress(20)
    client                                                    ─────────────────▶ Update(20: d)

Every message carries a token. What has come of a report that is not complete yet is kept across a
reconnection, and the server goes on after the last message that did come.
"""

from __future__ import annotations

import random
import time

import grpc
from opentelemetry.trace import SpanKind

from stairwise.algebra.query import Emit
from stairwise.client.request import Encoding, From, Where, encoding_number, subscribe_request
from stairwise.client.update import ArrowChanges, Change, Update, read_arrow, read_changes
from stairwise.platform import telemetry
from stairwise.platform.error_status import is_answer
from stairwise.schema import Column
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.schemas import column_from_proto

FIRST_PATIENCE = 5.0
"""For how long the first connection is tried where nobody answers, in seconds."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
RESUMABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED})
"""The service is away, or has ended a subscription that took nothing for too long."""


class Receiver:
    """Puts messages together to updates, and knows the request that goes on after the last of them."""

    def __init__(
        self, query: str, from_: From, where: Where | None, encoding: Encoding, *, lifetimes: bool = False
    ) -> None:
        self.request = subscribe_request(query, from_, where, encoding)
        self.request.lifetimes = lifetimes
        self.columns: tuple[Column, ...] = ()
        self.emit = Emit.RSTREAM
        self.ends = False
        self.end: str | None = None
        self._report = _Report()

    def use(self, encoding: Encoding) -> None:
        """From the next connection on."""
        self.request.encoding = encoding_number(encoding)

    def take(self, response: pb.SubscribeResponse) -> Update | None:
        """The next message; gives the update that it completes."""
        self.request.token = response.token
        match response.WhichOneof("message"):
            case "header":
                self.columns = tuple(column_from_proto(c) for c in response.header.columns)
                self.emit = Emit(pb.Emit.Name(response.header.emit).removeprefix("EMIT_"))
                self.ends = response.header.ends
            case "update":
                self._report.add(response.update)
            case "progress":
                return self._complete(response.progress, response.token)
            case "end":
                self.end = pb.End.Reason.Name(response.end.reason).removeprefix("REASON_").lower()
        return None

    def _complete(self, progress: pb.Progress, token: bytes) -> Update:
        horizon = progress.horizon_ms if progress.HasField("horizon_ms") else None
        report, self._report = self._report, _Report()
        report.trace(self.request.query, progress.time_ms)
        changes = report.changes(self.columns, self.request.encoding)
        told = token, self.columns, report.is_snapshot, horizon, self.ends
        return Update(self.request.query, progress.time_ms, changes, *told)


class _Report:
    """What has come of a report so far."""

    def __init__(self) -> None:
        self.is_snapshot = False
        self._updates: list[pb.Update] = []

    def add(self, update: pb.Update) -> None:
        self._updates.append(update)
        self.is_snapshot = update.snapshot

    def changes(self, columns: tuple[Column, ...], encoding: int) -> list[Change] | ArrowChanges:
        if encoding == pb.ENCODING_ARROW:
            untils = b"".join(update.untils for update in self._updates)
            return read_arrow([(update.arrow, update.diffs) for update in self._updates], columns, untils)
        return [change for update in self._updates for change in read_changes(update, columns)]

    def trace(self, query: str, time_: int) -> None:
        contexts = [update.traceparent for update in self._updates if update.traceparent]
        if contexts:
            attributes = {"stairwise.query": query, "stairwise.time": time_}
            telemetry.begin("subscriber receive", contexts, attributes, SpanKind.CONSUMER).end()


class Retry:
    """Pauses that grow while nothing comes, up to a deadline; a near one at first, unless it ``was_there`` before."""

    def __init__(self, patience: float, *, was_there: bool) -> None:
        self._pause = SHORTEST_PAUSE
        self._whole_patience = patience
        self._patience = patience if was_there else min(patience, FIRST_PATIENCE)
        self._deadline: float | None = None

    def succeeded(self) -> None:
        self._pause, self._patience, self._deadline = SHORTEST_PAUSE, self._whole_patience, None

    def pause(self) -> float | None:
        """How long to wait before the next attempt, in seconds; None if there is to be none."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._patience
        if now >= self._deadline:
            return None
        pause = min(self._pause * random.uniform(0.5, 1.0), self._deadline - now)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return pause

    def after(self, error: grpc.RpcError) -> float | None:
        """The same after an error; None also where trying again makes no sense."""
        if error.code() not in RESUMABLE:
            return None
        if is_answer(error) and self._patience < self._whole_patience:  # it is there, and starts
            self._patience, self._deadline = self._whole_patience, None
        return self.pause()
