"""Random and mutated requests: a service answers each with a status that is the caller's fault, and lives on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from stairwise.system.health import probe
from stairwise.system.ports import free_ports
from stairwise.system.system_part import Check
from tests.integration.conftest import running_broker
from tests.unit.platform.secured_servers import METHODS, path_of

pytestmark = pytest.mark.jvm

OURS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
"""Statuses that say that the service is at fault."""
SERVICES = {"Registry": "windows", "Results": "results", "Lookups": "lookups"}
AT_ONCE = 32
TEXTS = (
    "",
    "q1",
    "fuzzed",
    "SELECT COUNT(*) AS n FROM fuzzed [TUMBLE 10 SECONDS]",
    "CREATE STREAM fuzzed (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 1",
    "SEAL STREAM fuzzed; DROP STREAM fuzzed",
    "EXPLAIN q1",
    "\0\u2028'\"--/*",
    "x" * 5_000,
)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, grpc.Channel]]:
    """A channel to the service behind each interface; all of them are alive at the end.

    The broker is their own: what fuzzed statements declare is nobody else's business.
    """
    directory = tmp_path_factory.mktemp("fuzzed")
    with running_broker(directory) as broker:
        yield from _served(broker.bootstrap, directory)


def _served(brokers: str, directory: Path) -> Iterator[dict[str, grpc.Channel]]:
    processes, channels = {}, {}
    for (interface, name), port in zip(SERVICES.items(), free_ports(len(SERVICES)), strict=True):
        address = f"127.0.0.1:{port}"
        environment = {
            **os.environ,
            "STAIRWISE_BROKERS": brokers,
            "STAIRWISE_LISTEN": address,
            "STAIRWISE_DIR": str(directory),
            "STAIRWISE_LOG": "WARNING",
        }
        with (directory / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", f"services.{name}"]
            processes[name] = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
        _await_healthy(address, directory / f"{name}.log")
        channels[interface] = grpc.insecure_channel(address)
    yield channels
    for channel in channels.values():
        channel.close()
    alive = {name: process.poll() is None for name, process in processes.items()}
    for process in processes.values():
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert all(alive.values()), alive


def _await_healthy(address: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while not probe(Check("grpc", address), 2).healthy:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


@pytest.mark.parametrize("method", METHODS, ids=path_of)
def test_a_fuzzed_request_is_never_the_service_s_fault(
    services: dict[str, grpc.Channel], method: MethodDescriptor
) -> None:
    _fuzz(services[method.containing_service.name], method, 100)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS, ids=path_of)
def test_ten_thousand_fuzzed_requests_are_never_the_service_s_fault(
    services: dict[str, grpc.Channel], method: MethodDescriptor
) -> None:
    _fuzz(services[method.containing_service.name], method, 10_000)


def _fuzz(channel: grpc.Channel, method: MethodDescriptor, count: int) -> None:
    chance = random.Random(f"{path_of(method)} {count}")
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    call = make(path_of(method), request_serializer=None, response_deserializer=None)
    seen: Counter[grpc.StatusCode] = Counter()
    for start in range(0, count, AT_ONCE):
        requests = [_request(method, chance) for _ in range(min(AT_ONCE, count - start))]
        asked = [call(r, timeout=5) if method.server_streaming else call.future(r, timeout=60) for r in requests]
        for request, answer in zip(requests, asked, strict=True):
            code = _outcome(answer, streams=method.server_streaming)
            seen[code] += 1
            assert code not in OURS, f"{request!r}: {answer.details()}"
    assert seen.total() == count


def _outcome(answer: grpc.Call, *, streams: bool) -> grpc.StatusCode:
    """How a call ends; a subscription that goes on is left after its first message."""
    try:
        if streams:
            next(answer)
            answer.cancel()
        else:
            answer.result()
    except grpc.RpcError as error:
        return error.code()
    except StopIteration:
        pass
    return grpc.StatusCode.OK


def _request(method: MethodDescriptor, chance: random.Random) -> bytes:
    if chance.random() < 0.2:
        return chance.randbytes(chance.randrange(200))
    message = message_factory.GetMessageClass(method.input_type)()
    _fill(message, chance)
    written = bytearray(message.SerializeToString())
    for _ in range(chance.choice((0, 0, 1, 2, 8))):
        place = chance.randrange(len(written) + 1)
        match chance.randrange(3):
            case 0 if place < len(written):
                written[place] ^= 1 << chance.randrange(8)
            case 1:
                written[place:place] = chance.randbytes(chance.randrange(1, 5))
            case _:
                del written[place : place + chance.randrange(1, 10)]
    return bytes(written)


def _fill(message: Message, chance: random.Random, depth: int = 0) -> None:
    """Some fields of a message, with values that somebody could mean."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.3:
            continue
        values = [_value(message, field, chance, depth) for _ in range(chance.randrange(3) if field.is_repeated else 1)]
        if field.message_type is None and field.is_repeated:
            getattr(message, field.name).extend(values)
        elif field.message_type is None:
            setattr(message, field.name, values[0])


def _value(message: Message, field, chance: random.Random, depth: int):  # type: ignore[no-untyped-def]
    if field.message_type is not None:
        entry = field.message_type
        if entry.GetOptions().map_entry:
            key, value = (_value(message, entry.fields_by_name[name], chance, depth) for name in ("key", "value"))
            getattr(message, field.name)[key] = value
        elif depth < 3:
            held = getattr(message, field.name)
            _fill(held.add() if field.is_repeated else held, chance, depth + 1)
            if not field.is_repeated:
                held.SetInParent()
        return None
    if field.enum_type is not None:
        return chance.choice([value.number for value in field.enum_type.values])
    match field.cpp_type:
        case field.CPPTYPE_STRING:
            text = chance.choice(TEXTS)
            return text.encode() if field.type == field.TYPE_BYTES else text
        case field.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case field.CPPTYPE_DOUBLE | field.CPPTYPE_FLOAT:
            return chance.choice((0.0, -1.5, float("nan"), float("inf")))
        case field.CPPTYPE_INT32 | field.CPPTYPE_UINT32:
            return chance.choice((0, 1, 7, 2**31 - 1))
    return chance.choice((0, 1, 1_700_000_000_000, 2**63 - 1))
