"""The Kafka broker of one machine: KRaft, broker and controller in one process.

Its configuration is written anew at every start (ports may change), its storage is formatted once. Formatting
works in a directory beside the final one that is then renamed: an interrupted format leaves nothing that
looks complete.
"""

from __future__ import annotations

import base64
import os
import shutil
import string
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.system.installation import Installation
from stairwise.system.system_part import Check, Port, SystemPart

HEAP = "512m"


@dataclass(frozen=True)
class Broker:
    """A broker below ``home``: ``server.properties`` and ``data``."""

    installation: Installation
    home: Path
    port: int
    controller_port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_formatted(self) -> bool:
        return (self.home / "data").exists()

    def prepare(self) -> None:
        """Write the configuration; format the storage if there is none yet (about two seconds)."""
        if "," in str(self.home):
            raise ConfigError(
                f"the broker can't keep its data in {self.home}: it takes a comma for the end of a path",
                hint="choose a directory without one by --dir",
            )
        self.home.mkdir(parents=True, exist_ok=True)
        self._write_properties("server.properties", self.home / "data")
        if not self.is_formatted:
            self._format()

    def part(self) -> SystemPart:
        return SystemPart(
            name="broker",
            command=self._java("kafka.Kafka", str(self.home / "server.properties")),
            check=Check("kafka", self.address),
            ports=(Port(self.port, "--broker-port"), Port(self.controller_port, "--controller-port")),
            patience=120.0,
            grace=20.0,
        )

    def _java(self, main_class: str, *arguments: str) -> tuple[str, ...]:
        archive = self.installation.broker_archive
        return (
            str(self.installation.java),
            *((f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()),
            f"-Xmx{HEAP}",
            "-XX:TieredStopAtLevel=1",  # to compile better costs more than it gives for long
            "-XX:+ExitOnOutOfMemoryError",  # half alive is worse than dead: the supervisor restarts it
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={(self.installation.templates / 'log4j2.properties').as_uri()}",
            "-cp",
            self.installation.broker_class_path,
            main_class,
            *arguments,
        )

    def _write_properties(self, name: str, data: Path) -> Path:
        template = string.Template((self.installation.templates / "server.properties").read_text())
        ports = {"broker_port": self.port, "controller_port": self.controller_port}
        path = self.home / name
        # In a properties file a backslash escapes, so that one in a path is doubled.
        path.write_text(template.substitute(ports, data=str(data).replace("\\", "\\\\")))
        return path

    def _format(self) -> None:
        unfinished = self.home / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        properties = self._write_properties("format.properties", unfinished)
        cluster_id = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        arguments = ("format", "--config", str(properties), "--cluster-id", cluster_id)
        command = self._java("kafka.tools.StorageTool", *arguments)
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if answer.returncode != 0:
            said = "\n    ".join((answer.stdout + answer.stderr).strip().splitlines()[-10:])
            raise ConfigError(f"the broker's storage in {self.home} could not be formatted:\n    {said}")
        properties.unlink()
        os.rename(unfinished, self.home / "data")
