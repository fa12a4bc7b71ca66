"""Real servers of both kinds that answer every method of every service, and clients to call them with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from stairwise.platform.aio_server import AioServer
from stairwise.platform.channels import NONE, Credentials, channel
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import digest_of
from stairwise.platform.server import Server
from stairwise.v1 import lookups_pb2, registry_pb2, results_pb2

CERTIFICATES = Path(__file__).parents[2] / "certificates"
SERVICES: tuple[ServiceDescriptor, ...] = (
    registry_pb2.DESCRIPTOR.services_by_name["Registry"],
    results_pb2.DESCRIPTOR.services_by_name["Results"],
    lookups_pb2.DESCRIPTOR.services_by_name["Lookups"],
)
METHODS: tuple[MethodDescriptor, ...] = tuple(method for service in SERVICES for method in service.methods)
TLS = Security(certificate=CERTIFICATES / "server.pem", key=CERTIFICATES / "server.key")
BOTH_KINDS = ("threads", "asyncio")


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def write_tokens(path: Path, **scopes: list[str]) -> Path:
    """A tokens file in which the token of each principal is its name."""
    path.write_text("".join(entry(name, allowed) for name, allowed in scopes.items()))
    return path


def entry(name: str, scopes: list[str], more: str = "") -> str:
    return f'[[token]]\nprincipal = "{name}"\nsha256 = "{digest_of(name)}"\nscopes = {scopes}\n{more}\n'


@dataclass(frozen=True)
class Running:
    address: str

    def call(self, method: MethodDescriptor, credentials: Credentials = NONE, request: bytes = b"") -> grpc.StatusCode:
        """How a call ends."""
        with channel(self.address, credentials) as connection:
            make = connection.unary_stream if method.server_streaming else connection.unary_unary
            called = make(path_of(method), request_serializer=None, response_deserializer=None)
            try:
                answer = called(request, timeout=20)
                if method.server_streaming:
                    list(answer)
            except grpc.RpcError as error:
                return error.code()
        return grpc.StatusCode.OK


def bearing(token: str) -> Credentials:
    return Credentials(token=token)


@contextmanager
def serving(kind: str, security: Security, hold: threading.Event | None = None) -> Iterator[Running]:
    """A server whose methods all answer with an empty message; streams send one and end, or wait for ``hold``."""
    with _threads(security, hold) if kind == "threads" else _asyncio(security, hold) as address:
        yield Running(address)


@contextmanager
def _threads(security: Security, hold: threading.Event | None) -> Iterator[str]:
    def stream(request: Any, context: grpc.ServicerContext, answer: Any) -> Iterator[Any]:
        yield answer
        while hold is not None and context.is_active() and not hold.wait(0.02):
            pass

    def register(server: grpc.Server) -> None:
        _register(server, lambda answer: lambda *_: answer, lambda answer: lambda r, c: stream(r, c, answer))

    server = Server("127.0.0.1:0", register, [service.full_name for service in SERVICES], security=security)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.stop(0)


@contextmanager
def _asyncio(security: Security, hold: threading.Event | None) -> Iterator[str]:
    def unary(answer: Any) -> Callable[..., Any]:
        async def respond(*_: Any) -> Any:
            return answer

        return respond

    def stream(answer: Any) -> Callable[..., Any]:
        async def respond(*_: Any) -> AsyncIterator[Any]:
            yield answer
            while hold is not None and not hold.is_set():
                await asyncio.sleep(0.02)

        return respond

    addresses: list[str] = []
    started, stopping = threading.Event(), threading.Event()

    async def serve() -> None:
        server = AioServer("127.0.0.1:0", security=security)
        await server.start(lambda s: _register(s, unary, stream), [service.full_name for service in SERVICES])
        addresses.append(f"127.0.0.1:{server.port}")
        started.set()
        while not stopping.is_set():
            await asyncio.sleep(0.02)
        await server.stop(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(30)
        yield addresses[0]
    finally:
        stopping.set()
        thread.join()


def _register(server: Any, unary: Callable[[Any], Any], stream: Callable[[Any], Any]) -> None:
    for service in SERVICES:
        handlers = {}
        for method in service.methods:
            request, response = (
                message_factory.GetMessageClass(type_) for type_ in (method.input_type, method.output_type)
            )
            make = (
                grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
            )
            behave = stream if method.server_streaming else unary
            handlers[method.name] = make(behave(response()), request.FromString, response.SerializeToString)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
