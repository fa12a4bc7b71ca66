"""Health: a real gRPC server that serves, one that doesn't yet, and nobody at all."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health as grpc_health
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.platform.server_thread import ServerThread
from stairwise.system.health import Health, probe
from stairwise.system.ports import free_ports
from stairwise.system.system_part import Check
from tests.unit.platform.secured_servers import CERTIFICATES, TLS


@pytest.fixture
def server() -> Iterator[tuple[str, grpc_health.HealthServicer]]:
    running = grpc.server(ThreadPoolExecutor(max_workers=1))
    servicer = grpc_health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, running)
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    yield f"127.0.0.1:{port}", servicer
    running.stop(None).wait()


def test_a_serving_server_is_healthy(server: tuple[str, grpc_health.HealthServicer]) -> None:
    address, servicer = server
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    assert probe(Check("grpc", address), 10.0) == Health(True)


def test_a_server_that_is_not_ready_is_unhealthy_and_says_so(
    server: tuple[str, grpc_health.HealthServicer],
) -> None:
    address, servicer = server
    servicer.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    assert probe(Check("grpc", address), 10.0) == Health(False, "says NOT_SERVING")


def test_a_server_behind_tls_is_asked_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ServerThread("127.0.0.1:0", security=TLS)
    server.ready()
    check = Check("grpc", f"127.0.0.1:{server.port}")
    assert not probe(check, 10.0).healthy
    monkeypatch.setenv("STAIRWISE_TLS_CA", str(CERTIFICATES / "ca.pem"))
    assert probe(check, 10.0) == Health(True)
    monkeypatch.setenv("STAIRWISE_TLS_CA", str(CERTIFICATES / "stranger.pem"))
    assert "by TLS" in probe(check, 10.0).reason
    server.stop(0)


@pytest.mark.parametrize("protocol", ["grpc", "kafka"])
def test_an_address_where_nobody_listens_is_unhealthy(protocol: str) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    check = Check(protocol, address)  # type: ignore[arg-type]
    assert probe(check, 10.0) == Health(False, f"nothing answers on {address}", answered=False)


def test_a_broker_that_speaks_another_protocol_is_unhealthy(
    server: tuple[str, grpc_health.HealthServicer],
) -> None:
    answer = probe(Check("kafka", server[0]), 0.5)
    assert not answer.healthy
    assert answer.reason
