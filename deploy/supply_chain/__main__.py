"""``python -m deploy.supply_chain FOLDER``: say what is not as it should be, and write an SBOM for each image there."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

import pyspark

from deploy.supply_chain.jvm import asked_by, jvm_findings
from deploy.supply_chain.licences import licence_findings, licence_of
from deploy.supply_chain.lock import lock_findings, read_lock
from deploy.supply_chain.sbom import document, installed_packages, jar_components, needed_by, python_components

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("windows", "ingest", "operators", "results", "lookups")
JVM = ("broker", "spark")


def main(folder: Path) -> int:
    installed = installed_packages()
    findings = list(audit(installed))
    for finding in findings:
        print(f"✕ {finding}")
    folder.mkdir(parents=True, exist_ok=True)
    version = installed["stairwise"].version
    locked = read_lock((ROOT / "requirements.lock").read_text())
    for service in SERVICES:
        components = python_components(needed_by(service, installed), installed, locked)
        if service == "operators":
            components += jar_components([*(ROOT / ".jvm" / "spark").glob("*.jar"), *_jars_of_pyspark()])
        _write(folder, service, version, components)
    _write(folder, "broker", version, jar_components((ROOT / ".jvm" / "broker").glob("*.jar")))
    print(f"{len(findings)} findings" if findings else "the supply chain is as it should be")
    return 1 if findings else 0


def audit(installed: dict[str, Distribution]) -> Iterator[str]:
    left = tomllib.loads((Path(__file__).parent / "exceptions.toml").read_text())
    for kind, entries in left.items():
        for name, entry in entries.items():
            print(f"· left as it is, {kind}: {name}: {entry['why']}")
    yield from lock_findings(
        read_lock((ROOT / "requirements.lock").read_text()), {n: d.version for n, d in installed.items()}
    )
    shipped = set().union(*(needed_by(service, installed) for service in SERVICES))
    licences = {name: licence_of(each) for name, each in installed.items()}
    yield from licence_findings(licences, shipped, left["licence"].keys())
    yield from jvm_findings(
        {folder: asked_by(ROOT / "deploy" / "jvm" / folder / "pom.xml") for folder in JVM},
        {folder: [jar.name for jar in (ROOT / ".jvm" / folder).glob("*.jar")] for folder in JVM},
        pyspark.__version__,
        {name: entry["version"] for name, entry in left["jvm"].items()},
    )


def _jars_of_pyspark() -> Iterator[Path]:
    return (Path(pyspark.__file__).parent / "jars").glob("*.jar")


def _write(folder: Path, image: str, version: str, components: list[dict[str, object]]) -> None:
    path = folder / f"{image}.cdx.json"
    path.write_text(json.dumps(document(image, version, components), indent=1) + "\n")
    print(f"» {path}: {len(components)} components")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
