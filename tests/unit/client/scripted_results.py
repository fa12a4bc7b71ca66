"""A Results server whose every subscription is told what to say: a real gRPC server with a script behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager

import grpc

from stairwise.client import Client
from stairwise.errors import StairwiseError
from stairwise.platform.error_status import to_status
from stairwise.system.state import Addresses
from stairwise.v1 import results_pb2 as pb
from stairwise.v1 import results_pb2_grpc, streams_pb2

COLUMNS = [
    streams_pb2.Column(name="k", type=streams_pb2.TYPE_STRING, nullable=True),
    streams_pb2.Column(name="n", type=streams_pb2.TYPE_BIGINT, nullable=True),
]
HEADER = pb.SubscribeResponse(header=pb.Header(query="q", columns=COLUMNS, emit=pb.EMIT_RSTREAM), token=b"header")
END = pb.SubscribeResponse(end=pb.End(reason=pb.End.REASON_SEALED), token=b"end")

Step = pb.SubscribeResponse | grpc.StatusCode | StairwiseError
"""A message to send, or what to break off with: a bare status, or an error as our servers tell it."""


def update(time: int, *rows: tuple[str, int], token: bytes = b"update") -> pb.SubscribeResponse:
    changes = [pb.Update.Change(diff=1, row=pb.Row(values=[pb.Value(string=k), pb.Value(integer=n)])) for k, n in rows]
    return pb.SubscribeResponse(update=pb.Update(time_ms=time, changes=changes), token=token)


def progress(time: int, token: bytes = b"progress") -> pb.SubscribeResponse:
    return pb.SubscribeResponse(progress=pb.Progress(time_ms=time), token=token)


class ScriptedResults(results_pb2_grpc.ResultsServicer):
    """The first call gets the first script, and so on; the last script serves all further calls."""

    def __init__(self, scripts: Sequence[Sequence[Step]]) -> None:
        self._scripts = list(scripts)
        self.requests: list[pb.SubscribeRequest] = []

    def Subscribe(self, request: pb.SubscribeRequest, context: grpc.ServicerContext) -> Iterator[pb.SubscribeResponse]:
        self.requests.append(request)
        script = self._scripts[min(len(self.requests), len(self._scripts)) - 1]
        for step in script:
            if isinstance(step, grpc.StatusCode):
                context.abort(step, "as the script says")
            if isinstance(step, StairwiseError):
                context.abort_with_status(to_status(step))
            yield step


@contextmanager
def served(*scripts: Sequence[Step]) -> Iterator[tuple[Client, ScriptedResults]]:
    """A client of a server that follows the scripts."""
    servicer = ScriptedResults(scripts)
    server = grpc.server(futures.ThreadPoolExecutor(4))
    results_pb2_grpc.add_ResultsServicer_to_server(servicer, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        with Client(Addresses(brokers="", registry="", results=address, lookups="")) as client:
            yield client, servicer
    finally:
        server.stop(None).wait()
