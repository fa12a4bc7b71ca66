"""What is in an image beside Debian: Python packages and jars, as a CycloneDX document.

The documents are small and fixed in form, so they are written here; a library for them would be one more dependency.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.supply_chain.licences import licence_of
from deploy.supply_chain.lock import LockedPackage

Component = dict[str, Any]
_JAR = re.compile(r"^(?P<name>.+?)-(?P<version>\d[^/]*)\.jar$")


def installed_packages() -> dict[str, Distribution]:
    """What the environment holds, by name."""
    return {canonicalize_name(each.metadata["Name"]): each for each in distributions()}


def needed_by(extra: str, installed: Mapping[str, Distribution]) -> set[str]:
    """The packages that ``stairwise[extra]`` brings along, at all removes."""
    found: set[str] = set()
    waiting = [("stairwise", extra)]
    seen = set(waiting)
    while waiting:
        name, chosen = waiting.pop()
        found.add(name)
        for text in installed[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": chosen}):
                continue
            for each in {"", *requirement.extras}:
                one = canonicalize_name(requirement.name), each
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
    return found


def python_components(
    names: Iterable[str], installed: Mapping[str, Distribution], locked: Mapping[str, LockedPackage]
) -> list[Component]:
    found = []
    for name in sorted(names):
        component: Component = {
            "type": "library",
            "name": name,
            "version": installed[name].version,
            "purl": f"pkg:pypi/{name}@{installed[name].version}",
            "licenses": [{"license": {"name": licence_of(installed[name])}}],
        }
        if name in locked:
            component["properties"] = [{"name": "lock:sha256", "value": digest} for digest in locked[name].hashes]
        found.append(component)
    return found


def jar_components(jars: Iterable[Path]) -> list[Component]:
    found = []
    for jar in sorted(jars, key=lambda path: path.name):
        match = _JAR.match(jar.name)
        name, version = (match["name"], match["version"]) if match else (jar.stem, "")
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        found.append(
            {
                "type": "library",
                "name": name,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        )
    return found


def document(image: str, version: str, components: list[Component]) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": f"stairwise/{image}", "version": version}},
        "components": components,
    }
