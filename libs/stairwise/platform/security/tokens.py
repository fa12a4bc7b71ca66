"""The tokens file: whose token it is and what it allows, by its hash; and whom a client's certificate names.

```toml
[[token]]
principal = "dashboards"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
scopes = ["read"]
expires = 2027-01-01T00:00:00Z      # optional, as are max_streams and max_queries

[[certificate]]                     # of mutual TLS: a client that sends no token is known by its certificate
name = "reports"                    # the certificate's common name
principal = "dashboards"
scopes = ["read"]
```

Tokens are random numbers of 256 bits (`stairwise token` makes them), so a plain hash gives nothing away. The file is
read again when it has changed; one that has become unreadable is complained about, and what was read before holds.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import logging
import secrets
import threading
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stairwise.errors import ConfigError
from stairwise.platform.security.scopes import TokenScope

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""How often the file is looked at, in seconds."""
LONGEST_NAME = 200
PREFIX = "sw_"
"""By which people and scanners know a token when they see one."""


@dataclass(frozen=True)
class Principal:
    """Who calls, what they may do, and how much of it; None: as much as the server's settings say."""

    name: str
    scopes: frozenset[TokenScope]
    max_streams: int | None = None
    max_queries: int | None = None

    @property
    def is_limited(self) -> bool:
        return TokenScope.ADMIN not in self.scopes

    @property
    def is_service(self) -> bool:
        """Is it one of the system's own services?"""
        return TokenScope.SERVICE in self.scopes


@dataclass(frozen=True)
class _Entry:
    key: bytes | str
    """The hash of a token, or the common name in a certificate."""
    principal: Principal
    expires: datetime.datetime | None

    @property
    def is_expired(self) -> bool:
        return self.expires is not None and self.expires <= datetime.datetime.now(datetime.UTC)


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """How a token stands in the file."""
    return hashlib.sha256(token.encode()).hexdigest()


class TokensFile:
    """The tokens of a file, kept up to date. Any thread may ask."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._mark = self._look()
        self._entries = read(path)
        self._looked = clock()

    def find(self, token: str) -> Principal | None:
        """Whose token it is; None if it is nobody's, or has expired.

        All entries are compared, and each in constant time: how long it takes says nothing about the token.
        """
        digest = hashlib.sha256(token.encode()).digest()
        found: _Entry | None = None
        for entry in self._current():
            if isinstance(entry.key, bytes) and hmac.compare_digest(entry.key, digest):
                found = entry
        return None if found is None or found.is_expired else found.principal

    def find_certificate(self, name: str) -> Principal | None:
        """Whose certificate it is; None if the file does not name it, or no longer."""
        found = next((entry for entry in self._current() if entry.key == name), None)
        return None if found is None or found.is_expired else found.principal

    def _current(self) -> tuple[_Entry, ...]:
        with self._lock:
            now = self._clock()
            if now - self._looked >= LOOK_EVERY:
                self._looked = now
                mark = self._look()
                if mark != self._mark:
                    self._mark = mark
                    self._reload()
            return self._entries

    def _reload(self) -> None:
        try:
            self._entries = read(self._path)
        except ConfigError as error:
            log.error("the tokens as they were before still hold: %s", error)
        else:
            log.info("%d tokens read from %s", len(self._entries), self._path)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def read(path: Path) -> tuple[_Entry, ...]:
    """All entries of a file; what is wrong in it is named."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the tokens file {path} cannot be read: {error}") from error
    unknown = sorted(set(said) - {"token", "certificate"})
    if unknown or not all(isinstance(tables, list) for tables in said.values()):
        raise ConfigError(
            f"the tokens file {path} holds {unknown or 'a table that is no list'}",
            hint="it is a list of [[token]] and [[certificate]] tables",
        )
    entries = tuple(
        _entry(path, kind, number, each)
        for kind in ("token", "certificate")
        for number, each in enumerate(said.get(kind, []), 1)
    )
    if len({entry.key for entry in entries}) < len(entries):
        raise ConfigError(
            f"the tokens file {path} has one sha256, or one name, twice",
            hint="make a token for each by `stairwise token`",
        )
    return entries


def _entry(path: Path, kind: str, number: int, said: Any) -> _Entry:
    def refuse(what: str, hint: str) -> ConfigError:
        return ConfigError(f"{kind} {number} of {path}: {what}", hint=hint)

    own = "sha256" if kind == "token" else "name"
    known = {"principal", own, "scopes", "expires", "max_streams", "max_queries"}
    if not isinstance(said, dict) or set(said) - known:
        raise refuse(f"it has something that a {kind} has not", f"a {kind} has {', '.join(sorted(known))}")
    name, key, scopes, expires = (said.get(field) for field in ("principal", own, "scopes", "expires"))
    if not _is_name(name):
        raise refuse("principal is missing, or no name", 'such as principal = "dashboards"')
    if kind == "certificate" and not _is_name(key):
        raise refuse("name is missing, or no name", "it is the common name (CN) of the certificate's subject")
    if kind == "token" and (not isinstance(key, str) or len(key) != 64 or set(key.lower()) - set("0123456789abcdef")):
        raise refuse("sha256 is missing, or not 64 hexadecimal digits", "`stairwise token` prints it")
    if not isinstance(scopes, list) or any(scope not in list(TokenScope) for scope in scopes):
        raise refuse("scopes is missing, or has an unknown one", f"it is a list of {', '.join(TokenScope)}")
    if expires is not None and (not isinstance(expires, datetime.datetime) or expires.tzinfo is None):
        raise refuse("expires is not a time with a zone", "such as expires = 2027-01-01T00:00:00Z")
    limits = [said.get(field) for field in ("max_streams", "max_queries")]
    if any(limit is not None and (type(limit) is not int or limit < 0) for limit in limits):
        raise refuse("max_streams or max_queries is not a number from 0 on", "leave it out for the server's setting")
    principal = Principal(str(name), frozenset(map(TokenScope, scopes)), *limits)
    return _Entry(bytes.fromhex(str(key)) if kind == "token" else str(key), principal, expires)


def _is_name(said: object) -> bool:
    return isinstance(said, str) and said.isprintable() and 0 < len(said) <= LONGEST_NAME
