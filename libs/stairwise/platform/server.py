"""The gRPC server of every service: health, reflection, errors with details, an orderly end.

It lives in an asyncio loop. ``server_thread`` runs it for services that have no loop of their own. Methods that block
are answered on a few threads (``interceptors.Blocking``); health and reflection never wait for those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from stairwise.errors import ConfigError
from stairwise.platform.interceptors import Blocking, Errors, Guard
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.platform.security.settings import OFF, Security
from stairwise.platform.security.tls import server_credentials
from stairwise.platform.variables import host_and_port

log = logging.getLogger(__name__)

THREADS = 16
"""How many calls of methods that block are answered at a time; the others wait."""


def options(security: Security) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", security.max_request_bytes),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


class Server:
    """Bound when it is made, so that its port is known; listens from ``start``; SERVING from ``ready``."""

    def __init__(self, listen: str, *, security: Security = OFF) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "grpc")
        interceptors = [Errors(), Guard(security), Blocking(self._threads)]
        self._server = grpc.aio.server(interceptors=interceptors, options=options(security))
        self._health = health.aio.HealthServicer()
        self._names: tuple[str, ...] = ("",)
        self.host, _ = host_and_port(listen)
        self.port = _bind(self._server, listen, security)

    async def start(self, register: Callable[[grpc.aio.Server], None], names: Sequence[str]) -> None:
        """Serve what ``register`` adds, under the full service ``names``. Health can be asked from here on."""
        register(self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        self._names = ("", *names)
        for name in self._names:
            await self.tell(name, is_well=False)
        await self._server.start()
        log.info("listening on %s port %d", self.host, self.port)

    async def ready(self) -> None:
        for name in self._names:
            await self.tell(name, is_well=True)
        log.info("ready")

    async def tell(self, name: str, *, is_well: bool) -> None:
        """Answer whoever asks for the health of a service, or of something else by its name."""
        status = health_pb2.HealthCheckResponse
        await self._health.set(name, status.SERVING if is_well else status.NOT_SERVING)

    async def stop(self, grace: float = 2) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)
        self._threads.shutdown(wait=False)


def _bind(server: Any, listen: str, security: Security) -> int:
    """Make a server listen, by TLS if there is a certificate; the port that it got."""
    security.check_listening(listen)
    try:
        bound: int = (
            server.add_secure_port(listen, server_credentials(security))
            if security.has_tls
            else server.add_insecure_port(listen)
        )
    except RuntimeError:
        bound = 0
    if not bound:
        raise ConfigError(f"cannot listen on {listen}", hint="is the port taken? set STAIRWISE_LISTEN to another")
    return bound
