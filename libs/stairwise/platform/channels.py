"""Connections to the gRPC servers: TLS, a certificate of one's own, a bearer token, as the credentials say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from stairwise.errors import ConfigError
from stairwise.platform import variables
from stairwise.platform.security.access import AUTHORIZATION
from stairwise.platform.security.settings import is_loopback
from stairwise.platform.security.tls import read_pem

PATHS = (
    "STAIRWISE_TLS_CA",
    "STAIRWISE_TLS_CLIENT_CERT",
    "STAIRWISE_TLS_CLIENT_KEY",
    "STAIRWISE_TOKEN_FILE",
)
"""The variables that are paths."""

Options = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Credentials:
    """How a client shows who it is, and knows whom it talks to. Nothing of it: plain connections without a token."""

    ca: Path | None = None
    """The authority of the servers' certificates; with it, TLS is spoken."""
    certificate: Path | None = None
    key: Path | None = None
    token: str | None = field(default=None, repr=False)
    server_name: str | None = None
    """What the servers' certificates are checked for, where it is not the host of their address."""
    insecure: bool = False
    """May the token go over a network in the clear?"""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Credentials:
        credentials = cls(
            ca=variables.file(environ, "STAIRWISE_TLS_CA"),
            certificate=variables.file(environ, "STAIRWISE_TLS_CLIENT_CERT"),
            key=variables.file(environ, "STAIRWISE_TLS_CLIENT_KEY"),
            token=variables.secret(environ, "STAIRWISE_TOKEN"),
            server_name=variables.text(environ, "STAIRWISE_TLS_SERVER_NAME", "") or None,
            insecure=variables.flag(environ, "STAIRWISE_INSECURE"),
        )
        if (credentials.certificate is None) != (credentials.key is None):
            raise ConfigError(
                "a client certificate needs its key, and a key its certificate",
                hint="set STAIRWISE_TLS_CLIENT_CERT and STAIRWISE_TLS_CLIENT_KEY, or neither",
            )
        if credentials.certificate is not None and credentials.ca is None:
            raise ConfigError(
                "a client certificate is for TLS, which needs the authority of the servers",
                hint="set STAIRWISE_TLS_CA, or give --tls-ca",
            )
        return credentials


NONE = Credentials()


def channel(address: str, credentials: Credentials = NONE, options: Options = ()) -> grpc.Channel:
    """A channel of the synchronous kind."""
    _check(address, credentials)
    if credentials.ca is not None:
        return grpc.secure_channel(address, _channel_credentials(credentials), _options(credentials, options))
    plain = grpc.insecure_channel(address, options=_options(credentials, options))
    return grpc.intercept_channel(plain, _Bearer(credentials.token)) if credentials.token is not None else plain


def aio_channel(address: str, credentials: Credentials = NONE, options: Options = ()) -> grpc.aio.Channel:
    """A channel of the asyncio kind."""
    _check(address, credentials)
    given = _options(credentials, options)
    if credentials.ca is not None:
        return grpc.aio.secure_channel(address, _channel_credentials(credentials), options=given)
    bearers = [kind(credentials.token) for kind in _AIO_BEARERS] if credentials.token is not None else []
    return grpc.aio.insecure_channel(address, options=given, interceptors=bearers)


def _check(address: str, credentials: Credentials) -> None:
    if credentials.token is None or credentials.ca is not None or credentials.insecure or is_loopback(address):
        return
    raise ConfigError(
        f"the token would go to {address} in the clear",
        hint="--tls-ca FILE or STAIRWISE_TLS_CA speaks TLS; on a network that you trust, set STAIRWISE_INSECURE=yes",
    )


def _options(credentials: Credentials, options: Options) -> list[tuple[str, Any]]:
    name = credentials.server_name
    return [*options, *([("grpc.ssl_target_name_override", name)] if name is not None else [])]


def _channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    assert credentials.ca is not None
    own = (read_pem(p) if p is not None else None for p in (credentials.key, credentials.certificate))
    secured = grpc.ssl_channel_credentials(read_pem(credentials.ca), *own)
    if credentials.token is None:
        return secured
    return grpc.composite_channel_credentials(secured, grpc.access_token_call_credentials(credentials.token))


@dataclass
class _Details:
    """A call's details, which gRPC reads by attribute."""

    method: Any
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any = None


def _with_token(details: Any, token: str) -> _Details:
    return _Details(
        details.method,
        details.timeout,
        [*(details.metadata or ()), (AUTHORIZATION, f"Bearer {token}")],
        details.credentials,
        details.wait_for_ready,
        getattr(details, "compression", None),
    )


class _Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """The token on a plain connection: gRPC's own credentials go over TLS alone."""

    def __init__(self, token: str) -> None:
        self._token = token

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        return continuation(_with_token(details, self._token), request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        return continuation(_with_token(details, self._token), request)


class _AioBearer:
    def __init__(self, token: str) -> None:
        self._token = token

    def _bearing(self, details: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()))
        metadata.add(AUTHORIZATION, f"Bearer {self._token}")
        return details._replace(metadata=metadata)


class _AioUnary(_AioBearer, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        return await continuation(self._bearing(details), request)


class _AioStream(_AioBearer, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        return await continuation(self._bearing(details), request)


_AIO_BEARERS = (_AioUnary, _AioStream)
