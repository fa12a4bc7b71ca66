"""What stands before every method of a server: which status an error becomes, is the call let in, who runs it.

call ─▶ Errors ─▶ Guard ─▶ Blocking ─▶ method
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from stairwise.errors import StairwiseError
from stairwise.platform.error_status import to_status
from stairwise.platform.security.access import Access
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.scopes import METHODS


class Errors(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Turns the project's errors into statuses; anything else is logged by gRPC and becomes UNKNOWN."""

    def __init__(self) -> None:
        self._wrapped: dict[str, tuple[Any, Any]] = {}
        """By method, the handler that it had last, and what was made of it."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.request_streaming:
            return handler
        known, wrapped = self._wrapped.get(details.method, (None, None))
        if handler is not known:
            behaviour = _streamed(handler.unary_stream) if handler.response_streaming else _guarded(handler.unary_unary)
            wrapped = _lenient(handler, behaviour)
            self._wrapped[details.method] = handler, wrapped
        return wrapped


def _guarded(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await method(_decoded(request), context)
        except StairwiseError as error:
            return await _abort(context, error)

    return answer


def _streamed(method: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isasyncgenfunction(method):  # one that writes to its context itself, as health's Watch does
        return _guarded(method)

    async def answers(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        try:
            async for answer in method(_decoded(request), context):
                yield answer
        except StairwiseError as error:
            await _abort(context, error)

    return answers


async def _abort(context: grpc.aio.ServicerContext, error: StairwiseError) -> None:
    status = to_status(error)
    await context.abort(status.code, status.details, status.trailing_metadata)


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Asks for a token and its scope before the request is even decoded; counts streams; keeps the audit log."""

    def __init__(self, access: Access, audit: Audit) -> None:
        self._access = access
        self._audit = audit

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        method = details.method
        try:
            self._access.admit(method, details.invocation_metadata)
        except StairwiseError as refused:
            return self._refusing(handler, method, refused)
        rule = METHODS.get(method)
        if handler.response_streaming and not handler.request_streaming and not (rule and rule.is_open):
            return _replaced(handler, self._counted(handler.unary_stream))
        if rule is not None and rule.is_audited:
            return _replaced(handler, self._noted(handler.unary_unary, method))
        return handler

    def _refusing(self, handler: Any, method: str, refused: StairwiseError) -> Any:
        async def refuse(_: Any, context: grpc.aio.ServicerContext) -> None:
            self._audit.note(self._access.name(context), context.peer(), method, error=refused)
            await _abort(context, refused)

        return _rebuilt(handler, refuse, None)

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def take(context: grpc.aio.ServicerContext) -> None:
            principal = self._access.caller(context)
            self._access.take_stream(principal)
            context.add_done_callback(lambda _: self._access.give_stream(principal))

        if not inspect.isasyncgenfunction(method):

            async def writing(request: Any, context: grpc.aio.ServicerContext) -> None:
                take(context)
                await method(request, context)

            return writing

        async def answers(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            take(context)
            async for answer in method(request, context):
                yield answer

        return answers

    def _noted(self, method: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            caller, peer = self._access.name(context), context.peer()
            try:
                said = await method(request, context)
            except BaseException as error:
                self._audit.note(caller, peer, name, request, error)
                raise
            self._audit.note(caller, peer, name, request)
            return said

        async def outlasting(request: Any, context: grpc.aio.ServicerContext) -> Any:
            """A caller that does not wait for the end does not keep it out of the log."""
            return await asyncio.shield(answer(request, context))

        return outlasting


class Blocking(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Runs methods that are plain functions on threads, a bounded number at a time: they may wait and take locks."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None or inspect.iscoroutinefunction(handler.unary_unary):
            return handler

        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            running = asyncio.get_running_loop().run_in_executor(self._threads, handler.unary_unary, request, context)
            return await running

        return _replaced(handler, answer)


class _Malformed:
    """Stands for bytes that are not the message they should be."""

    def __init__(self, reason: DecodeError) -> None:
        self.reason = reason


def _decoded(request: Any) -> Any:
    """The request, unless it was none: that is the caller's fault, and not INTERNAL as gRPC has it."""
    if isinstance(request, _Malformed):
        raise StairwiseError(f"the request is not the message that this method takes: {request.reason}")
    return request


def _lenient(handler: Any, behaviour: Callable[..., Any]) -> Any:
    """A handler of the same kind that behaves otherwise, and whose requests go through ``_decoded`` first."""

    def decode(held: bytes) -> Any:
        try:
            return handler.request_deserializer(held) if handler.request_deserializer is not None else held
        except DecodeError as error:
            return _Malformed(error)

    return _rebuilt(handler, behaviour, decode)


def _replaced(handler: Any, behaviour: Callable[..., Any]) -> Any:
    """A handler of the same kind that behaves otherwise."""
    return _rebuilt(handler, behaviour, handler.request_deserializer)


def _rebuilt(handler: Any, behaviour: Callable[..., Any], decode: Callable[[bytes], Any] | None) -> Any:
    """A handler of the same kind that behaves otherwise; with ``decode`` None it gets the request's bytes."""
    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    make = kinds[bool(handler.request_streaming), bool(handler.response_streaming)]
    return make(behaviour, decode, handler.response_serializer)
