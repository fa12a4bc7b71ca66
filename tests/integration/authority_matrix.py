"""Every method, as every kind of principal calls it: what to say so that only authority decides, and how it ends.

All is about one stream and one query of the principal ``owner``. What a call drops is made for that call alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from stairwise.platform.channels import Credentials, channel
from stairwise.v1 import lookups_pb2, registry_pb2, results_pb2
from tests.unit.platform.secured_servers import entry

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
KINDS = ("none", "expired", "read", "publish", "define", "other", "granted", "owner", "service", "admin")
STREAM, QUERY = "held", "held_keys"
DECLARATIONS = f"""
    CREATE STREAM {STREAM} (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITIONS 1;
    CREATE QUERY {QUERY} AS SELECT k, COUNT(*) AS n FROM {STREAM} [RANGE 10 SECONDS SLIDE 1 SECOND]
      GROUP BY k HAVING COUNT(*) > 0 EMIT CHANGES USING LOOKUPS;
    GRANT READ, PUBLISH, DEFINE, DROP ON STREAM {STREAM}, QUERY {QUERY} TO granted;
"""
LOOKUP = f"SELECT COUNT(*) AS n FROM {STREAM} [RANGE 10 SECONDS]"
METHOD = re.compile(r"^\| `(/\S+)` \|(.+)\|$", re.MULTILINE)


def tokens() -> str:
    """Entries of the tokens file: the token of a principal is its name. All but the admin are of equal standing."""
    every = ["read", "publish", "define"]
    scopes = {scope: [scope] for scope in (*every, "service")} | dict.fromkeys(("other", "granted", "owner"), every)
    return "".join(entry(name, allowed) for name, allowed in scopes.items()) + entry(
        "expired", ["admin"], "expires = 2020-01-01T00:00:00Z"
    )


def doomed() -> str:
    """For each kind of principal a stream and a query of the owner's that it is to drop."""
    made = ""
    for kind in KINDS:
        made += f"CREATE STREAM doomed_{kind} (ts TIMESTAMP) TIMESTAMP BY ts PARTITIONS 1;"
        made += f"CREATE QUERY doomed_query_{kind} AS SELECT ts FROM {STREAM};"
        made += f"GRANT DROP ON STREAM doomed_{kind}, QUERY doomed_query_{kind} TO granted;"
    return made


def printed() -> dict[str, dict[str, grpc.StatusCode]]:
    """The table of the security page: by method and kind of principal, how a call ends."""
    found = {}
    for method, cells in METHOD.findall(PAGE.read_text(encoding="utf-8")):
        codes = [grpc.StatusCode[cell.strip()] for cell in cells.split("|")]
        found[method] = dict(zip(KINDS, codes, strict=True))
    return found


@dataclass(frozen=True)
class Saying:
    """A call of a method: to which service, and with what."""

    service: str
    request: Message
    is_stream: bool = False


def sayings(kind: str) -> Mapping[str, Saying]:
    """What a principal says to each method."""
    declared = f"CREATE STREAM made_by_{kind} (ts TIMESTAMP) TIMESTAMP BY ts PARTITIONS 1"
    select = f"SELECT COUNT(*) AS n FROM {STREAM} [TUMBLE 1 SECOND]"
    part = lookups_pb2.PartRequest(
        step=lookups_pb2.PartRequest.STEP_WATERMARK, stream=STREAM, incarnation=1, partitions=[0]
    )
    registry = {
        "Execute": registry_pb2.ExecuteRequest(script=f"ALTER STREAM {STREAM} SET LATENESS 1s"),
        "CreateStream": registry_pb2.CreateStreamRequest(statement=declared),
        "DropStream": registry_pb2.DropStreamRequest(name=f"doomed_{kind}"),
        "ListStreams": registry_pb2.ListStreamsRequest(),
        "CreateQuery": registry_pb2.CreateQueryRequest(name=f"query_of_{kind}", text=select),
        "DropQuery": registry_pb2.DropQueryRequest(name=f"doomed_query_{kind}"),
        "ListQueries": registry_pb2.ListQueriesRequest(),
        "Explain": registry_pb2.ExplainRequest(query=QUERY),
        "Status": registry_pb2.StatusRequest(query=QUERY),
    }
    lookups = {
        "Owners": lookups_pb2.OwnersRequest(stream=STREAM),
        "Lookup": lookups_pb2.LookupRequest(select=LOOKUP),
        "LookupMany": lookups_pb2.LookupManyRequest(lookups=[lookups_pb2.ManyItem(select=LOOKUP)]),
        "Part": part,
    }
    reflecting = reflection_pb2.ServerReflectionRequest(list_services="")
    return (
        {f"/stairwise.v1.Registry/{name}": Saying("registry", request) for name, request in registry.items()}
        | {f"/stairwise.v1.Lookups/{name}": Saying("lookups", request) for name, request in lookups.items()}
        | {
            "/stairwise.v1.Results/Subscribe": Saying(
                "results", results_pb2.SubscribeRequest(query=QUERY, earliest=results_pb2.Earliest()), is_stream=True
            ),
            "/stairwise.v1.Results/Snapshot": Saying("results", results_pb2.SnapshotRequest(query=QUERY)),
            "/grpc.health.v1.Health/Check": Saying("registry", health_pb2.HealthCheckRequest()),
            "/grpc.health.v1.Health/Watch": Saying("registry", health_pb2.HealthCheckRequest(), is_stream=True),
            "/grpc.health.v1.Health/List": Saying("registry", health_pb2.HealthListRequest()),
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Saying(
                "registry", reflecting, is_stream=True
            ),
        }
    )


def call(address: str, credentials: Credentials, method: str, saying: Saying) -> grpc.StatusCode:
    """How a call ends; of a stream, whether it begins."""
    request = saying.request.SerializeToString()
    with channel(address, credentials) as connection:
        try:
            if "Reflection" in method:
                next(connection.stream_stream(method)(_once(request), timeout=30))
            elif saying.is_stream:
                answers = connection.unary_stream(method)(request, timeout=30)
                next(answers)
                answers.cancel()
            else:
                connection.unary_unary(method)(request, timeout=30)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def _once(request: bytes) -> Iterator[bytes]:
    yield request
