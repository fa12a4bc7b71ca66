"""The project's errors survive the way over gRPC: code, details, and the same words on the other side."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest

from stairwise.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    GoneError,
    LimitError,
    NotFoundError,
    StairwiseError,
    StatementError,
)
from stairwise.platform.error_status import from_rpc_error, to_status

STATEMENT = StatementError(
    "there is no column 'x'",
    line=2,
    column=8,
    text="x",
    expected="a column",
    hint="try y",
    source_line="SELECT x",
)
ERRORS = [
    (STATEMENT, grpc.StatusCode.INVALID_ARGUMENT),
    (NotFoundError("query", "volum", ["volume"]), grpc.StatusCode.NOT_FOUND),
    (AlreadyExistsError("stream", "t"), grpc.StatusCode.ALREADY_EXISTS),
    (ConflictError("it is sealed", hint="reopen it"), grpc.StatusCode.FAILED_PRECONDITION),
    (ConfigError("no Kafka"), grpc.StatusCode.UNAVAILABLE),
    (GoneError("no longer there", hint="the earliest is 10"), grpc.StatusCode.OUT_OF_RANGE),
    (LimitError("too many"), grpc.StatusCode.RESOURCE_EXHAUSTED),
    (StairwiseError("no"), grpc.StatusCode.INVALID_ARGUMENT),
]


@pytest.fixture
def channel() -> Iterator[grpc.Channel]:
    """A server whose one method raises the error whose number it is given."""

    class Raises(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: context.abort_with_status(to_status(ERRORS[request[0]][0]))
            )

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Raises()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    server.stop(None)


@pytest.mark.parametrize("number", range(len(ERRORS)), ids=lambda n: type(ERRORS[n][0]).__name__)
def test_an_error_says_the_same_on_the_other_side(channel: grpc.Channel, number: int) -> None:
    error, code = ERRORS[number]
    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/any/Method")(bytes([number]))
    assert raised.value.code() == code
    assert str(from_rpc_error(raised.value, "here")) == str(error)
