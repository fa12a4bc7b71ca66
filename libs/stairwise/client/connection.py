"""What the client of threads and that of asyncio have in common: where the system is, as whom to call it, channels."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from stairwise.client.addresses import located
from stairwise.platform.channels import NONE, Credentials
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.system.state import Addresses
from stairwise.v1 import registry_pb2_grpc, results_pb2_grpc

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
    ("grpc.min_reconnect_backoff_ms", 1_000),  # how long a busy server may take to take a connection up
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


class ClientConnection(ABC):
    """Connects when it is first needed. What goes wrong is one of ``stairwise.errors``."""

    def __init__(self, addresses: Addresses, credentials: Credentials = NONE) -> None:
        self.addresses = addresses
        self._credentials = credentials
        self._channels: dict[str, Any] = {}

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
    ) -> Self:
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

    @cached_property
    def _registry(self) -> registry_pb2_grpc.RegistryStub:
        return registry_pb2_grpc.RegistryStub(self._channel(self.addresses.registry))

    @cached_property
    def _results(self) -> results_pb2_grpc.ResultsStub:
        return results_pb2_grpc.ResultsStub(self._channel(self.addresses.results))

    def _channel(self, address: str) -> Any:
        if address not in self._channels:
            self._channels[address] = self._open(address)
        return self._channels[address]

    @abstractmethod
    def _open(self, address: str) -> Any:
        """A channel of gRPC's, of the one kind or the other."""
