"""A server's TLS: certificates that are read again when they were replaced, without a restart."""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path

import grpc

from stairwise.errors import ConfigError
from stairwise.platform.security.settings import Security

log = logging.getLogger(__name__)


def server_credentials(security: Security) -> grpc.ServerCredentials:
    """For ``add_secure_port``; with a client authority, clients without a certificate of it are not let in."""
    rotating = _Rotating(security)
    return grpc.dynamic_ssl_server_credentials(
        rotating.first, rotating.newer, require_client_authentication=security.client_ca is not None
    )


def read_pem(path: Path) -> bytes:
    try:
        held = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if b"-----BEGIN " not in held:
        raise ConfigError(f"{path} is not a PEM file", hint="it begins with -----BEGIN, as openssl writes it")
    return held


class _Rotating:
    """gRPC asks before each handshake whether there is a newer certificate."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._lock = threading.Lock()
        self._held: tuple[bytes, bytes, bytes | None] | None = None
        self._held = self._read()
        self.first = _configuration(*self._held)

    def newer(self) -> grpc.ServerCertificateConfiguration | None:
        with self._lock:
            try:
                held = self._read()
            except ConfigError as error:
                log.error("the certificate as it was before still holds: %s", error)
                return None
            if held == self._held:
                return None
            self._held = held
            log.info("the certificate in %s was replaced", self._security.certificate)
            return _configuration(*held)

    def _read(self) -> tuple[bytes, bytes, bytes | None]:
        assert self._security.certificate is not None
        assert self._security.key is not None
        authority = read_pem(self._security.client_ca) if self._security.client_ca is not None else None
        held = read_pem(self._security.key), read_pem(self._security.certificate), authority
        if held != self._held:
            _check_pair(self._security.certificate, self._security.key)
        return held


def _check_pair(certificate: Path, key: Path) -> None:
    """gRPC itself would only fail the handshakes, without a word about why."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise ConfigError(f"{key} is not the key to the certificate {certificate}: {error}") from error


def _configuration(key: bytes, chain: bytes, authority: bytes | None) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=authority)
