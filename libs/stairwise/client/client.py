"""One object for everything that a program does with a running system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa

from stairwise.client.addresses import located
from stairwise.client.listing import QueryInfo, StatementResult, StreamInfo
from stairwise.client.lookups import TIMEOUT as LOOKUP_TIMEOUT
from stairwise.client.lookups import Answer, LookupsClient, Many
from stairwise.client.publisher import Publisher, publishable
from stairwise.client.receiver import Receiver
from stairwise.client.reports import Pages
from stairwise.client.request import Encoding, From, Where
from stairwise.client.status import Status
from stairwise.client.subscription import Subscription
from stairwise.client.update import Row, Update
from stairwise.platform.channels import NONE, Credentials, channel
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.platform.status import from_rpc_error
from stairwise.schema import Instant
from stairwise.system.state import Addresses
from stairwise.v1 import registry_pb2, registry_pb2_grpc, results_pb2_grpc

TIMEOUT = 60.0
"""How long a call that gives one answer may take, in seconds."""
STATUS_TIMEOUT = 10.0
"""How long one may take that tells how the system does, in seconds."""

CHANNEL_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.keepalive_time_ms", 20_000),  # a server that vanished without a word is noticed
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


class Client:
    """Connects when it is first needed. What goes wrong is one of ``stairwise.errors``."""

    def __init__(self, addresses: Addresses, credentials: Credentials = NONE) -> None:
        self.addresses = addresses
        self._credentials = credentials
        self._channels: dict[str, grpc.Channel] = {}

    @classmethod
    def connect(
        cls,
        host: str | None = None,
        *,
        registry: str | None = None,
        results: str | None = None,
        lookups: str | None = None,
        brokers: str | None = None,
        directory: Path | str | None = None,
        credentials: Credentials | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Client:
        """A client of a running system. ``host`` is where all of it is reached, on the usual ports. Addresses are taken
        as given here, else from STAIRWISE_REGISTRY, STAIRWISE_RESULTS, STAIRWISE_LOOKUPS and STAIRWISE_BROKERS, else
        from the state directory of `stairwise up`; credentials as given here, else from STAIRWISE_TLS_CA,
        STAIRWISE_TOKEN_FILE and their like."""
        given = {
            "STAIRWISE_REGISTRY": registry,
            "STAIRWISE_RESULTS": results,
            "STAIRWISE_LOOKUPS": lookups,
            "STAIRWISE_BROKERS": brokers,
        }
        addresses = located(host, given, directory, environ)
        return cls(addresses, credentials if credentials is not None else Credentials.from_environment(environ))

    def __enter__(self) -> Client:
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

    def explain(self, query: str) -> str:
        """How a registered query, or a SELECT, is evaluated."""
        is_text = " " in query.strip()
        request = registry_pb2.ExplainRequest(text=query) if is_text else registry_pb2.ExplainRequest(query=query)
        explanation: str = self._ask_registry("Explain", request).explanation
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
        patience: float = 60.0,
    ) -> Subscription:
        """The query's reports as they become final, until its streams are sealed or it is dropped.

        ``from_`` is "latest" (reports from now on), "earliest" (all that are retained), a time in
        milliseconds, or the ``token`` of an update, to go on right after it. ``where`` filters rows on the server:
        ``{"ticker": ["AB", "CD"]}``. ``encoding="arrow"`` is quicker for reports of many rows.
        """
        receiver = Receiver(query, from_, where, encoding)
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
        pages = Pages(query, time, where, encoding)
        while pages.request is not None:
            pages.take(_ask(self._results.Snapshot, pages.request, self.addresses.results))
        return pages.report()

    def lookup(self, select: str, *, at_least: Instant | None = None, timeout: float = LOOKUP_TIMEOUT) -> Answer:
        """The answer of a SELECT with aggregates over any recent window, at once, without registering a query.

        With ``at_least``, waits until it is true at that time. ``timeout`` bounds all waiting, in seconds.
        """
        return self._lookups.lookup(select, at_least, timeout)

    def lookup_many(
        self, lookups: Sequence[Many | str], *, at_least: Instant | None = None, timeout: float = LOOKUP_TIMEOUT
    ) -> list[Answer]:
        """Many lookups that all see the same instant."""
        return self._lookups.lookup_many(lookups, at_least, timeout)

    def publish(self, stream: str, rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch) -> int:
        """Send rows of a stream, or updates of a table, one by one or in columns, and wait until Kafka has them; how
        many they were."""
        return self.publisher(stream).publish(rows)

    def publisher(self, stream: str, *, tracked: bool = False) -> Publisher:
        """For sending rows over a longer time; with ``tracked`` its ``confirm`` says what became of them."""
        declared = publishable(stream, self.streams())
        return Publisher(self.addresses.brokers, declared, tracked=tracked)

    @cached_property
    def _registry(self) -> registry_pb2_grpc.RegistryStub:
        return registry_pb2_grpc.RegistryStub(self._channel(self.addresses.registry))

    @cached_property
    def _results(self) -> results_pb2_grpc.ResultsStub:
        return results_pb2_grpc.ResultsStub(self._channel(self.addresses.results))

    @cached_property
    def _lookups(self) -> LookupsClient:
        return LookupsClient(self._channel(self.addresses.lookups), self.addresses.lookups)

    def _channel(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            self._channels[address] = channel(address, self._credentials, CHANNEL_OPTIONS)
        return self._channels[address]

    def _ask_registry(self, method: str, request: Any) -> Any:
        return _ask(getattr(self._registry, method), request, self.addresses.registry)


def _ask(method: Callable[..., Any], request: Any, address: str, timeout: float = TIMEOUT) -> Any:
    try:
        return method(request, timeout=timeout)
    except grpc.RpcError as error:
        raise from_rpc_error(error, address) from error
