"""Who makes the call that is being answered: known to whatever runs beneath it, on the loop or on a thread."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from stairwise.platform.security.audit import Audit
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.tokens import Principal

ANONYMOUS = Principal("anonymous", frozenset({TokenScope.ADMIN}))
"""Everybody, where callers are not told apart."""


@dataclass(frozen=True)
class Caller:
    """``max_queries`` None: any number."""

    principal: Principal = ANONYMOUS
    peer: str = ""
    method: str = ""
    max_queries: int | None = None
    audit: Audit = field(default_factory=Audit, repr=False)

    def note(self, what: object = None, error: BaseException | None = None) -> None:
        """Put into the audit log what the caller did, or was refused."""
        self.audit.note(self.principal.name, self.peer, self.method, what, error)


ANYONE = Caller()
CALLER: ContextVar[Caller] = ContextVar("caller", default=ANYONE)
"""Set by ``interceptors.Guard`` for the time of a call."""
