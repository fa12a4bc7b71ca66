"""The health command of the images: what it says of a server that serves, of one that does not, and of none."""

from __future__ import annotations

import pytest

from stairwise.platform.healthcheck import check
from stairwise.platform.server_thread import ServerThread
from stairwise.system.ports import free_ports


def test_a_server_is_healthy_from_when_it_says_so() -> None:
    (port,) = free_ports(1)
    server = ServerThread(f"127.0.0.1:{port}")
    everywhere = {"STAIRWISE_LISTEN": f"0.0.0.0:{port}"}
    assert check(everywhere) == f"127.0.0.1:{port} says NOT_SERVING"
    server.ready()
    assert check(everywhere) == ""
    server.stop()
    assert "UNAVAILABLE" in check(everywhere)


@pytest.mark.parametrize("listen", ["", "7070"])
def test_an_address_that_makes_no_sense_is_named(listen: str) -> None:
    assert "STAIRWISE_LISTEN" in check({"STAIRWISE_LISTEN": listen})
