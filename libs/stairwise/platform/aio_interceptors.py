"""What stands before every method of an asyncio server: ``interceptors`` in another key."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from stairwise.errors import StairwiseError
from stairwise.platform.interceptors import decoded, lenient, rebuilt, replaced
from stairwise.platform.security.access import Access
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.scopes import METHODS
from stairwise.platform.status import to_status


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
            wrapped = lenient(handler, behaviour)
            self._wrapped[details.method] = handler, wrapped
        return wrapped


def _guarded(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await method(decoded(request), context)
        except StairwiseError as error:
            return await _abort(context, error)

    return answer


def _streamed(method: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isasyncgenfunction(method):  # one that writes to its context itself, as health's Watch does
        return _guarded(method)

    async def answers(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        try:
            async for answer in method(decoded(request), context):
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
            return replaced(handler, self._counted(handler.unary_stream))
        if rule is not None and rule.is_audited:
            return replaced(handler, self._noted(handler.unary_unary, method))
        return handler

    def _refusing(self, handler: Any, method: str, refused: StairwiseError) -> Any:
        async def refuse(_: Any, context: grpc.aio.ServicerContext) -> None:
            self._audit.note(self._access.name(context), context.peer(), method, error=refused)
            await _abort(context, refused)

        return rebuilt(handler, refuse, None)

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

        return answer
