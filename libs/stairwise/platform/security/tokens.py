"""The tokens file: whose token it is and what it allows, by its hash.

```toml
[[token]]
principal = "dashboards"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
scopes = ["read"]
expires = 2027-01-01T00:00:00Z      # optional, as are max_streams and max_queries
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


@dataclass(frozen=True)
class _Entry:
    digest: bytes
    principal: Principal
    expires: datetime.datetime | None


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
            if hmac.compare_digest(entry.digest, digest):
                found = entry
        if found is None or (found.expires is not None and found.expires <= datetime.datetime.now(datetime.UTC)):
            return None
        return found.principal

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
    unknown = sorted(set(said) - {"token"})
    if unknown or not isinstance(said.get("token", []), list):
        raise ConfigError(f"the tokens file {path} holds {unknown or 'token'}", hint="it is a list of [[token]] tables")
    entries = tuple(_entry(path, number, each) for number, each in enumerate(said.get("token", []), 1))
    if len({entry.digest for entry in entries}) < len(entries):
        raise ConfigError(
            f"the tokens file {path} has one sha256 twice", hint="make a token for each by `stairwise token`"
        )
    return entries


def _entry(path: Path, number: int, said: Any) -> _Entry:
    def refuse(what: str, hint: str) -> ConfigError:
        return ConfigError(f"token {number} of {path}: {what}", hint=hint)

    known = {"principal", "sha256", "scopes", "expires", "max_streams", "max_queries"}
    if not isinstance(said, dict) or set(said) - known:
        raise refuse("it has something that a token has not", f"a token has {', '.join(sorted(known))}")
    name, digest, scopes, expires = (said.get(field) for field in ("principal", "sha256", "scopes", "expires"))
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 200:
        raise refuse("principal is missing, or no name", 'such as principal = "dashboards"')
    if not isinstance(digest, str) or len(digest) != 64 or set(digest.lower()) - set("0123456789abcdef"):
        raise refuse("sha256 is missing, or not 64 hexadecimal digits", "`stairwise token` prints it")
    if not isinstance(scopes, list) or any(scope not in list(TokenScope) for scope in scopes):
        raise refuse("scopes is missing, or has an unknown one", f"it is a list of {', '.join(TokenScope)}")
    if expires is not None and (not isinstance(expires, datetime.datetime) or expires.tzinfo is None):
        raise refuse("expires is not a time with a zone", "such as expires = 2027-01-01T00:00:00Z")
    limits = [said.get(field) for field in ("max_streams", "max_queries")]
    if any(limit is not None and (type(limit) is not int or limit < 0) for limit in limits):
        raise refuse("max_streams or max_queries is not a number from 0 on", "leave it out for the server's setting")
    principal = Principal(name, frozenset(map(TokenScope, scopes)), *limits)
    return _Entry(bytes.fromhex(digest), principal, expires)
