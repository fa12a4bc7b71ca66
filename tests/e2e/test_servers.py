"""Every gRPC server says how it is and what it serves, and explains what it refuses."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

from stairwise.v1 import registry_pb2, registry_pb2_grpc, results_pb2, results_pb2_grpc
from tests.e2e.conftest import System

pytestmark = pytest.mark.jvm

HEALTH = "grpc.health.v1.Health"
SERVES = {
    "windows": {"stairwise.v1.Registry", HEALTH},
    "results": {"stairwise.v1.Results", HEALTH},
    "lookups": {"stairwise.v1.Lookups", HEALTH},
    "ingest": {HEALTH},
    "operators": {HEALTH},
}


@pytest.mark.parametrize("service", SERVES)
def test_health_and_reflection_are_on_every_server(system: System, service: str) -> None:
    with grpc.insecure_channel(system.parts()[service]["address"]) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert set(ProtoReflectionDescriptorDatabase(channel).get_services()) >= SERVES[service]


def details(error: grpc.RpcError) -> dict[str, object]:
    """The rich details of a status, by the name of their message."""
    status = rpc_status.from_call(error)
    assert status is not None
    found = {}
    for detail in status.details:
        message = getattr(error_details_pb2, detail.TypeName().rsplit(".", 1)[1])()
        detail.Unpack(message)
        found[type(message).__name__] = message
    return found


def test_a_bad_statement_has_its_place_in_the_details(system: System) -> None:
    with grpc.insecure_channel(system.parts()["windows"]["address"]) as channel:
        registry = registry_pb2_grpc.RegistryStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            registry.Execute(registry_pb2.ExecuteRequest(script="SELECT\n  COUNT(* FROM t"), timeout=10)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    (violation,) = details(refused.value)["BadRequest"].field_violations
    assert violation.field.startswith("statement:2:")


def test_an_unknown_query_is_named_in_the_details(system: System) -> None:
    with grpc.insecure_channel(system.parts()["results"]["address"]) as channel:
        results = results_pb2_grpc.ResultsStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            list(results.Subscribe(results_pb2.SubscribeRequest(query="nobody"), timeout=30))
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert details(refused.value)["ResourceInfo"].resource_name == "nobody"
