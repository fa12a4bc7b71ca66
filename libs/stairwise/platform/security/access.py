"""Whether a call is let in, and as whom."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from stairwise.errors import PermissionDeniedError, UnauthenticatedError
from stairwise.platform.security.caller import ANONYMOUS
from stairwise.platform.security.scopes import METHODS
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import Principal, TokensFile

AUTHORIZATION = "authorization"
BEARER = "bearer "
UNKNOWN = Principal("unknown", frozenset())
"""Whoever shows nothing by which the server knows it."""

Metadata = Iterable[tuple[str, str | bytes]]


class Access:
    """The decisions of one server."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tokens = TokensFile(security.tokens) if security.tokens is not None else None

    @property
    def is_asking(self) -> bool:
        """Are callers told apart? Otherwise everybody may do everything."""
        return self._tokens is not None or self._security.client_ca is not None

    def decides_early(self, metadata: Metadata) -> bool:
        """Is it known before a call begins who makes it? A certificate is only seen once it has begun."""
        return self._security.client_ca is None or any(key == AUTHORIZATION for key, _ in metadata)

    def admit(self, method: str, metadata: Metadata, certificate: str = "") -> Principal:
        """Who calls, if they may call the method; raises what says why not."""
        rule = METHODS.get(method)
        if not self.is_asking or (rule is not None and rule.is_open):
            return ANONYMOUS
        principal = self.principal(metadata, certificate)
        if rule is None:
            raise PermissionDeniedError(
                f"nobody may call {method}", hint="it has no scope: that is a fault of the server"
            )
        if not rule.admits(principal.scopes):
            raise PermissionDeniedError(
                f"{principal.name} may not call {method.rpartition('/')[2]}: it needs the scope "
                + " or ".join(sorted(rule.scopes)),
                hint=f"it has {', '.join(sorted(principal.scopes))}"
                if principal.scopes
                else "it has none: STAIRWISE_TOKENS_FILE says who has which",
            )
        return principal

    def principal(self, metadata: Metadata, certificate: str = "") -> Principal:
        """Who calls: by the token, or, where none is sent, by the certificate. Without a file nobody has a scope."""
        said = [value for key, value in metadata if key == AUTHORIZATION]
        if not said and certificate:
            named = None if self._tokens is None else self._tokens.find_certificate(certificate)
            return Principal(certificate, frozenset()) if named is None else named
        if not said:
            raise UnauthenticatedError(
                "this server asks for a token",
                hint="--token-file or STAIRWISE_TOKEN_FILE; other clients send authorization: Bearer TOKEN",
            )
        value = said[0]
        if len(said) == 1 and isinstance(value, str) and value[: len(BEARER)].lower() == BEARER:
            principal = None if self._tokens is None else self._tokens.find(value[len(BEARER) :].strip())
            if principal is not None:
                return principal
        raise UnauthenticatedError("this token is not known, or has expired", hint="ask whoever keeps the tokens file")

    def max_queries(self, principal: Principal) -> int | None:
        """How many queries it may have registered; None: any number."""
        return self._limit(principal, principal.max_queries, self._security.max_queries)

    def max_streams(self, principal: Principal) -> int | None:
        """How many streaming calls it may have open; None: any number."""
        return self._limit(principal, principal.max_streams, self._security.max_streams)

    @staticmethod
    def _limit(principal: Principal, own: int | None, general: int) -> int | None:
        if not principal.is_limited:
            return None
        return general if own is None else own


def certified_name(context: grpc.aio.ServicerContext) -> str:
    """The common name in the client's certificate, which TLS has verified; empty where it showed none."""
    names = context.auth_context().get("x509_common_name", ())
    return names[0].decode("utf-8", "replace") if names else ""
