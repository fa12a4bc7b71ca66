"""The client for asyncio: the verbs of ``Client``, to be awaited.

```python
async with AsyncClient.connect() as client:
    await client.execute("CREATE QUERY sums AS SELECT ticker, SUM(qty) FROM trades [TUMBLE 10s] GROUP BY ticker;")
    async for update in client.subscribe("sums"):
        print(update.time, update.changes)
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import grpc
import pyarrow as pa

from stairwise.client.aio_subscription import AsyncSubscription
from stairwise.client.connection import CHANNEL_OPTIONS, STATUS_TIMEOUT, TIMEOUT, ClientConnection
from stairwise.client.listing import QueryInfo, StatementResult, StreamInfo
from stairwise.client.lookups import TIMEOUT as LOOKUP_TIMEOUT
from stairwise.client.lookups import Answer, AsyncLookupsClient, Many
from stairwise.client.publisher import Publisher, publishable
from stairwise.client.receiver import Receiver
from stairwise.client.reports import ReportPages
from stairwise.client.request import Encoding, From, Where, explain_request
from stairwise.client.status import Status
from stairwise.client.update import Row, Update
from stairwise.platform.channels import aio_channel
from stairwise.platform.error_status import from_rpc_error
from stairwise.schema import Instant
from stairwise.v1 import registry_pb2


class AsyncClient(ClientConnection):
    """Connects when it is first needed, in the loop that uses it. What goes wrong is one of ``stairwise.errors``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        while self._channels:
            await self._channels.popitem()[1].close()

    async def execute(self, script: str) -> list[StatementResult]:
        """Run a script of statements: all of it takes effect, or none and a ``StatementError`` says where."""
        answer = await self._ask_registry("Execute", registry_pb2.ExecuteRequest(script=script))
        return [StatementResult.from_proto(r) for r in answer.results]

    async def streams(self) -> list[StreamInfo]:
        answer = await self._ask_registry("ListStreams", registry_pb2.ListStreamsRequest())
        return [StreamInfo.from_proto(s) for s in answer.streams]

    async def queries(self) -> list[QueryInfo]:
        answer = await self._ask_registry("ListQueries", registry_pb2.ListQueriesRequest())
        return [QueryInfo.from_proto(q) for q in answer.queries]

    async def explain(self, query: str, *, analyze: bool = False) -> str:
        """How a registered query, or a SELECT, is evaluated; ``analyze``: and what the query costs as it runs."""
        answer = await self._ask_registry("Explain", explain_request(query, analyze=analyze))
        explanation: str = answer.explanation
        return explanation

    async def status(self, query: str = "", *, timeout: float = STATUS_TIMEOUT) -> Status:
        """Where all streams stand; of a query, its own, and what it waits for."""
        request = registry_pb2.StatusRequest(query=query)
        return Status.from_proto(await _ask(self._registry.Status, request, self.addresses.registry, timeout))

    def subscribe(
        self,
        query: str,
        from_: From = "latest",
        *,
        where: Where | None = None,
        encoding: Encoding = "values",
        lifetimes: bool = False,
        patience: float = 60.0,
    ) -> AsyncSubscription:
        """The query's reports as they become final: ``Client.subscribe``, for ``async for``."""
        receiver = Receiver(query, from_, where, encoding, lifetimes=lifetimes)
        return AsyncSubscription(self._results.Subscribe, self.addresses.results, receiver, patience)

    async def snapshot(
        self, query: str, time: Instant | None = None, *, where: Where | None = None
    ) -> tuple[Instant, list[Row]]:
        """The latest final report of a query, or the last one at or before a time: its time and its rows."""
        report = await self.report(query, time, where=where, encoding="values")
        return report.time, [change.row for change in report.changes]

    async def report(
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
            pages.take(await _ask(self._results.Snapshot, pages.request, self.addresses.results))
        return pages.report()

    async def lookup(
        self,
        select: str,
        *,
        at_least: Instant | None = None,
        at: Instant | None = None,
        timeout: float = LOOKUP_TIMEOUT,
    ) -> Answer:
        """The answer of a SELECT over any recent window, as of ``Client.lookup``."""
        return await self._lookups.lookup(select, at_least, timeout, at)

    async def lookup_many(
        self,
        lookups: Sequence[Many | str],
        *,
        at_least: Instant | None = None,
        at: Instant | None = None,
        timeout: float = LOOKUP_TIMEOUT,
    ) -> list[Answer]:
        """Many lookups that all see the same instant."""
        return await self._lookups.lookup_many(lookups, at_least, timeout, at)

    async def publish(self, stream: str, rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch) -> int:
        """Send rows of a stream, or updates of a table, one by one or in columns, and wait until Kafka has them; how
        many they were."""
        publisher = await self.publisher(stream)
        return await asyncio.to_thread(publisher.publish, rows)

    async def publisher(self, stream: str, *, tracked: bool = False) -> Publisher:
        """For sending rows over a longer time. Its ``send`` does not wait; ``flush`` does, in a thread of yours, and so
        does ``confirm``, which says what became of them if it is ``tracked``."""
        declared = publishable(stream, await self.streams())
        return await asyncio.to_thread(Publisher, self.addresses.brokers, declared, tracked=tracked)

    @cached_property
    def _lookups(self) -> AsyncLookupsClient:
        return AsyncLookupsClient(self._channel(self.addresses.lookups), self.addresses.lookups)

    def _open(self, address: str) -> grpc.aio.Channel:
        return aio_channel(address, self._credentials, CHANNEL_OPTIONS)

    async def _ask_registry(self, method: str, request: Any) -> Any:
        return await _ask(getattr(self._registry, method), request, self.addresses.registry)


async def _ask(method: Callable[..., Awaitable[Any]], request: Any, address: str, timeout: float = TIMEOUT) -> Any:
    try:
        return await method(request, timeout=timeout)
    except grpc.RpcError as error:
        raise from_rpc_error(error, address) from error
