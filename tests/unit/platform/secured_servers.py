"""A real server that answers every method of every service, and clients to call it with."""

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

from stairwise.platform.channels import NONE, Credentials, channel
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import digest_of
from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import lookups_pb2, registry_pb2, results_pb2

CERTIFICATES = Path(__file__).parents[2] / "certificates"
SERVICES: tuple[ServiceDescriptor, ...] = (
    registry_pb2.DESCRIPTOR.services_by_name["Registry"],
    results_pb2.DESCRIPTOR.services_by_name["Results"],
    lookups_pb2.DESCRIPTOR.services_by_name["Lookups"],
)
METHODS: tuple[MethodDescriptor, ...] = tuple(method for service in SERVICES for method in service.methods)
TLS = Security(certificate=CERTIFICATES / "server.pem", key=CERTIFICATES / "server.key")
BOTH_KINDS = ("functions", "coroutines")
"""What methods can be: functions that may block, and coroutines."""


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
def serving(
    kind: str, security: Security, hold: threading.Event | None = None, *, hold_unary: bool = False
) -> Iterator[Running]:
    """A server whose methods all answer with an empty message; streams send one and end, or wait for ``hold``."""

    def unary(answer: Any) -> Callable[..., Any]:
        async def respond(*_: Any) -> Any:
            while hold_unary and hold is not None and not hold.is_set():
                await asyncio.sleep(0.02)
            return answer

        def block(*_: Any) -> Any:
            if hold_unary and hold is not None:
                hold.wait(30)
            return answer

        return respond if kind == "coroutines" else block

    def stream(answer: Any) -> Callable[..., Any]:
        async def respond(*_: Any) -> AsyncIterator[Any]:
            yield answer
            while hold is not None and not hold.is_set():
                await asyncio.sleep(0.02)

        return respond

    names = [service.full_name for service in SERVICES]
    server = ServerThread("127.0.0.1:0", lambda s: _register(s, unary, stream), names, security=security)
    try:
        yield Running(f"127.0.0.1:{server.port}")
    finally:
        server.stop(0)


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
