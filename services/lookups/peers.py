"""The other workers, asked over gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from services.lookups.lookup_steps import WATERMARK, StepAnswer, StepRequest
from stairwise.errors import ConfigError, NotReadyError
from stairwise.platform.channels import NONE, Credentials, aio_channel
from stairwise.platform.error_status import from_rpc_error
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.v1 import lookups_pb2_grpc

TIMEOUT = 10.0
"""How long another worker may take for one step, in seconds."""
QUICK = 2.0
"""How long it may take to tell its watermark, which needs no work: one that takes longer hangs, and is missed."""
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class Peers:
    """Channels to other workers, kept open."""

    def __init__(self, credentials: Credentials = NONE) -> None:
        self._credentials = credentials
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def ask(self, address: str, ask: StepRequest, numbers: Sequence[int]) -> StepAnswer:
        if address not in self._channels:
            self._channels[address] = aio_channel(address, self._credentials, _OPTIONS)
        stub: Any = lookups_pb2_grpc.LookupsStub(self._channels[address])
        try:
            timeout = QUICK if ask.step == WATERMARK else TIMEOUT
            return StepAnswer.from_proto(await stub.Part(ask.to_proto(numbers), timeout=timeout))
        except grpc.aio.AioRpcError as failed:
            error = from_rpc_error(failed, address)
            if isinstance(error, ConfigError) or failed.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise NotReadyError(f"the worker at {address} does not answer") from failed
            raise error from failed

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
