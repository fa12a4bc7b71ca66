"""What can go wrong, as types. Every error says what happened, where, and what to do about it.

They reach the surface as they are: the command line prints them, the services turn them into a gRPC status
with details (``platform.status``). Nothing here knows of either.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StairwiseError(Exception):
    """The base of all errors that are the project's own: ``message`` says what, ``hint`` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class StatementError(StairwiseError):
    """A CQL statement that cannot be understood or makes no sense, with the place that shows it.

    ``line`` and ``column`` count from 1; ``text`` is the offending piece of the statement and ``source_line``
    the whole line it stands in, so that a terminal can point at it.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int,
        column: int,
        text: str = "",
        expected: str = "",
        hint: str = "",
        source_line: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column
        self.text = text
        self.expected = expected
        self.source_line = source_line

    def __str__(self) -> str:
        lines = [f"line {self.line}, column {self.column}: {self.message}"]
        if self.source_line:
            width = max(1, min(len(self.text), len(self.source_line) - self.column + 1))
            lines += [f"  {self.source_line}", "  " + " " * (self.column - 1) + "^" * width]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class NotFoundError(StairwiseError):
    """Something named that does not exist; the hint names the nearest thing that does."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        super().__init__(f"there is no {kind} {name!r}", hint=nearest(name, known, kind))
        self.kind = kind
        self.name = name


class AlreadyExistsError(StairwiseError):
    """Something is created under a name that is taken."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"a {kind} {name!r} exists already", hint=f"DROP {kind.upper()} {name}; or take another name")
        self.kind = kind
        self.name = name


class ConflictError(StairwiseError):
    """A change that the present state does not allow, such as dropping a stream that queries still read."""


class FailedQueryError(ConflictError):
    """A query that operators has set aside; ``token`` is where a subscription goes on once it was restarted."""

    def __init__(self, name: str, reason: str, token: bytes = b"") -> None:
        hint = f"RESTART QUERY {name}; tries again, and the last resume token goes on from there"
        super().__init__(f"query {name!r} has failed: {reason}", hint=hint)
        self.token = token


class GoneError(StairwiseError):
    """Something that was there and is no longer retained; the hint says what still is."""


class ConfigError(StairwiseError):
    """A setting that is missing or wrong, or a machine that lacks what is needed."""


class UnauthenticatedError(StairwiseError):
    """A call without a token, or with one that is not known."""


class PermissionDeniedError(StairwiseError):
    """A call that its token does not allow."""


class NotReadyError(StairwiseError):
    """What is asked for will be there soon: a partition has no owner yet, or one that is still catching up."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message, hint=f"try again in {retry_after:g} s")
        self.retry_after = retry_after


class LimitError(StairwiseError):
    """More at once than the caller may have."""


def nearest(name: str, known: Iterable[str], kind: str) -> str:
    """A hint that names the closest known name, or says which there are."""
    known = list(known)
    folded = {k.lower(): k for k in known}
    match = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if match:
        return f"did you mean {folded[match[0]]!r}?"
    if not known:
        return f"there is no {kind} yet"
    shown = ", ".join(known[:8])
    return f"known: {shown}" + (f" and {len(known) - 8} more" if len(known) > 8 else "")
