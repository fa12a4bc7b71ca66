"""What a server is told about security."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform import variables

PATHS = (
    "STAIRWISE_TLS_CERT",
    "STAIRWISE_TLS_KEY",
    "STAIRWISE_TLS_CLIENT_CA",
    "STAIRWISE_TOKENS_FILE",
    "STAIRWISE_AUDIT_FILE",
)
"""The variables that are paths: a service may run in another directory than the one they were typed in."""


@dataclass(frozen=True)
class Security:
    """The security of one server process; the default is none, for loopback."""

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None
    insecure: bool = False
    audit: Path | None = None
    max_request_bytes: int = 8 << 20
    max_streams: int = 1_000
    max_queries: int = 10_000
    max_calls: int = 8
    max_waiting: int = 100

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Security:
        audit = variables.text(environ, "STAIRWISE_AUDIT_FILE", "")
        security = cls(
            certificate=variables.file(environ, "STAIRWISE_TLS_CERT"),
            key=variables.file(environ, "STAIRWISE_TLS_KEY"),
            client_ca=variables.file(environ, "STAIRWISE_TLS_CLIENT_CA"),
            tokens=variables.file(environ, "STAIRWISE_TOKENS_FILE"),
            insecure=variables.flag(environ, "STAIRWISE_INSECURE"),
            audit=Path(audit).absolute() if audit else None,
            max_request_bytes=variables.integer(
                environ, "STAIRWISE_MAX_REQUEST_BYTES", cls.max_request_bytes, lowest=1024, highest=1 << 30
            ),
            max_streams=variables.integer(
                environ, "STAIRWISE_MAX_STREAMS", cls.max_streams, lowest=1, highest=1_000_000
            ),
            max_queries=variables.integer(
                environ, "STAIRWISE_MAX_QUERIES", cls.max_queries, lowest=1, highest=10_000_000
            ),
            max_calls=variables.integer(environ, "STAIRWISE_MAX_CALLS", cls.max_calls, lowest=1, highest=10_000),
            max_waiting=variables.integer(
                environ, "STAIRWISE_MAX_WAITING", cls.max_waiting, lowest=0, highest=1_000_000
            ),
        )
        if (security.certificate is None) != (security.key is None):
            missing = "STAIRWISE_TLS_KEY" if security.key is None else "STAIRWISE_TLS_CERT"
            raise ConfigError(f"TLS needs a certificate and its key: {missing} is not set", hint="set both, or none")
        if security.client_ca is not None and security.certificate is None:
            raise ConfigError(
                "STAIRWISE_TLS_CLIENT_CA asks clients for certificates, but the server has none itself",
                hint="set STAIRWISE_TLS_CERT and STAIRWISE_TLS_KEY",
            )
        return security

    @property
    def has_tls(self) -> bool:
        return self.certificate is not None

    def check_listening(self, listen: str) -> None:
        """Refuse to listen where others can hear and speak, unless by TLS or told so."""
        if self.has_tls or self.insecure or is_loopback(listen):
            return
        _, port = variables.host_and_port(listen)
        raise ConfigError(
            f"refusing to listen on {listen} without TLS: anyone who reaches it could read and define everything",
            hint="set STAIRWISE_TLS_CERT=FILE and STAIRWISE_TLS_KEY=FILE; or keep to this machine by "
            f"STAIRWISE_LISTEN=127.0.0.1:{port}; or, on a network that you trust, set STAIRWISE_INSECURE=yes",
        )


OFF = Security()
"""No TLS and no tokens: for loopback alone."""


def is_loopback(address: str) -> bool:
    """Does ``host:port`` stay on this machine? A name other than localhost may mean anything."""
    host, _ = variables.host_and_port(address)
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
