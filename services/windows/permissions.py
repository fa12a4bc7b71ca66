"""What a caller may say: the scope that each statement needs, and how many queries a caller may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stairwise.cql import ast
from stairwise.errors import LimitError, PermissionDeniedError
from stairwise.platform.security.access import ANONYMOUS
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.tokens import Principal
from stairwise.v1.plans_pb2 import Change


@dataclass(frozen=True)
class Caller:
    """Who sends a script; ``max_queries`` None: any number."""

    principal: Principal = ANONYMOUS
    max_queries: int | None = None

    def check_scopes(self, statements: Iterable[ast.Statement]) -> None:
        """Refuse a script with a statement that the caller may not say."""
        scopes = self.principal.scopes
        for statement in statements:
            needed = needed_for(statement)
            if not ({TokenScope.ADMIN, *needed} & scopes):
                raise PermissionDeniedError(
                    f"{self.principal.name} may not say {_verb(statement)}: it needs the scope "
                    + " or ".join(sorted(needed)),
                    hint=f"this token has {', '.join(sorted(scopes))}",
                )

    def own(self, changes: Sequence[Change], owners: Mapping[str, str]) -> dict[str, str]:
        """The owners of all queries after the changes, which are marked as the caller's; refuses too many."""
        after = dict(owners)
        created = 0
        for change in changes:
            match change.WhichOneof("change"):
                case "create_query":
                    change.create_query.owner = self._owner
                    after[change.create_query.name] = self._owner
                    created += 1
                case "drop_query":
                    after.pop(change.drop_query.name, None)
        if created and self.max_queries is not None:
            count = sum(owner == self._owner for owner in after.values())
            if count > self.max_queries:
                raise LimitError(
                    f"{self.principal.name} would have {count} queries, and may have {self.max_queries}",
                    hint="drop some, or raise max_queries of the token",
                )
        return after

    @property
    def _owner(self) -> str:
        return "" if self.principal == ANONYMOUS else self.principal.name


def needed_for(statement: ast.Statement) -> frozenset[TokenScope]:
    """Any one of these scopes."""
    match statement:
        case ast.SealStream() | ast.SealTable():
            return frozenset({TokenScope.PUBLISH, TokenScope.DEFINE})
        case ast.Explain():
            return frozenset({TokenScope.READ, TokenScope.DEFINE})
        case _:
            return frozenset({TokenScope.DEFINE})


def _verb(statement: ast.Statement) -> str:
    """CREATE STREAM, SEAL STREAM and so on; a bare SELECT registers a query."""
    if isinstance(statement, ast.SelectStatement):
        return "SELECT"
    name = type(statement).__name__
    return "".join(f" {c}" if c.isupper() else c for c in name).strip().upper()
