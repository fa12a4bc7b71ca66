"""A gRPC server as every service has it: health, reflection, errors with details, an orderly end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from stairwise.errors import ConfigError
from stairwise.platform.interceptors import Errors, Guard
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.platform.security.access import Access
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.settings import OFF, Security
from stairwise.platform.security.tls import server_credentials

log = logging.getLogger(__name__)


def options(security: Security) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", security.max_request_bytes),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def bind(server: Any, listen: str, security: Security) -> int:
    """Make a server of either kind listen, by TLS if there is a certificate; the port that it got."""
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


class Server:
    """Listens from the start, so that health can be asked; says SERVING when ``ready`` is called."""

    def __init__(
        self,
        listen: str,
        register: Callable[[grpc.Server], None] = lambda _: None,
        names: Sequence[str] = (),
        *,
        workers: int = 16,
        security: Security = OFF,
    ) -> None:
        interceptors = [Errors(), Guard(Access(security), Audit(security.audit))]
        pool = futures.ThreadPoolExecutor(workers)
        self._server = grpc.server(pool, interceptors=interceptors, options=options(security))
        register(self._server)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = ("", *names)
        self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        self.port = bind(self._server, listen, security)
        self._server.start()
        log.info("listening on %s", listen)

    def ready(self) -> None:
        self._say(health_pb2.HealthCheckResponse.SERVING)
        log.info("ready")

    def tell(self, name: str, is_well: bool) -> None:
        """Answer whoever asks for the health of something else than the whole."""
        status = health_pb2.HealthCheckResponse
        self._health.set(name, status.SERVING if is_well else status.NOT_SERVING)

    def stop(self, grace: float = 2) -> None:
        self._health.enter_graceful_shutdown()
        self._server.stop(grace).wait()

    def _say(self, status: Any) -> None:
        for name in self._names:
            self._health.set(name, status)
