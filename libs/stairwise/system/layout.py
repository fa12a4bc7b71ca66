"""Which parts the system has, on which ports, with which environment: the one place that knows them all.

```
broker, zipkin if there are traces ──▶ windows ──▶ ingest, results, lookups
                                   ──▶ operators
```
The registry (``windows``) comes first among the services that are asked things, since it owns the plans. Operators
read them as data, and Spark takes longest to start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform import channels
from stairwise.platform.channels import Credentials
from stairwise.platform.config import DEFAULT_METRICS_PORTS, DEFAULT_PORTS
from stairwise.platform.kafka_security import VARIABLES as KAFKA_VARIABLES
from stairwise.platform.security import settings as security
from stairwise.platform.security.settings import Security
from stairwise.system.broker import Broker
from stairwise.system.installation import Installation
from stairwise.system.ports import free_ports
from stairwise.system.state import Addresses
from stairwise.system.system_part import Check, Port, SystemPart
from stairwise.system.zipkin import Zipkin

PORTS: Mapping[str, int] = {
    **DEFAULT_PORTS,
    "broker": 9092,
    "controller": 9093,
    **{f"{service}_metrics": port for service, port in DEFAULT_METRICS_PORTS.items()},
    "zipkin": 9411,
}
"""Every port of the system and its default; their order is that of ``--port-base``."""

PORT_OPTIONS: Mapping[str, str] = {
    name: f"--{name.replace('windows', 'registry').replace('_', '-')}-port" for name in PORTS
}
"""What to type to choose a port: the service ``windows`` is known to users as the registry."""

SCRAPED = ("ingest", "operators")
"""The parts whose metrics tell the registry what queries wait for."""

OPERATORS_PATIENCE = 240.0
"""Spark has a JVM and a session to start before its first batch."""


def choose_ports(
    chosen: Mapping[str, int],
    base: int | None = None,
    previous: Mapping[str, int] | None = None,
    *,
    free: Callable[[int], Sequence[int]] = free_ports,
) -> dict[str, int]:
    """The ports of a start: as chosen one by one, else from the base on, else as last time, else defaults.

    Base 0 takes what ``free`` gives: so many ports that are free at the moment.
    """
    if base is None:
        others = {name: (previous or {}).get(name, default) for name, default in PORTS.items()}
    else:
        numbers = free(len(PORTS)) if base == 0 else range(base, base + len(PORTS))
        others = dict(zip(PORTS, numbers, strict=True))
    return {**others, **chosen}


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """Files that are named where one types; the parts run in the state directory.

    The broker of this machine speaks plainly, on loopback: how another one is logged in to is left out.
    """
    if Security.from_environment(environ).has_tls and Credentials.from_environment(environ).ca is None:
        raise ConfigError(
            "with STAIRWISE_TLS_CERT the services speak TLS alone, and could not be asked for their health",
            hint="set STAIRWISE_TLS_CA to the authority of that certificate, which must be good for 127.0.0.1",
        )
    paths = {name: environ[name] for name in (*security.PATHS, *channels.PATHS) if environ.get(name, "").strip()}
    return {name: str(Path(path).absolute()) for name, path in paths.items()} | dict.fromkeys(KAFKA_VARIABLES, "")


@dataclass(frozen=True)
class SystemLayout:
    """The system of one directory."""

    installation: Installation
    directory: Path
    ports: Mapping[str, int]
    shards: int
    spark_ui_port: int | None = None
    tracing: bool = False
    inherited: Mapping[str, str] = field(default_factory=dict)
    """What the services' environment takes over from that of `stairwise up`, see ``inherited``."""
    needed: Set[str] | None = None
    """Which parts there are to be; None: all."""

    @property
    def broker(self) -> Broker:
        home = self.directory / "broker"
        return Broker(self.installation, home, self.ports["broker"], self.ports["controller"])

    @property
    def zipkin(self) -> Zipkin | None:
        return Zipkin(self.installation, self.ports["zipkin"]) if self.tracing else None

    @property
    def addresses(self) -> Addresses:
        return Addresses(
            brokers=self.broker.address,
            registry=self._address("windows"),
            results=self._address("results"),
            lookups=self._address("lookups"),
            zipkin=self.zipkin.endpoint if self.zipkin else None,
        )

    def parts(self) -> tuple[SystemPart, ...]:
        spark_ui = () if self.spark_ui_port is None else (Port(self.spark_ui_port, "--spark-ui-port"),)
        outside = (self.broker.part(), *([self.zipkin.part()] if self.zipkin else []))
        first = tuple(part.name for part in outside)
        rest = (*first, "windows")
        every = (
            *outside,
            self._service("windows", after=first),
            self._service("ingest", after=rest),
            self._service("operators", after=first, more=spark_ui, patience=OPERATORS_PATIENCE, grace=20.0),
            self._service("results", after=rest),
            self._service("lookups", after=rest),
        )
        return tuple(part for part in every if self.needed is None or part.name in self.needed)

    def _service(
        self,
        name: str,
        *,
        after: tuple[str, ...],
        more: tuple[Port, ...] = (),
        patience: float = 90.0,
        grace: float = 10.0,
    ) -> SystemPart:
        return SystemPart(
            name=name,
            # -P: the working directory is the state directory, and nothing is imported from there.
            command=(sys.executable, "-P", "-m", f"services.{name}"),
            check=Check("grpc", self._address(name)),
            environment=self._environment(name),
            ports=(*(Port(self.ports[port], PORT_OPTIONS[port]) for port in (name, f"{name}_metrics")), *more),
            after=after,
            patience=patience,
            grace=grace,
            metrics=f"http://{self._address(f'{name}_metrics')}/metrics",
        )

    def _environment(self, name: str) -> dict[str, str]:
        addresses = self.addresses
        traces = {"OTEL_EXPORTER_ZIPKIN_ENDPOINT": addresses.zipkin} if addresses.zipkin else {}
        return {
            **traces,
            "STAIRWISE_BROKERS": addresses.brokers,
            "STAIRWISE_DIR": str(self.directory),
            "STAIRWISE_LISTEN": self._address(name),
            "STAIRWISE_METRICS": self._address(f"{name}_metrics"),
            "STAIRWISE_SCRAPE": ",".join(f"{part}={self._address(f'{part}_metrics')}" for part in SCRAPED),
            "STAIRWISE_REGISTRY": addresses.registry,
            "STAIRWISE_RESULTS": addresses.results,
            "STAIRWISE_LOOKUPS": addresses.lookups,
            "STAIRWISE_SHARDS": str(self.shards),
            "STAIRWISE_SPARK_UI": str(self.spark_ui_port or "none"),
            "STAIRWISE_JVM": str(self.installation.jvm),
            "PYSPARK_PYTHON": sys.executable,
            # With it, a gRPC server's threads now and then kill a child of the service, such as Spark's JVM,
            # between fork and exec.
            "GRPC_ENABLE_FORK_SUPPORT": "0",
            "PYTHONUNBUFFERED": "1",
            **self.inherited,
        }

    def _address(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"
