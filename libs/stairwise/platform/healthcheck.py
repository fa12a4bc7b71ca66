"""``python -m stairwise.platform.healthcheck``: exit code 0 if the service of this container serves, else 1 and why.

For images, and for Kubernetes where the server speaks TLS, which its own gRPC probes cannot. It reads what the service
itself was told: STAIRWISE_LISTEN, and the certificate's variables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.platform.variables import host_and_port

TIMEOUT = 5.0


def check(environ: Mapping[str, str]) -> str:
    """Ask once: empty if it serves, else what is wrong."""
    listen = environ.get("STAIRWISE_LISTEN", "")
    try:
        host, port = host_and_port(listen)
    except ValueError:
        return f"STAIRWISE_LISTEN={listen!r} is not host:port"
    here = "127.0.0.1" if host == "0.0.0.0" else "[::1]" if host == "::" else listen.rpartition(":")[0]
    with _channel(f"{here}:{port}", environ) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT)
        except grpc.RpcError as error:
            return f"{here}:{port}: {error.code().name}: {error.details()}"
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return ""
    return f"{here}:{port} says {health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}"


def _channel(address: str, environ: Mapping[str, str]) -> grpc.Channel:
    options: list[tuple[str, str | int]] = [("grpc.enable_http_proxy", 0)]
    certificate, key = _file(environ, "STAIRWISE_TLS_CERT"), _file(environ, "STAIRWISE_TLS_KEY")
    if certificate is None:
        return grpc.insecure_channel(address, options=options)
    name = environ.get("STAIRWISE_TLS_SERVER_NAME")
    if name:
        options.append(("grpc.ssl_target_name_override", name))
    authority = _file(environ, "STAIRWISE_TLS_CA") or certificate
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, key, certificate), options=options)


def _file(environ: Mapping[str, str], name: str) -> bytes | None:
    return Path(path).read_bytes() if (path := environ.get(name)) else None


if __name__ == "__main__":
    problem = check(os.environ)
    if problem:
        sys.exit(problem)
