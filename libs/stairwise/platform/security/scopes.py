"""The table of all methods: what a token must allow for each, and how its refusals reach the audit log.

| scope | allows |
|---|---|
| read | listing, explaining and status, subscribing, snapshots, lookups |
| define | creating and dropping streams and queries; sealing |
| publish | listing streams, and sealing them: what a publisher asks the registry. The rows go to Kafka, which decides |
| service | what the services ask of each other |
| admin | everything, to everything, without limits |

A scope says what kind of thing may be done; to which streams and queries, their owners and grants say
(``wire.authority``). A method that is not in the table is refused to everyone, so a new one is not open by oversight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class TokenScope(StrEnum):
    READ = "read"
    DEFINE = "define"
    PUBLISH = "publish"
    SERVICE = "service"
    ADMIN = "admin"


@dataclass(frozen=True)
class AccessRule:
    """Any one of the scopes is enough; ``admin`` always is. An open method asks for no token.

    Of a method that ``notes_itself``, the statements go to the audit log as they were executed, refused ones too; of
    the others, calls that were refused.
    """

    scopes: frozenset[TokenScope]
    is_open: bool = False
    notes_itself: bool = False

    def admits(self, scopes: frozenset[TokenScope]) -> bool:
        return self.is_open or TokenScope.ADMIN in scopes or bool(self.scopes & scopes)


def _any_of(*scopes: TokenScope) -> AccessRule:
    return AccessRule(frozenset(scopes))


def _stating(*scopes: TokenScope) -> AccessRule:
    return AccessRule(frozenset(scopes), notes_itself=True)


_OPEN = AccessRule(frozenset(), is_open=True)
_REGISTRY, _RESULTS, _LOOKUPS = (f"/stairwise.v1.{service}" for service in ("Registry", "Results", "Lookups"))

METHODS: Mapping[str, AccessRule] = {
    # The registry decides statement by statement: a publisher may SEAL, a reader EXPLAIN.
    f"{_REGISTRY}/Execute": _stating(TokenScope.DEFINE, TokenScope.PUBLISH, TokenScope.READ),
    f"{_REGISTRY}/CreateStream": _stating(TokenScope.DEFINE),
    f"{_REGISTRY}/DropStream": _stating(TokenScope.DEFINE),
    f"{_REGISTRY}/CreateQuery": _stating(TokenScope.DEFINE),
    f"{_REGISTRY}/DropQuery": _stating(TokenScope.DEFINE),
    f"{_REGISTRY}/ListStreams": _any_of(TokenScope.READ, TokenScope.DEFINE, TokenScope.PUBLISH),
    f"{_REGISTRY}/ListQueries": _any_of(TokenScope.READ, TokenScope.DEFINE),
    f"{_REGISTRY}/Explain": _stating(TokenScope.READ, TokenScope.DEFINE),
    f"{_REGISTRY}/Status": _any_of(TokenScope.READ, TokenScope.DEFINE),
    f"{_RESULTS}/Subscribe": _any_of(TokenScope.READ),
    f"{_RESULTS}/Snapshot": _any_of(TokenScope.READ),
    f"{_LOOKUPS}/Owners": _any_of(TokenScope.READ),
    f"{_LOOKUPS}/Lookup": _any_of(TokenScope.READ),
    f"{_LOOKUPS}/LookupMany": _any_of(TokenScope.READ),
    f"{_LOOKUPS}/Part": _any_of(TokenScope.SERVICE),
    # A probe has no token, and learns nothing but that the service is well.
    "/grpc.health.v1.Health/Check": _OPEN,
    "/grpc.health.v1.Health/Watch": _OPEN,
    "/grpc.health.v1.Health/List": _OPEN,
    # Reflection tells of methods, not of streams.
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _any_of(*TokenScope),
}
