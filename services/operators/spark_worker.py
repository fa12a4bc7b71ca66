"""What a Python worker of Spark keeps between calls: the plans, its telemetry, and memory that it will need again."""

from __future__ import annotations

import gc

from stairwise.platform import memory, telemetry
from stairwise.wire.plans import PlanLog, PlanReader

_readers: dict[str, PlanReader] = {}
_settled: dict[str, int] = {}
"""Up to which version plans are settled."""
_unsettled: set[str] = set()
_started: set[str] = set()
KEPT_BYTES = 256 << 20
"""How much freed memory is kept: the steps of wide stairs come and go with every report."""


def plans_upto(brokers: str, version: int) -> PlanLog:
    """The plans with this version in them. They are immutable, so what was read stays."""
    if brokers not in _readers:
        _readers[brokers] = PlanReader(brokers)
    plans = _readers[brokers].read_upto(version)
    if plans.newest.version > _settled.get(brokers, -1):
        _settled[brokers] = plans.newest.version
        _unsettled.add(brokers)
    return plans


def settle() -> None:
    """At the end of a task, the first under new plans: what is there by now stays.

    Spark's worker collects garbage after every task. To go through all modules and plans each time is most of what a
    small task costs.
    """
    if _unsettled:
        _unsettled.clear()
        gc.collect()
        gc.freeze()


def begin() -> None:
    """Once in each worker process."""
    if not _started:
        memory.keep(KEPT_BYTES)
        telemetry.start("operators")
        _started.add("operators")
