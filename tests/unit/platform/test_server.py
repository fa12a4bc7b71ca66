"""The gRPC server: health, reflection, errors that keep their details, and methods that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from stairwise.errors import ConfigError, NotFoundError, StairwiseError, StatementError
from stairwise.platform.error_status import from_rpc_error
from stairwise.platform.security.settings import OFF, Security
from stairwise.platform.server import THREADS, Server
from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import registry_pb2, registry_pb2_grpc
from tests.unit.platform.secured_servers import write_tokens

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


def with_server(talk: Callable[[Server, grpc.aio.Channel], Awaitable[None]]) -> None:
    """A real server on a free port for the time of one conversation."""

    async def conversation() -> None:
        server = Server("127.0.0.1:0")
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
    async def talk(_: Server, channel: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(channel, "One")(Empty())
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "there is no stream 'tardes' (did you mean 'trades'?)"

    with_server(talk)


def test_an_error_in_mid_stream_comes_after_what_was_sent_and_can_be_raised_again() -> None:
    async def talk(_: Server, channel: grpc.aio.Channel) -> None:
        call = method(channel, "Many")(Empty())
        assert await call.read() == Empty()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        error: StairwiseError = from_rpc_error(caught.value, "here")
        assert isinstance(error, StatementError)
        assert (error.line, error.column, error.hint) == (2, 7, "did you mean 'price'?")

    with_server(talk)


def test_health_says_serving_from_ready_until_stop() -> None:
    async def talk(server: Server, channel: grpc.aio.Channel) -> None:
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
    async def talk(server: Server, channel: grpc.aio.Channel) -> None:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        await server.ready()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

    with_server(talk)


def test_reflection_lists_the_services() -> None:
    async def talk(_: Server, channel: grpc.aio.Channel) -> None:
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
        first = Server("127.0.0.1:0")
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{first.port}"):
            Server(f"127.0.0.1:{first.port}")
        await first.stop(grace=0)

    asyncio.run(twice())


class WaitingRegistry(registry_pb2_grpc.RegistryServicer):
    """Its methods are functions that block."""

    def __init__(self) -> None:
        self.called = threading.Semaphore(0)
        self.may_end = threading.Event()

    def ListStreams(self, request: registry_pb2.ListStreamsRequest, _: object) -> registry_pb2.ListStreamsResponse:
        return registry_pb2.ListStreamsResponse()

    def Execute(self, request: registry_pb2.ExecuteRequest, _: object) -> registry_pb2.ExecuteResponse:
        self.called.release()
        assert self.may_end.wait(30)
        return registry_pb2.ExecuteResponse()


@contextmanager
def registry(security: Security = OFF) -> Iterator[tuple[WaitingRegistry, grpc.Channel]]:
    servicer = WaitingRegistry()
    register = partial(registry_pb2_grpc.add_RegistryServicer_to_server, servicer)
    with ServerThread("127.0.0.1:0", register, security=security) as server:
        server.ready()
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            try:
                yield servicer, channel
            finally:
                servicer.may_end.set()


def test_fifty_watches_of_health_do_not_hold_up_a_method() -> None:
    with registry() as (_, channel):
        health = health_pb2_grpc.HealthStub(channel)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(50)]
        for watch in watches:
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        registry_pb2_grpc.RegistryStub(channel).ListStreams(registry_pb2.ListStreamsRequest(), timeout=5)
        for watch in watches:
            watch.cancel()


def test_methods_that_block_do_not_hold_up_health() -> None:
    with registry() as (servicer, channel):
        stub = registry_pb2_grpc.RegistryStub(channel)
        calls = [stub.Execute.future(registry_pb2.ExecuteRequest()) for _ in range(2 * THREADS)]
        for _ in range(THREADS):
            assert servicer.called.acquire(timeout=30)
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        servicer.may_end.set()
        for call in calls:
            call.result(timeout=30)


def test_a_script_counts_until_its_end_also_when_its_caller_does_not_wait(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens.toml", ann=["define"])
    with registry(Security(tokens=tokens, max_calls=1, max_waiting=0)) as (servicer, channel):
        execute = registry_pb2_grpc.RegistryStub(channel).Execute
        ann = (("authorization", "Bearer ann"),)
        call = execute.future(registry_pb2.ExecuteRequest(), timeout=0.5, metadata=ann)
        assert servicer.called.acquire(timeout=30)
        assert call.exception(timeout=30).code() == grpc.StatusCode.DEADLINE_EXCEEDED
        with pytest.raises(grpc.RpcError) as refused:
            execute(registry_pb2.ExecuteRequest(), timeout=30, metadata=ann)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        servicer.may_end.set()


def test_a_server_on_its_own_thread_raises_where_it_was_made_and_stops_twice() -> None:
    first = ServerThread("127.0.0.1:0")
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{first.port}"):
        ServerThread(f"127.0.0.1:{first.port}")
    first.stop(0)
    first.stop(0)
