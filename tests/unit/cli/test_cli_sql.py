"""`stairwise sql` at a terminal, with real servers that play a registry and results."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest

from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import registry_pb2, registry_pb2_grpc, results_pb2_grpc
from stairwise.v1 import results_pb2 as pb
from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted_results import HEADER, progress, update

SQL = """
from stairwise.cli.main import main
main(["sql"])
"""


class Play(registry_pb2_grpc.RegistryServicer, results_pb2_grpc.ResultsServicer):
    """Remembers the scripts; every subscription has one report, and then nothing for ever."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.ending = threading.Event()

    def Execute(self, request: registry_pb2.ExecuteRequest, _: grpc.ServicerContext) -> registry_pb2.ExecuteResponse:
        self.scripts.append(request.script)
        return registry_pb2.ExecuteResponse(results=[registry_pb2.StatementResult(summary="done", query="q7")])

    def ListStreams(self, *_: object) -> registry_pb2.ListStreamsResponse:
        return registry_pb2.ListStreamsResponse()

    def ListQueries(self, *_: object) -> registry_pb2.ListQueriesResponse:
        return registry_pb2.ListQueriesResponse()

    def Explain(self, request: registry_pb2.ExplainRequest, _: grpc.ServicerContext) -> registry_pb2.ExplainResponse:
        return registry_pb2.ExplainResponse(explanation=f"the plan of {request.query}")

    def Status(self, request: registry_pb2.StatusRequest, _: grpc.ServicerContext) -> registry_pb2.StatusResponse:
        said = f"{request.query} waits for t partition 3"
        waiting = registry_pb2.Waiting(cause=registry_pb2.Waiting.CAUSE_EMPTY_PARTITION, sentence=said)
        return registry_pb2.StatusResponse(waiting=waiting)

    async def Subscribe(
        self, _: pb.SubscribeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.SubscribeResponse]:
        for message in (HEADER, update(10_000, ("the-only-key", 5)), progress(10_000)):
            yield message
        while not self.ending.is_set():
            await asyncio.sleep(0.02)


@pytest.fixture
def play() -> Iterator[tuple[Play, str]]:
    play = Play()

    def register(server: grpc.aio.Server) -> None:
        registry_pb2_grpc.add_RegistryServicer_to_server(play, server)
        results_pb2_grpc.add_ResultsServicer_to_server(play, server)

    server = ServerThread("127.0.0.1:0", register)
    yield play, f"127.0.0.1:{server.port}"
    play.ending.set()
    server.stop(0)


def test_a_select_streams_until_ctrl_c_and_is_dropped(play: tuple[Play, str], tmp_path: Path) -> None:
    played, address = play
    terminal = Terminal(SQL, tmp_path, STAIRWISE_REGISTRY=address, STAIRWISE_RESULTS=address, TERM="xterm")
    try:
        terminal.expect("stairwise> ")
        terminal.type("SELECT k, COUNT(*) AS n FROM t [NOW] GROUP BY k;\n")
        terminal.expect("Ctrl-C ends it")
        terminal.expect("the-only-key")
        terminal.expect("q7 waits for t partition 3")
        terminal.interrupt("q7 is dropped")
        terminal.expect("stairwise> ")
        terminal.type("\\explain volumes\n")
        terminal.expect("the plan of volumes")
        terminal.type("CREATE QUERY kept AS SELECT 1 AS x FROM t [NOW];\n")
        terminal.expect("done")
        terminal.type("\\q\n")
        assert terminal.process.wait(30) == 0
    finally:
        terminal.close()
    assert played.scripts == [
        "SELECT k, COUNT(*) AS n FROM t [NOW] GROUP BY k;",
        'DROP QUERY "q7";',
        "CREATE QUERY kept AS SELECT 1 AS x FROM t [NOW];",
    ]
