"""Where the parts of a system are, as a program says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform.config import DEFAULT_BROKERS, DEFAULT_PORTS
from stairwise.platform.variables import host_and_port
from stairwise.system.state import Addresses, find

_SERVICES = {"REGISTRY": "windows", "RESULTS": "results", "LOOKUPS": "lookups"}


def located(
    host: str | None,
    given: Mapping[str, str | None],
    directory: Path | str | None,
    environ: Mapping[str, str],
) -> Addresses:
    """A host on which everything is, beside single addresses by the names of their variables, else what is found."""
    told = {**environ, **(_everything_on(host) if host is not None else {})}
    told |= {name: value for name, value in given.items() if value is not None}
    return find(Path(directory) if directory is not None else None, told)


def _everything_on(host: str) -> dict[str, str]:
    try:
        host_and_port(f"{host}:1")
    except ValueError:
        hint = "name single addresses by registry=, results= and brokers="
        raise ConfigError(f"{host!r} is not the name of a host", hint=hint) from None
    ports = {name: DEFAULT_PORTS[service] for name, service in _SERVICES.items()}
    ports["BROKERS"] = int(DEFAULT_BROKERS.rpartition(":")[2])
    return {f"STAIRWISE_{name}": f"{host}:{port}" for name, port in ports.items()}
