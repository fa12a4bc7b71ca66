"""Ports: a taken one is named before anything is started, with its holder and a way out; a held one stays ours."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from stairwise.errors import ConfigError
from stairwise.system.ports import EPHEMERAL, Hold, PortTakenError, free_ports, holder_of, is_free
from stairwise.system.system_part import Check, Port, SystemPart


def part_on(name: str, *ports: int) -> SystemPart:
    return SystemPart(name, (), Check("grpc", ""), ports=tuple(Port(port, f"--{name}-port") for port in ports))


@pytest.fixture(params=["127.0.0.1", "0.0.0.0", "::"])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port on which this process listens, on one interface or on all."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    dual = family == socket.AF_INET6
    with socket.create_server((request.param, 0), family=family, dualstack_ipv6=dual) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_named_with_part_holder_and_what_to_type(taken: int) -> None:
    with pytest.raises(PortTakenError) as error:
        Hold().check([part_on("one", *free_ports(1)), part_on("results", taken)])
    assert f"port {taken}, which results needs, is taken by process {os.getpid()}" in error.value.message
    assert "stairwise up --results-port " in error.value.hint
    assert "--port-base " in error.value.hint


def test_the_holder_of_a_port_is_the_process_that_listens_on_it(taken: int) -> None:
    holder = holder_of(taken)
    assert holder is not None
    assert holder.pid == os.getpid()
    assert not is_free(taken)


def test_a_port_that_nobody_listens_on_has_no_holder() -> None:
    (port,) = free_ports(1)
    assert holder_of(port) is None
    assert is_free(port)


def test_a_port_with_lingering_connections_is_free_for_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first, and keeps the connection in TIME_WAIT
        client.close()
    assert is_free(port)


def test_one_port_for_two_parts_is_refused() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ConfigError, match=f"port {port} is given to both one and two"):
        Hold().check([part_on("one", port), part_on("two", port)])


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_free_ports_are_not_of_those_that_connections_are_given() -> None:
    first, last = map(int, EPHEMERAL.read_text().split())
    assert not [port for port in free_ports(50) if first <= port <= last]


@pytest.fixture
def hold() -> Iterator[Hold]:
    held = Hold()
    yield held
    held.release()


@pytest.mark.parametrize("by_name", [False, True])
def test_a_held_port_is_left_to_its_server_and_to_nobody_else(hold: Hold, *, by_name: bool) -> None:
    if by_name:
        (port,) = free_ports(1)
        hold.check([part_on("results", port)])
    else:
        (port,) = hold.any(1)
    with socket.socket() as connection, pytest.raises(OSError, match="in use"):
        connection.bind(("127.0.0.1", port))
    assert hold.lost() == []
    for _ in range(2):  # it may be started again
        with socket.create_server(("127.0.0.1", port)):
            assert hold.lost() == [port]
    hold.release()
    assert is_free(port)
