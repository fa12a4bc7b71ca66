"""Whether a part answers: by the gRPC health protocol for services, a metadata request for the broker, HTTP for Zipkin.

A port that accepts connections says little (Spark takes seconds from there to its first batch), so each part
is asked in its own protocol, with a short deadline, and a "no" carries the reason.
"""

from __future__ import annotations

import logging
import os
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass, replace

import grpc
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.errors import ConfigError
from stairwise.platform.channels import Credentials, channel
from stairwise.platform.variables import host_and_port
from stairwise.system.system_part import Check

_SILENT = logging.getLogger(f"{__name__}.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True)
class Health:
    """The answer: ``reason`` says why not, and is empty for a healthy part."""

    healthy: bool
    reason: str = ""
    answered: bool = True
    """A part that says no lives; one that says nothing may hang."""


def probe(check: Check, timeout: float) -> Health:
    """Ask once; an answer, good or bad, comes within about ``timeout`` seconds.

    By TLS where the environment says so, as every client does; health asks for no token.
    """
    if check.protocol == "kafka":
        return _probe_kafka(check.address, timeout)
    if check.protocol == "http":
        return _probe_http(check.address, timeout)
    try:
        credentials = replace(Credentials.from_environment(os.environ), token=None)
    except ConfigError as error:
        return Health(False, str(error))
    return _probe_grpc(check.address, credentials, timeout)


def quiet(settings: dict[str, object]) -> dict[str, object]:
    """The settings of a Kafka client that leaves the terminal alone: its calls' errors tell enough."""
    return {**settings, "client.id": "stairwise-status", "logger": _SILENT}


def admin_client(brokers: str) -> AdminClient:
    """An admin client for one question and its answer."""
    return AdminClient(quiet({"bootstrap.servers": brokers}))


def _probe_grpc(address: str, credentials: Credentials, timeout: float) -> Health:
    with channel(address, credentials, [("grpc.enable_http_proxy", 0)]) as asked:
        try:
            request = health_pb2.HealthCheckRequest(service="")
            answer = health_pb2_grpc.HealthStub(asked).Check(request, timeout=timeout)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                why = f" by TLS: {error.details()}" if credentials.ca is not None else ""
                return Health(False, f"nothing answers on {address}{why}", answered=False)
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                return Health(False, f"no answer within {timeout:g} s", answered=False)
            return Health(False, f"{error.code().name}: {error.details()}")
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return Health(True)
    return Health(False, f"says {health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}")


def _probe_kafka(address: str, timeout: float) -> Health:
    try:  # a refused connection is known at once; librdkafka would go on trying until the timeout
        socket.create_connection(host_and_port(address), timeout=timeout).close()
    except OSError:
        return Health(False, f"nothing answers on {address}", answered=False)
    try:
        admin_client(address).list_topics(timeout=timeout)
    except KafkaException as error:
        return Health(False, error.args[0].str())
    return Health(True)


def _probe_http(address: str, timeout: float) -> Health:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(f"http://{address}/health", timeout=timeout).close()
    except urllib.error.HTTPError as error:
        return Health(False, f"says {error.code} {error.reason}")
    except OSError:
        return Health(False, f"nothing answers on {address}")
    return Health(True)
