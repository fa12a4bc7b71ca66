"""While nothing comes, `subscribe` says on stderr what the query waits for, and leaves stdout alone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator

import grpc
import pytest
from click.testing import CliRunner

from stairwise.cli import waiting
from stairwise.cli.main import cli
from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import registry_pb2, registry_pb2_grpc, results_pb2_grpc
from stairwise.v1 import results_pb2 as pb
from tests.unit.client.scripted_results import END, HEADER, progress, update

ASKED = 4
"""The report comes when it was asked so often what the query waits for."""


class Play(registry_pb2_grpc.RegistryServicer, results_pb2_grpc.ResultsServicer):
    """A query that waits for operators at first, who come nearer, and then for event time."""

    def __init__(self) -> None:
        self.asked = 0
        self.enough = threading.Event()

    def Status(self, request: registry_pb2.StatusRequest, _: grpc.ServicerContext) -> registry_pb2.StatusResponse:
        self.asked += 1
        if self.asked < ASKED:
            cause, text = registry_pb2.Waiting.CAUSE_OPERATORS, f"waits for operators: {10 - self.asked} batches behind"
        else:
            cause, text = registry_pb2.Waiting.CAUSE_EVENT_TIME, "waits for event time"
        if self.asked > ASKED:
            self.enough.set()
        return registry_pb2.StatusResponse(
            waiting=registry_pb2.Waiting(cause=cause, sentence=f"{request.query} {text}")
        )

    async def Subscribe(
        self, _: pb.SubscribeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.SubscribeResponse]:
        yield HEADER
        while not self.enough.is_set():
            await asyncio.sleep(0.02)
        for message in (update(10_000, ("a", 5)), progress(10_000), END):
            yield message


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    monkeypatch.setattr(waiting, "AFTER", 0.01)
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    played = Play()

    def register(server: grpc.aio.Server) -> None:
        registry_pb2_grpc.add_RegistryServicer_to_server(played, server)
        results_pb2_grpc.add_ResultsServicer_to_server(played, server)

    server = ServerThread("127.0.0.1:0", register)
    for name in ("REGISTRY", "RESULTS"):
        monkeypatch.setenv(f"STAIRWISE_{name}", f"127.0.0.1:{server.port}")
    yield played
    played.enough.set()
    server.stop(0)


@pytest.mark.usefixtures("play")
def test_it_is_said_once_and_again_when_it_is_something_else() -> None:
    done = CliRunner().invoke(cli, ["subscribe", "q"])
    assert done.exit_code == 0
    assert done.stderr.splitlines() == ["q waits for operators: 9 batches behind", "q waits for event time"]
    assert [json.loads(line)["row"] for line in done.stdout.splitlines()] == [{"k": "a", "n": 5}]


def test_quiet_asks_nobody(play: Play) -> None:
    play.enough.set()
    done = CliRunner().invoke(cli, ["subscribe", "q", "--quiet"])
    assert (done.exit_code, done.stderr, play.asked) == (0, "", 0)
