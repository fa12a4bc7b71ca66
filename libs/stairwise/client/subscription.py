"""A subscription that survives: it reconnects and resumes by itself, without a gap or a repeat (see ``receiver``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa

from stairwise.client.receiver import Receiver, Retry
from stairwise.client.request import From
from stairwise.client.update import Update
from stairwise.cql.query import Emit
from stairwise.errors import ConfigError
from stairwise.platform.status import from_rpc_error
from stairwise.schema import Column
from stairwise.v1 import results_pb2 as pb

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["From", "Open", "Subscription"]

Open = Callable[[pb.SubscribeRequest], Any]
"""Makes the call: gives the stream of responses, which can be cancelled."""


class Subscription(Iterator[Update]):
    """Yields an ``Update`` for every report, also for one without changes. Ends when the query ends.

    ``patience`` is for how long a lost connection is tried again, in seconds. Any thread may ``close`` it.
    """

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

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Update:
        return next(self._updates)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Each report as an Arrow record batch with ``_time``, ``_diff`` and the query's columns."""
        self._in_columns()
        return (update.to_arrow() for update in self)

    def frames(self) -> Iterator[pd.DataFrame]:
        """Each report as a pandas data frame with the same columns."""
        self._in_columns()
        return (update.to_pandas() for update in self)

    def close(self) -> None:
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _in_columns(self) -> None:
        if self._call is None:
            self._receiver.use("arrow")

    def _run(self) -> Iterator[Update]:
        retry = Retry(self._patience)
        while not self._closed and self.end is None:
            pause: float | None = None
            try:
                self._call = self._open(self._receiver.request)
                yield from self._receive(retry)
                if self.end is None and (pause := retry.pause()) is None:
                    raise ConfigError(f"{self._address} ends the subscription to {self.query!r} without a reason")
            except grpc.RpcError as error:
                if self._closed:
                    return
                if (pause := retry.after(error)) is None:
                    raise from_rpc_error(error, self._address) from error
            if pause is not None:
                time.sleep(pause)

    def _receive(self, retry: Retry) -> Iterator[Update]:
        for response in self._call:
            retry.succeeded()
            update = self._receiver.take(response)
            if update is not None:
                yield update
