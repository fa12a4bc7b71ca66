"""A part of the system, as data: what to start, with what, and how to see that it works."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Check:
    """How a part is asked for its health (``health.probe``), and where."""

    protocol: Literal["grpc", "kafka", "http"]
    address: str


@dataclass(frozen=True)
class Port:
    """A port that a part listens on; ``option`` is what to type in order to choose another."""

    number: int
    option: str


@dataclass(frozen=True)
class SystemPart:
    """One process of the system.

    ``after`` names the parts that must be healthy before this one is started for the first time; parts are
    stopped the other way round. ``patience`` is how long it may take to become healthy, ``grace`` how long it
    may take to end after SIGTERM, both in seconds. ``metrics`` is where Prometheus can scrape it, if anywhere.
    """

    name: str
    command: tuple[str, ...]
    check: Check
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    after: tuple[str, ...] = ()
    patience: float = 90.0
    grace: float = 10.0
    metrics: str | None = None

    @property
    def address(self) -> str:
        return self.check.address

    @property
    def can_hang(self) -> bool:
        """Is it to be killed where it answers nothing? Services lose nothing by that; a broker is better waited for."""
        return self.check.protocol == "grpc"


def stop_waves(parts: Iterable[SystemPart]) -> list[list[SystemPart]]:
    """The parts in the order of stopping: each wave holds what nothing still running was started after."""
    remaining = list(parts)
    waves = []
    while remaining:
        needed = {name for part in remaining for name in part.after}
        wave = [part for part in remaining if part.name not in needed]
        if not wave:
            raise ValueError(f"parts wait for each other: {', '.join(part.name for part in remaining)}")
        waves.append(wave)
        remaining = [part for part in remaining if part not in wave]
    return waves
