"""Zipkin beside the system: takes the spans of every service, keeps them in memory, shows them on a page."""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.system.installation import Installation
from stairwise.system.system_part import Check, Port, SystemPart

HEAP = "256m"
SPANS = 100_000
"""How many spans it keeps: about 1 KiB each."""


@dataclass(frozen=True)
class Zipkin:
    installation: Installation
    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def endpoint(self) -> str:
        """Where exporters send spans (OTEL_EXPORTER_ZIPKIN_ENDPOINT)."""
        return f"http://{self.address}/api/v2/spans"

    @property
    def page(self) -> str:
        return f"http://{self.address}/zipkin/"

    def part(self) -> SystemPart:
        return SystemPart(
            name="zipkin",
            command=(
                str(self.installation.java),
                f"-Xmx{HEAP}",
                "-XX:+ExitOnOutOfMemoryError",
                "-Djava.awt.headless=true",
                "-jar",
                str(self.installation.zipkin_jar()),
                "--armeria.ports[0].ip=127.0.0.1",
                f"--armeria.ports[0].port={self.port}",
            ),
            check=Check("http", self.address),
            environment={"MEM_MAX_SPANS": str(SPANS)},
            ports=(Port(self.port, "--zipkin-port"),),
            patience=120.0,
        )
