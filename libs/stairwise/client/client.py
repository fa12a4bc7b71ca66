"""One object for everything that a program does with a running system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import grpc
import pyarrow as pa

from stairwise.client.connection import CHANNEL_OPTIONS, STATUS_TIMEOUT, TIMEOUT, ClientConnection
from stairwise.client.listing import QueryInfo, StatementResult, StreamInfo
from stairwise.client.lookups import TIMEOUT as LOOKUP_TIMEOUT
from stairwise.client.lookups import Answer, LookupsClient, Many
from stairwise.client.publisher import Publisher, publishable
from stairwise.client.receiver import Receiver
from stairwise.client.reports import ReportPages
from stairwise.client.request import Encoding, From, Where, explain_request
from stairwise.client.status import Status
from stairwise.client.subscription import Subscription
from stairwise.client.update import Row, Update
from stairwise.platform.channels import channel
from stairwise.platform.error_status import from_rpc_error
from stairwise.schema import Instant
from stairwise.v1 import registry_pb2


class Client(ClientConnection):
    """Connects when it is first needed. What goes wrong is one of ``stairwise.errors``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._channels:
            self._channels.popitem()[1].close()

    def execute(self, script: str) -> list[StatementResult]:
        """Run a script of statements: all of it takes effect, or none and a ``StatementError`` says where."""
        answer = self._ask_registry("Execute", registry_pb2.ExecuteRequest(script=script))
        return [StatementResult.from_proto(r) for r in answer.results]

    def streams(self) -> list[StreamInfo]:
        answer = self._ask_registry("ListStreams", registry_pb2.ListStreamsRequest())
        return [StreamInfo.from_proto(s) for s in answer.streams]

    def queries(self) -> list[QueryInfo]:
        answer = self._ask_registry("ListQueries", registry_pb2.ListQueriesRequest())
        return [QueryInfo.from_proto(q) for q in answer.queries]

    def explain(self, query: str, *, analyze: bool = False) -> str:
        """How a registered query, or a SELECT, is evaluated; ``analyze``: and what the query costs as it runs."""
        explanation: str = self._ask_registry("Explain", explain_request(query, analyze=analyze)).explanation
        return explanation

    def status(self, query: str = "", *, timeout: float = STATUS_TIMEOUT) -> Status:
        """Where all streams stand; of a query, its own, and what it waits for."""
        request = registry_pb2.StatusRequest(query=query)
        return Status.from_proto(_ask(self._registry.Status, request, self.addresses.registry, timeout))

    def subscribe(
        self,
        query: str,
        from_: From = "latest",
        *,
        where: Where | None = None,
        encoding: Encoding = "values",
        lifetimes: bool = False,
        patience: float = 60.0,
    ) -> Subscription:
        """The query's reports as they become final, until its streams are sealed or it is dropped.

        ``from_`` is "latest" (reports from now on), "earliest" (all that are retained), a time in
        milliseconds, or the ``token`` of an update, to go on right after it. ``where`` filters rows on the server:
        ``{"ticker": ["AB", "CD"]}``. ``encoding="arrow"`` is quicker for reports of many rows.
        With ``lifetimes`` each row comes once, with its ``until``, and no change says that it is gone then; of a query
        whose rows tell no end, changes come as ever.
        """
        receiver = Receiver(query, from_, where, encoding, lifetimes=lifetimes)
        return Subscription(self._results.Subscribe, self.addresses.results, receiver, patience)

    def snapshot(
        self, query: str, time: Instant | None = None, *, where: Where | None = None
    ) -> tuple[Instant, list[Row]]:
        """The latest final report of a query, or the last one at or before a time: its time and its rows."""
        report = self.report(query, time, where=where, encoding="values")
        return report.time, [change.row for change in report.changes]

    def report(
        self,
        query: str,
        time: Instant | None = None,
        *,
        where: Where | None = None,
        encoding: Encoding = "arrow",
    ) -> Update:
        """The same as an update, for ``to_arrow`` and ``to_pandas``; subscribing with its token goes on from there."""
        pages = ReportPages(query, time, where, encoding)
        while pages.request is not None:
            pages.take(_ask(self._results.Snapshot, pages.request, self.addresses.results))
        return pages.report()

    def lookup(
        self,
        select: str,
        *,
        at_least: Instant | None = None,
        at: Instant | None = None,
        timeout: float = LOOKUP_TIMEOUT,
    ) -> Answer:
        """The answer of a SELECT with aggregates over any recent window, at once, without registering a query.

        With ``at_least``, waits until it is true at that time or later; with ``at``, answers exactly at that time, as a
        query's report does. ``timeout`` bounds all waiting, in seconds.
        """
        return self._lookups.lookup(select, at_least, timeout, at)

    def lookup_many(
        self,
        lookups: Sequence[Many | str],
        *,
        at_least: Instant | None = None,
        at: Instant | None = None,
        timeout: float = LOOKUP_TIMEOUT,
    ) -> list[Answer]:
        """Many lookups that all see the same instant."""
        return self._lookups.lookup_many(lookups, at_least, timeout, at)

    def publish(self, stream: str, rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch) -> int:
        """Send rows of a stream, or updates of a table, one by one or in columns, and wait until Kafka has them; how
        many they were."""
        return self.publisher(stream).publish(rows)

    def publisher(self, stream: str, *, tracked: bool = False) -> Publisher:
        """For sending rows over a longer time; with ``tracked`` its ``confirm`` says what became of them."""
        declared = publishable(stream, self.streams())
        return Publisher(self.addresses.brokers, declared, tracked=tracked)

    @cached_property
    def _lookups(self) -> LookupsClient:
        return LookupsClient(self._channel(self.addresses.lookups), self.addresses.lookups)

    def _open(self, address: str) -> grpc.Channel:
        return channel(address, self._credentials, CHANNEL_OPTIONS)

    def _ask_registry(self, method: str, request: Any) -> Any:
        return _ask(getattr(self._registry, method), request, self.addresses.registry)


def _ask(method: Callable[..., Any], request: Any, address: str, timeout: float = TIMEOUT) -> Any:
    try:
        return method(request, timeout=timeout)
    except grpc.RpcError as error:
        raise from_rpc_error(error, address) from error
