"""What a Python worker of Spark keeps between calls: the plans, and its telemetry."""

from __future__ import annotations

from stairwise.platform import telemetry
from stairwise.platform.plans import PlanLog, PlanReader

_readers: dict[str, PlanReader] = {}
_started: set[str] = set()


def plans_upto(brokers: str, version: int) -> PlanLog:
    """The plans with this version in them. They are immutable, so what was read stays."""
    if brokers not in _readers:
        _readers[brokers] = PlanReader(brokers)
    return _readers[brokers].read_upto(version)


def start_telemetry() -> None:
    """Once in each worker process."""
    if not _started:
        telemetry.start("operators")
        _started.add("operators")
