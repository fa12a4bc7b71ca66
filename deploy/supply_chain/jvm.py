"""The JVM parts: what the poms ask for, what was fetched, and whether it belongs together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

_SPARK = re.compile(r"^spark-.*_2\.13$")


def asked_by(pom: Path) -> dict[str, str]:
    """The versions of the parts that a pom names."""
    tree = ElementTree.parse(pom)
    found = {}
    for dependency in tree.iter("{http://maven.apache.org/POM/4.0.0}dependency"):
        name, version = (
            dependency.findtext(f"{{http://maven.apache.org/POM/4.0.0}}{field}") or ""
            for field in ("artifactId", "version")
        )
        found[name] = version
    return found


def jvm_findings(
    poms: Mapping[str, Mapping[str, str]], jars: Mapping[str, Collection[str]], pyspark: str, left: Mapping[str, str]
) -> Iterator[str]:
    """``poms`` and ``jars`` by folder; ``left`` are parts that may have another version than pyspark."""
    for folder, asked in poms.items():
        for name, version in asked.items():
            if f"{name}-{version}.jar" not in jars[folder]:
                yield f"{name} {version} of deploy/jvm/{folder}/pom.xml is not in .jvm/{folder}: make setup"
            if _SPARK.match(name) and version != pyspark and left.get(name) != version:
                yield f"{name} is {version} beside pyspark {pyspark}"
            if name in left and version == pyspark:
                yield f"exceptions.toml lets {name} be {left[name]}, and it is as pyspark: {pyspark}"
    for folder, held in jars.items():
        twice = _twice(held)
        if twice:
            yield f".jvm/{folder} holds two versions of {', '.join(sorted(twice))}"


def _twice(jars: Collection[str]) -> set[str]:
    seen: set[str] = set()
    names = [re.sub(r"-\d[^-]*\.jar$", "", jar) for jar in jars]
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
