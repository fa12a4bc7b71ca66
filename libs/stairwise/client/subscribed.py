"""What the subscription of a thread and that of an event loop have in common: all but the waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from stairwise.algebra.query import Emit
from stairwise.client.receiver import Receiver, Retry
from stairwise.errors import ConfigError
from stairwise.platform.error_status import from_rpc_error
from stairwise.schema import Column
from stairwise.v1 import results_pb2 as pb

Open = Callable[[pb.SubscribeRequest], Any]
"""Makes the call: gives the stream of responses, which can be cancelled."""


class Subscribed:
    """A query that is followed. ``patience`` is for how long a lost connection is tried again, in seconds."""

    def __init__(self, open_: Open, address: str, receiver: Receiver, patience: float) -> None:
        self.query = receiver.request.query
        self._receiver = receiver
        self._open = open_
        self._address = address
        self._retry = Retry(patience, was_there=bool(receiver.request.token))
        self._call: Any = None
        self._closed = False

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

    def close(self) -> None:
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _in_columns(self) -> None:
        if self._call is None:
            self._receiver.use("arrow")

    @property
    def _is_open(self) -> bool:
        return not self._closed and self.end is None

    def _connect(self) -> Any:
        self._call = self._open(self._receiver.request)
        return self._call

    def _pause_after_an_end(self) -> float:
        """How long to wait after a call has ended well; not at all if that was the query's end."""
        pause = 0.0 if self.end is not None else self._retry.pause()
        if pause is None:
            raise ConfigError(f"{self._address} ends the subscription to {self.query!r} without a reason")
        return pause

    def _pause_after(self, error: grpc.RpcError) -> float:
        """How long to wait after a call has failed; raises what cannot be mended by trying again."""
        pause = 0.0 if self._closed else self._retry.after(error)
        if pause is None:
            raise from_rpc_error(error, self._address) from error
        return pause
