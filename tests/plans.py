"""Plans for tests: what the registry would have written for some scripts."""

from __future__ import annotations

from services.windows.draft import draft, drafting, records_of
from stairwise.cql.parser import parse_script
from stairwise.platform.plans import PlanLog
from stairwise.v1 import plans_pb2


def plan_log(*scripts: str) -> PlanLog:
    """A version for each script."""
    log = PlanLog()
    for number, script in enumerate(scripts, 1):
        catalogue = drafting(log.newest)
        drafted = [draft(catalogue, statement) for statement in parse_script(script)]
        log.add(plans_pb2.PlanVersion(number=number, changes=records_of(drafted)))
    return log
