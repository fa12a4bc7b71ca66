"""Whether a call is let in, and as whom."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import grpc

from stairwise.errors import LimitError, PermissionDeniedError, UnauthenticatedError
from stairwise.platform.security.scopes import METHODS, TokenScope
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import Principal, TokensFile

AUTHORIZATION = "authorization"
BEARER = "bearer "
ANONYMOUS = Principal("anonymous", frozenset({TokenScope.ADMIN}))
"""Everybody, where no tokens are asked for."""

Metadata = Iterable[tuple[str, str | bytes]]


class Access:
    """The decisions of one server."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tokens = TokensFile(security.tokens) if security.tokens is not None else None
        self._lock = threading.Lock()
        self._streams: Counter[str] = Counter()

    def admit(self, method: str, metadata: Metadata) -> Principal:
        """Who calls, if they may call the method; raises what says why not."""
        rule = METHODS.get(method)
        if self._tokens is None or (rule is not None and rule.is_open):
            return ANONYMOUS
        principal = self._bearer(self._tokens, metadata)
        if rule is None:
            raise PermissionDeniedError(
                f"nobody may call {method}", hint="it has no scope: that is a fault of the server"
            )
        if not rule.admits(principal.scopes):
            raise PermissionDeniedError(
                f"{principal.name} may not call {method.rpartition('/')[2]}: it needs the scope "
                + " or ".join(sorted(rule.scopes)),
                hint=f"this token has {', '.join(sorted(principal.scopes)) or 'none'}",
            )
        return principal

    def caller(self, context: grpc.aio.ServicerContext) -> Principal:
        """Who makes a call that was admitted. Without a token, a client is known by its certificate."""
        if self._tokens is not None:
            return self._bearer(self._tokens, context.invocation_metadata())
        return named_by_certificate(context)

    def name(self, context: grpc.aio.ServicerContext) -> str:
        """Who makes any call, as far as it is known."""
        try:
            return self.caller(context).name
        except UnauthenticatedError:
            return "unknown"

    def max_queries(self, principal: Principal) -> int | None:
        """How many queries it may have registered; None: any number."""
        return self._limit(principal, principal.max_queries, self._security.max_queries)

    def take_stream(self, principal: Principal) -> None:
        """Count a streaming call; ``give_stream`` ends it."""
        most = self._limit(principal, principal.max_streams, self._security.max_streams)
        with self._lock:
            if most is not None and self._streams[principal.name] >= most:
                raise LimitError(
                    f"{principal.name} has {most} streaming calls open on this server already",
                    hint="end one, ask another replica, or raise max_streams of the token",
                )
            self._streams[principal.name] += 1

    def give_stream(self, principal: Principal) -> None:
        with self._lock:
            self._streams[principal.name] -= 1
            if not self._streams[principal.name]:
                del self._streams[principal.name]

    @staticmethod
    def _limit(principal: Principal, own: int | None, general: int) -> int | None:
        if not principal.is_limited:
            return None
        return general if own is None else own

    @staticmethod
    def _bearer(tokens: TokensFile, metadata: Metadata) -> Principal:
        said = [value for key, value in metadata if key == AUTHORIZATION]
        if not said:
            raise UnauthenticatedError(
                "this server asks for a token",
                hint="--token-file or STAIRWISE_TOKEN_FILE; other clients send authorization: Bearer TOKEN",
            )
        value = said[0]
        if len(said) == 1 and isinstance(value, str) and value[: len(BEARER)].lower() == BEARER:
            principal = tokens.find(value[len(BEARER) :].strip())
            if principal is not None:
                return principal
        raise UnauthenticatedError("this token is not known, or has expired", hint="ask whoever keeps the tokens file")


def named_by_certificate(context: grpc.aio.ServicerContext) -> Principal:
    names: Any = context.auth_context().get("x509_common_name", ())
    return replace(ANONYMOUS, name=names[0].decode("utf-8", "replace")) if names else ANONYMOUS
