"""The gRPC server of a service that lives in an asyncio loop: what ``server`` is for threads.

Health, reflection and errors with details are the same; options and statuses are shared with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from stairwise.platform.aio_interceptors import Errors, Guard
from stairwise.platform.security.access import Access
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.settings import OFF, Security
from stairwise.platform.server import bind, options
from stairwise.platform.variables import host_and_port

log = logging.getLogger(__name__)


class AioServer:
    """Bound when it is made, so that its port is known; listens from ``start``; SERVING from ``ready``."""

    def __init__(self, listen: str, *, security: Security = OFF) -> None:
        interceptors = [Errors(), Guard(Access(security), Audit(security.audit))]
        self._server = grpc.aio.server(interceptors=interceptors, options=options(security))
        self._health = health.aio.HealthServicer()
        self._names: tuple[str, ...] = ("",)
        self.host, _ = host_and_port(listen)
        self.port = bind(self._server, listen, security)

    async def start(self, register: Callable[[grpc.aio.Server], None], names: Sequence[str]) -> None:
        """Serve what ``register`` adds, under the full service ``names``. Health can be asked from here on."""
        register(self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        self._names = ("", *names)
        await self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.start()
        log.info("listening on %s port %d", self.host, self.port)

    async def ready(self) -> None:
        await self._say(health_pb2.HealthCheckResponse.SERVING)
        log.info("ready")

    async def stop(self, grace: float = 2) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)

    async def _say(self, status: Any) -> None:
        for name in self._names:
            await self._health.set(name, status)
