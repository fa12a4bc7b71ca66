"""What stands before every method of a server of threads: is the call let in, and which status an error becomes.

    call ─▶ Errors ─▶ Guard ─▶ method

``aio_interceptors`` is the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from stairwise.errors import StairwiseError
from stairwise.platform.security.access import Access
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.scopes import METHODS
from stairwise.platform.status import to_status


class Errors(grpc.ServerInterceptor):  # type: ignore[misc]
    """Turns the project's errors into statuses; anything else is a fault of ours, which gRPC logs."""

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        if handler is None or handler.request_streaming:
            return handler
        if handler.response_streaming:
            return lenient(handler, lambda request, context: _streamed(handler.unary_stream, request, context))
        return lenient(handler, lambda request, context: _guarded(handler.unary_unary, request, context))


def _guarded(method: Callable[..., Any], request: Any, context: grpc.ServicerContext) -> Any:
    try:
        return method(decoded(request), context)
    except StairwiseError as error:
        context.abort_with_status(to_status(error))


def _streamed(method: Callable[..., Any], request: Any, context: grpc.ServicerContext) -> Iterable[Any]:
    try:
        yield from method(decoded(request), context)
    except StairwiseError as error:
        context.abort_with_status(to_status(error))


class Guard(grpc.ServerInterceptor):  # type: ignore[misc]
    """Asks for a token and its scope before the request is even decoded; counts streams; keeps the audit log."""

    def __init__(self, access: Access, audit: Audit) -> None:
        self._access = access
        self._audit = audit

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        if handler is None:
            return None
        method = details.method
        try:
            self._access.admit(method, details.invocation_metadata)
        except StairwiseError as refused:
            return self._refusing(handler, method, refused)
        rule = METHODS.get(method)
        if handler.response_streaming and not handler.request_streaming and not (rule and rule.is_open):
            return replaced(handler, lambda request, context: self._counted(handler.unary_stream, request, context))
        if rule is not None and rule.is_audited:
            noted = self._noted
            return replaced(handler, lambda request, context: noted(handler.unary_unary, method, request, context))
        return handler

    def _refusing(self, handler: Any, method: str, refused: StairwiseError) -> Any:
        def refuse(_: Any, context: grpc.ServicerContext) -> Any:
            self._audit.note(self._access.name(context), context.peer(), method, error=refused)
            context.abort_with_status(to_status(refused))

        return rebuilt(handler, refuse, None)

    def _counted(self, method: Callable[..., Any], request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        principal = self._access.caller(context)
        self._access.take_stream(principal)
        if not context.add_callback(lambda: self._access.give_stream(principal)):
            self._access.give_stream(principal)
            return
        yield from method(request, context)

    def _noted(self, method: Callable[..., Any], name: str, request: Any, context: grpc.ServicerContext) -> Any:
        caller, peer = self._access.name(context), context.peer()
        try:
            answer = method(request, context)
        except BaseException as error:
            self._audit.note(caller, peer, name, request, error)
            raise
        self._audit.note(caller, peer, name, request)
        return answer


class _Malformed:
    """Stands for bytes that are not the message they should be."""

    def __init__(self, reason: DecodeError) -> None:
        self.reason = reason


def decoded(request: Any) -> Any:
    """The request, unless it was none: that is the caller's fault, and not INTERNAL as gRPC has it."""
    if isinstance(request, _Malformed):
        raise StairwiseError(f"the request is not the message that this method takes: {request.reason}")
    return request


def lenient(handler: Any, behaviour: Callable[..., Any]) -> Any:
    """A handler of the same kind that behaves otherwise, and whose requests go through ``decoded`` first."""

    def decode(held: bytes) -> Any:
        try:
            return handler.request_deserializer(held) if handler.request_deserializer is not None else held
        except DecodeError as error:
            return _Malformed(error)

    return rebuilt(handler, behaviour, decode)


def replaced(handler: Any, behaviour: Callable[..., Any]) -> Any:
    """A handler of the same kind that behaves otherwise."""
    return rebuilt(handler, behaviour, handler.request_deserializer)


def rebuilt(handler: Any, behaviour: Callable[..., Any], decode: Callable[[bytes], Any] | None) -> Any:
    """A handler of the same kind that behaves otherwise; with ``decode`` None it gets the request's bytes."""
    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    make = kinds[bool(handler.request_streaming), bool(handler.response_streaming)]
    return make(behaviour, decode, handler.response_serializer)
