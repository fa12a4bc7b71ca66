"""The gRPC server of asyncio services: health, reflection, and errors that keep their details."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from stairwise.errors import ConfigError, NotFoundError, StairwiseError, StatementError
from stairwise.platform.aio_server import AioServer
from stairwise.platform.status import from_rpc_error

NAME = "test.Failing"


async def fail(_: Empty, __: grpc.aio.ServicerContext) -> Empty:
    raise NotFoundError("stream", "tardes", ["trades"])


async def fail_late(_: Empty, __: grpc.aio.ServicerContext) -> AsyncIterator[Empty]:
    yield Empty()
    raise StatementError("no such column", line=2, column=7, text="prize", hint="did you mean 'price'?")


def register(server: grpc.aio.Server) -> None:
    codec = {"request_deserializer": Empty.FromString, "response_serializer": Empty.SerializeToString}
    methods = {
        "One": grpc.unary_unary_rpc_method_handler(fail, **codec),
        "Many": grpc.unary_stream_rpc_method_handler(fail_late, **codec),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, methods),))


def with_server(talk: Callable[[AioServer, grpc.aio.Channel], Awaitable[None]]) -> None:
    """A real server on a free port for the time of one conversation."""

    async def conversation() -> None:
        server = AioServer("127.0.0.1:0")
        await server.start(register, [NAME])
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
                await talk(server, channel)
        finally:
            await server.stop(grace=0)

    asyncio.run(conversation())


def method(channel: grpc.aio.Channel, name: str) -> grpc.aio.UnaryUnaryMultiCallable:
    make = channel.unary_stream if name == "Many" else channel.unary_unary
    return make(f"/{NAME}/{name}", Empty.SerializeToString, Empty.FromString)


def test_an_error_arrives_with_its_hint_and_details() -> None:
    async def talk(_: AioServer, channel: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(channel, "One")(Empty())
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "there is no stream 'tardes' (did you mean 'trades'?)"

    with_server(talk)


def test_an_error_in_mid_stream_comes_after_what_was_sent_and_can_be_raised_again() -> None:
    async def talk(_: AioServer, channel: grpc.aio.Channel) -> None:
        call = method(channel, "Many")(Empty())
        assert await call.read() == Empty()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        error: StairwiseError = from_rpc_error(caught.value, "here")
        assert isinstance(error, StatementError)
        assert (error.line, error.column, error.hint) == (2, 7, "did you mean 'price'?")

    with_server(talk)


def test_health_says_serving_from_ready_until_stop() -> None:
    async def talk(server: AioServer, channel: grpc.aio.Channel) -> None:
        check = health_pb2_grpc.HealthStub(channel).Check
        for service in ("", NAME):
            answer = await check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        await server.ready()
        for service in ("", NAME):
            answer = await check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING

    with_server(talk)


def test_health_can_be_watched() -> None:
    async def talk(server: AioServer, channel: grpc.aio.Channel) -> None:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        await server.ready()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

    with_server(talk)


def test_reflection_lists_the_services() -> None:
    async def talk(_: AioServer, channel: grpc.aio.Channel) -> None:
        ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        call = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        answer = await call.read()
        assert {s.name for s in answer.list_services_response.service} == {
            NAME,
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
        }

    with_server(talk)


def test_a_taken_port_is_named() -> None:
    async def twice() -> None:
        first = AioServer("127.0.0.1:0")
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{first.port}"):
            AioServer(f"127.0.0.1:{first.port}")
        await first.stop(grace=0)

    asyncio.run(twice())
