"""``subscription`` for asyncio: it reconnects and resumes by itself, without a gap or a repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc
import pyarrow as pa

from stairwise.client.receiver import Receiver
from stairwise.client.subscribed import Open, Subscribed
from stairwise.client.update import Update

if TYPE_CHECKING:
    import pandas as pd


class AsyncSubscription(Subscribed, AsyncIterator[Update]):
    """Yields an ``Update`` for every report, also for one without changes. Ends when the query ends."""

    def __init__(self, open_: Open, address: str, receiver: Receiver, patience: float) -> None:
        super().__init__(open_, address, receiver, patience)
        self._updates = self._run()

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

    async def _run(self) -> AsyncIterator[Update]:
        while self._is_open:
            try:
                async for response in self._connect():
                    self._retry.succeeded()
                    update = self._receiver.take(response)
                    if update is not None:
                        yield update
                pause = self._pause_after_an_end()
            except grpc.RpcError as error:
                pause = self._pause_after(error)
            except asyncio.CancelledError:
                if self._closed:
                    return
                raise
            await asyncio.sleep(pause)
