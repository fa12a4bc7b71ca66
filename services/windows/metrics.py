"""What the registry tells of the plans: how many streams and queries there are, and how far they share.

    queries ──signature──▶ stairs ──subsumption──▶ groups, each a chain of windows ──▶ steps

A stair serves all queries of one signature, so queries per stair is what sharing saves; the nested sets of DISTINCT
count as one, too, and so do the joined rows of joins, which form no groups. Counted when asked for, once for each plan
version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from opentelemetry.metrics import CallbackOptions, Observation

from stairwise.algebra.query import Query, Select
from stairwise.operators.due import frames_of
from stairwise.platform import telemetry
from stairwise.subsumption.grouping import WindowGroups
from stairwise.windows.spec import MultiWindow, TimeWindow
from stairwise.wire.failures import Failure
from stairwise.wire.plans import PlanCatalogue


@dataclass(frozen=True)
class Census:
    """The plans in figures. ``alone`` is the number of queries that have no signature, and so no stair."""

    version: int
    streams: int
    queries: int
    alone: int
    stairs: int
    groups: int
    steps: int
    widest: int
    """The most queries on one stair."""


def census(catalogue: PlanCatalogue) -> Census:
    stairs: defaultdict[str, dict[str, TimeWindow]] = defaultdict(dict)
    queries_on: defaultdict[str, int] = defaultdict(int)
    for registered in catalogue.queries.values():
        if registered.shared is not None:
            queries_on[registered.signature] += 1
            stairs[registered.signature].update(_windows(registered.query))
    groups = [group for windows in stairs.values() for group in WindowGroups.of(windows).groups]
    return Census(
        version=catalogue.version,
        streams=len(catalogue.streams),
        queries=len(catalogue.queries),
        alone=len(catalogue.queries) - sum(queries_on.values()),
        stairs=len(stairs),
        groups=len(groups),
        steps=sum(len(group.chain) for group in groups),
        widest=max(queries_on.values(), default=0),
    )


def _windows(query: Query) -> dict[str, TimeWindow]:
    """The windows of a query that has a signature: one, or one for each level; none of a join."""
    assert isinstance(query.relation, Select)
    if len(query.relation.inputs) > 1:
        return {}
    window = query.relation.inputs[0].window
    assert isinstance(window, TimeWindow | MultiWindow)
    return {
        f"{query.name}/{level}": TimeWindow(frame.range, frame.slide, frame.lag, frame.offset)
        for level, frame in enumerate(frames_of(window))
    }


def watch(newest: Callable[[], PlanCatalogue], failed: Callable[[], Mapping[str, Failure]]) -> None:
    """Report the newest plans, and the queries that were set aside, whenever metrics are collected."""

    @lru_cache(maxsize=1)
    def at(version: int) -> Census:
        return census(newest())

    def gauge(name: str, unit: str, what: str, read: Callable[[Census], Iterable[Observation]]) -> None:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return read(at(newest().version))

        telemetry.meter.create_observable_gauge(f"stairwise.windows.{name}", [observe], unit, what)

    gauge("plan.version", "1", "the newest plan version", lambda c: [Observation(c.version)])
    gauge("streams", "{stream}", "declared streams", lambda c: [Observation(c.streams)])
    gauge(
        "queries",
        "{query}",
        "registered queries, on a stair or alone",
        lambda c: [
            Observation(c.queries - c.alone, {"sharing": "stair"}),
            Observation(c.alone, {"sharing": "alone"}),
        ],
    )
    gauge("stairs", "{stair}", "signatures that queries share", lambda c: [Observation(c.stairs)])
    gauge("groups", "{group}", "chains of nested windows, over all stairs", lambda c: [Observation(c.groups)])
    gauge("steps", "{step}", "windows that hold state, over all stairs", lambda c: [Observation(c.steps)])

    def observe_failed(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(1, {"query": name, "reason": failure.reason}) for name, failure in failed().items()]

    telemetry.meter.create_observable_gauge(
        "stairwise.windows.query.failed", [observe_failed], "1", "1 for each query that operators has set aside"
    )
    gauge("stair.queries.max", "{query}", "queries of the widest stair", lambda c: [Observation(c.widest)])
