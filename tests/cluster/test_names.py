"""The DNS of the cluster: services by their address, headless ones by their pods, everything else unknown."""

from __future__ import annotations

import socket
import struct
from typing import Any

from tests.cluster.names import ANSWERED, UNKNOWN, addresses, answer

SERVICES: list[dict[str, Any]] = [
    {"metadata": {"name": "windows", "namespace": "prod"}, "spec": {"clusterIP": "10.96.0.7"}},
    {"metadata": {"name": "workers", "namespace": "prod"}, "spec": {"clusterIP": "None"}},
]
ENDPOINTS: list[dict[str, Any]] = [
    {"metadata": {"name": "windows", "namespace": "prod"}, "subsets": [{"addresses": [{"ip": "10.245.0.2"}]}]},
    {
        "metadata": {"name": "workers", "namespace": "prod"},
        "subsets": [{"addresses": [{"ip": "10.245.0.3", "hostname": "lookups-0"}, {"ip": "10.245.0.4"}]}],
    },
]


def asked(name: str, kind: int = 1) -> tuple[int, list[str]]:
    """The flags and the addresses of the reply to a query for a name."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = labels + b"\0" + struct.pack("!HH", kind, 1)
    reply = answer(b"id" + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + question, addresses(SERVICES, ENDPOINTS))
    flags, _, count = struct.unpack("!HHH", reply[2:8])
    records = reply[12 + len(question) :]
    assert reply[:2] == b"id"
    assert len(records) == 16 * count
    return flags, [socket.inet_ntoa(records[16 * n + 12 : 16 * n + 16]) for n in range(count)]


def test_a_service_has_its_own_address() -> None:
    assert asked("windows.prod.svc.cluster.local") == (ANSWERED, ["10.96.0.7"])


def test_names_are_the_same_in_capitals() -> None:
    assert asked("Windows.prod.svc.cluster.local") == (ANSWERED, ["10.96.0.7"])


def test_a_headless_service_has_those_of_its_pods_and_a_pod_its_own() -> None:
    assert asked("workers.prod.svc.cluster.local") == (ANSWERED, ["10.245.0.3", "10.245.0.4"])
    assert asked("lookups-0.workers.prod.svc.cluster.local") == (ANSWERED, ["10.245.0.3"])


def test_a_known_name_without_such_a_record_is_not_unknown() -> None:
    assert asked("windows.prod.svc.cluster.local", kind=28) == (ANSWERED, [])


def test_what_is_not_there_is_unknown() -> None:
    assert asked("windows.svc.cluster.local") == (UNKNOWN, [])
