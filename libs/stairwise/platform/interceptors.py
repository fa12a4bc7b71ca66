"""What stands before every method of a server: which status an error becomes, is the call let in, who runs it.

call ─▶ Errors ─▶ Guard ─▶ Blocking ─▶ method
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from stairwise.errors import LimitError, PermissionDeniedError, StairwiseError, UnauthenticatedError
from stairwise.platform.error_status import to_status
from stairwise.platform.security.access import UNKNOWN, Access, certified_name
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.caller import CALLER, Caller
from stairwise.platform.security.scopes import METHODS
from stairwise.platform.security.settings import Security
from stairwise.platform.security.turns import MOST_UNSCOPED, BusyError, CallerTurns, OpenStreams, host_of

REFLECTION = "/grpc.reflection."
REFUSALS = (PermissionDeniedError, LimitError, UnauthenticatedError)
"""What the audit log calls a refusal: not a name that is not there, or a statement that makes no sense."""


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
    """Decides who is let in, before the request is decoded where a token tells; bounds what each caller has under way;
    tells whatever runs beneath who calls; notes refusals in the audit log."""

    def __init__(self, security: Security) -> None:
        self._access = Access(security)
        self._audit = Audit(security.audit)
        self._turns = CallerTurns(security.max_calls, security.max_waiting)
        self._streams = OpenStreams()
        self._wrapped: dict[str, tuple[Any, Any]] = {}
        """By method, the handler that it had last, and what was made of it."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        method, metadata = details.method, details.invocation_metadata
        if self._access.decides_early(metadata):
            try:
                self._access.admit(method, metadata)
            except StairwiseError as refused:
                return self._refusing(handler, method, refused)
        known, wrapped = self._wrapped.get(method, (None, None))
        if handler is not known:
            wrapped = self._guarding(handler, method)
            self._wrapped[method] = handler, wrapped
        return wrapped

    def _guarding(self, handler: Any, method: str) -> Any:
        if handler.response_streaming:
            behaviour = handler.stream_stream if handler.request_streaming else handler.unary_stream
            return _replaced(handler, self._streaming(behaviour, method))
        return _replaced(handler, self._answering(handler.unary_unary, method))

    def _refusing(self, handler: Any, method: str, refused: StairwiseError) -> Any:
        async def refuse(_: Any, context: grpc.aio.ServicerContext) -> None:
            self._audit.note(self._name(context), context.peer(), method, error=refused)
            await _abort(context, refused)

        return _rebuilt(handler, refuse, None)

    def _answering(self, method: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            with self._noting(name, context) as caller:
                async with self._turns.of(caller.principal):
                    return await method(request, context)

        async def outlasting(request: Any, context: grpc.aio.ServicerContext) -> Any:
            """A script goes on when its caller does not wait for the end, and counts as under way until then."""
            return await asyncio.shield(answer(request, context))

        rule = METHODS.get(name)
        return outlasting if rule is not None and rule.notes_itself else answer

    def _streaming(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        if not inspect.isasyncgenfunction(method):

            async def writing(request: Any, context: grpc.aio.ServicerContext) -> None:
                with self._noting(name, context) as caller, self._place(name, caller):
                    await method(request, context)

            return writing

        async def answers(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            with self._noting(name, context) as caller, self._place(name, caller):
                async for answer in method(request, context):
                    yield answer

        return answers

    def _place(self, method: str, caller: Caller) -> AbstractContextManager[None]:
        """One of the streams that a principal may have open; of those that ask for no scope, that a peer may."""
        rule = METHODS.get(method)
        if rule is None or rule.is_open or method.startswith(REFLECTION):
            return self._streams.place(host_of(caller.peer), MOST_UNSCOPED)
        return self._streams.place(caller.principal.name, self._access.max_streams(caller.principal))

    @contextmanager
    def _noting(self, method: str, context: grpc.aio.ServicerContext) -> Iterator[Caller]:
        """Admit the caller and let it be known beneath; whatever is refused is noted."""
        rule = METHODS.get(method)
        peer = context.peer()
        try:
            principal = self._access.admit(method, context.invocation_metadata(), certified_name(context))
        except StairwiseError as refused:
            self._audit.note(self._name(context), peer, method, error=refused)
            raise
        caller = Caller(principal, peer, method, self._access.max_queries(principal), self._audit)
        CALLER.set(caller)
        try:
            yield caller
        except REFUSALS as refused:
            if rule is None or not rule.notes_itself or isinstance(refused, BusyError):
                caller.note(error=refused)
            raise

    def _name(self, context: grpc.aio.ServicerContext) -> str:
        """Who makes a call, as far as it is known."""
        try:
            return self._access.principal(context.invocation_metadata(), certified_name(context)).name
        except UnauthenticatedError:
            return UNKNOWN.name


class Blocking(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Runs methods that are plain functions on threads, a bounded number at a time: they may wait and take locks."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None or inspect.iscoroutinefunction(handler.unary_unary):
            return handler

        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            method = partial(copy_context().run, handler.unary_unary)  # it may ask who calls
            return await asyncio.get_running_loop().run_in_executor(self._threads, method, request, context)

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
