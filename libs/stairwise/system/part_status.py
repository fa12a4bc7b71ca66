"""How each part does: asked now, all at once, with a short deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from confluent_kafka import KafkaException

from stairwise.system import health
from stairwise.system.lag import group_lags
from stairwise.system.state import PartState, SystemState

TIMEOUT = 3.0
LAG_TIMEOUT = 15.0
"""A broker that answers is worth waiting for: it knows the lag."""


@dataclass(frozen=True)
class PartStatus:
    """A part in ``stairwise status``. ``metrics`` is a page for Prometheus; None: no such.

    ``lag`` is in messages: of ``in.*`` those that ingest has not written, of ``s.*`` those that operators have not
    taken. ``lag_seconds`` is about how long the part needs, or has needed already, to catch up.
    """

    part: str
    health: str
    pid: int | None
    uptime_seconds: float | None
    restarts: int
    address: str
    metrics: str | None
    lag: int | None
    lag_seconds: float | None
    reason: str

    @property
    def is_healthy(self) -> bool:
        return self.health == "healthy"


def ask_all(state: SystemState) -> list[PartStatus]:
    """Ask every part for its health, and the broker for the lag of those that read from it."""
    with ThreadPoolExecutor(max_workers=len(state.parts)) as threads:
        answers = list(threads.map(lambda part: health.probe(part.check, TIMEOUT), state.parts))
    asked = list(zip(state.parts, answers, strict=True))
    broker_answers = any(part.name == "broker" and answer.healthy for part, answer in asked)
    lags = _lags(state) if broker_answers else {}
    return [_status(part, answer, lags.get(part.name)) for part, answer in asked]


def _lags(state: SystemState) -> Mapping[str, int]:
    try:
        return group_lags(state.addresses.brokers, LAG_TIMEOUT)
    except KafkaException:
        return {}  # the broker went away in between: its own line tells at the next call


def _status(part: PartState, answer: health.Health, lag: int | None) -> PartStatus:
    """What the part says of itself, and what the supervisor knows: between two restarts nobody answers."""
    alive = part.process is not None and part.process.is_alive()
    reason = answer.reason if alive or not part.reason else f"{part.phase}: {part.reason}"
    return PartStatus(
        part=part.name,
        health="healthy" if alive and answer.healthy else "unhealthy",
        pid=part.process.pid if alive and part.process else None,
        uptime_seconds=round(time.time() - part.started, 1) if alive and part.started else None,
        restarts=part.restarts,
        address=part.check.address,
        metrics=part.metrics,
        lag=lag,
        lag_seconds=None if lag is None or lag else 0.0,
        reason="" if alive and answer.healthy else reason or "not running",
    )
