"""Plans for tests: what the registry would have written for some scripts."""

from __future__ import annotations

from services.windows.draft import draft, drafting, records_of
from stairwise.algebra.query import Query
from stairwise.cql.parser import parse_script
from stairwise.v1 import plans_pb2
from stairwise.wire.plans import PlanLog


def plan_log(*scripts: str, partitions: int | None = None) -> PlanLog:
    """A version for each script; streams and tables have the partitions that they say, or so many."""
    log = PlanLog()
    for number, script in enumerate(scripts, 1):
        catalogue = drafting(log.newest)
        records = records_of([draft(catalogue, statement) for statement in parse_script(script)])
        for record in records:
            if partitions is not None and record.HasField("create_stream"):
                record.create_stream.stream.partitions = partitions
        log.add(plans_pb2.PlanVersion(number=number, changes=records))
    return log


def as_script(declarations: str, query: Query) -> str:
    """A registered query as it was written, behind the declarations of its streams."""
    return f"{declarations}; CREATE QUERY {query.name} AS {query.text}"
