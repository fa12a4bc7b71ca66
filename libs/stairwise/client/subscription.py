"""A subscription that survives: it reconnects and resumes by itself, without a gap or a repeat (see ``receiver``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import grpc
import pyarrow as pa

from stairwise.client.receiver import Receiver
from stairwise.client.subscribed import Open, Subscribed
from stairwise.client.update import Update

if TYPE_CHECKING:
    import pandas as pd


class Subscription(Subscribed, Iterator[Update]):
    """Yields an ``Update`` for every report, also for one without changes. Ends when the query ends.

    ``patience`` is for how long a lost connection is tried again, in seconds. Any thread may ``close`` it.
    """

    def __init__(self, open_: Open, address: str, receiver: Receiver, patience: float) -> None:
        super().__init__(open_, address, receiver, patience)
        self._updates = self._run()

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

    def _run(self) -> Iterator[Update]:
        while self._is_open:
            try:
                for response in self._connect():
                    self._retry.succeeded()
                    update = self._receiver.take(response)
                    if update is not None:
                        yield update
                pause = self._pause_after_an_end()
            except grpc.RpcError as error:
                pause = self._pause_after(error)
            time.sleep(pause)
