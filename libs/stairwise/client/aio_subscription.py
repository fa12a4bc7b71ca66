"""``subscription`` for asyncio: it reconnects and resumes by itself, without a gap or a repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa

from stairwise.client.receiver import Receiver, Retry
from stairwise.client.subscription import Open
from stairwise.client.update import Update
from stairwise.cql.query import Emit
from stairwise.errors import ConfigError
from stairwise.platform.status import from_rpc_error
from stairwise.schema import Column

if TYPE_CHECKING:
    import pandas as pd


class AsyncSubscription(AsyncIterator[Update]):
    """Yields an ``Update`` for every report, also for one without changes. Ends when the query ends."""

    def __init__(self, open_: Open, address: str, receiver: Receiver, patience: float) -> None:
        self.query = receiver.request.query
        self._receiver = receiver
        self._open = open_
        self._address = address
        self._patience = patience
        self._call: Any = None
        self._closed = False
        self._updates = self._run()

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the rows look like; known from the first update on."""
        return self._receiver.columns

    @property
    def emit(self) -> Emit:
        """How changes are to be read; known from the first update on."""
        return self._receiver.emit

    @property
    def end(self) -> str | None:
        """Why the query has ended: "sealed" or "dropped"; None before."""
        return self._receiver.end

    def __aiter__(self) -> AsyncSubscription:
        return self

    async def __anext__(self) -> Update:
        return await anext(self._updates)

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Each report as an Arrow record batch with ``_time``, ``_diff`` and the query's columns."""
        self._in_columns()
        async for update in self:
            yield update.to_arrow()

    async def frames(self) -> AsyncIterator[pd.DataFrame]:
        """Each report as a pandas data frame with the same columns."""
        self._in_columns()
        async for update in self:
            yield update.to_pandas()

    def close(self) -> None:
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _in_columns(self) -> None:
        if self._call is None:
            self._receiver.use("arrow")

    async def _run(self) -> AsyncIterator[Update]:
        retry = Retry(self._patience)
        while not self._closed and self.end is None:
            pause: float | None = None
            try:
                self._call = self._open(self._receiver.request)
                async for response in self._call:
                    retry.succeeded()
                    update = self._receiver.take(response)
                    if update is not None:
                        yield update
                if self.end is None and (pause := retry.pause()) is None:
                    raise ConfigError(f"{self._address} ends the subscription to {self.query!r} without a reason")
            except grpc.RpcError as error:
                if self._closed:
                    return
                if (pause := retry.after(error)) is None:
                    raise from_rpc_error(error, self._address) from error
            except asyncio.CancelledError:
                if self._closed:
                    return
                raise
            if pause is not None:
                await asyncio.sleep(pause)
