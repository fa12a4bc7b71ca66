"""What must be there before anything is started: Linux, a JDK and the jars that ``make setup`` fetches."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform.config import SOURCE_TREE

OLDEST_JAVA = 17


@dataclass(frozen=True)
class Installation:
    """Where the things that are not Python lie."""

    java: Path
    jvm: Path
    templates: Path

    @property
    def broker_class_path(self) -> str:
        """A glob that the JVM expands itself: it is one argument, never seen by a shell."""
        return str(self.jvm / "broker" / "*")

    @property
    def broker_archive(self) -> Path:
        """The broker's classes as the JVM shares them between runs, where ``make setup`` could write them."""
        return self.jvm / "broker.jsa"

    def zipkin_jar(self) -> Path:
        """Of ``up --tracing`` alone, and so not fetched by ``make setup``."""
        jars = sorted((self.jvm / "zipkin").glob("zipkin-server-*.jar"))
        if not jars:
            raise ConfigError(
                f"Zipkin's jar is not in {self.jvm / 'zipkin'}",
                hint="make tracing fetches it (135 MB); STAIRWISE_JVM names another place",
            )
        return jars[-1]


def find_installation(environ: Mapping[str, str]) -> Installation:
    """Check everything; a ``ConfigError`` names the first thing that is missing and how to get it."""
    if sys.platform != "linux":
        raise ConfigError(
            f"`stairwise up` needs Linux, this is {sys.platform}",
            hint="run it in a Linux container or virtual machine; `stairwise run` works everywhere",
        )
    jvm = Path(environ.get("STAIRWISE_JVM") or SOURCE_TREE / ".jvm").absolute()
    for part in ("broker", "spark"):
        if not any((jvm / part).glob("*.jar")):
            raise ConfigError(
                f"the jars of the {part} part are not in {jvm / part}",
                hint="make setup fetches them; STAIRWISE_JVM names another place",
            )
    return Installation(java=_java(environ), jvm=jvm, templates=SOURCE_TREE / "deploy" / "local")


def _java(environ: Mapping[str, str]) -> Path:
    how = "apt install openjdk-17-jre-headless, or set JAVA_HOME"
    home = environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise ConfigError("there is no java on the PATH", hint=how)
    try:
        answer = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        whence = f" (JAVA_HOME={home})" if home else ""
        raise ConfigError(f"{found} can't be run{whence}: {error.strerror}", hint=how) from error
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        raise ConfigError(f"{found} -version gives no version: {answer.stderr.strip()[:200]}", hint=how)
    if version < OLDEST_JAVA:
        raise ConfigError(f"{found} is Java {version}, at least {OLDEST_JAVA} is needed", hint=how)
    return Path(found)


def java_version(text: str) -> int | None:
    """The feature release that ``java -version`` tells: 17 of "17.0.15", and 8 of the old style "1.8.0"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
