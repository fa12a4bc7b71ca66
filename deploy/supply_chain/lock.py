"""requirements.lock against the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.utils import canonicalize_name

BESIDE = frozenset({"pip", "setuptools", "wheel", "stairwise"})
"""What an environment holds without the lock."""
_ENTRY = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\\n]+?))?\s*\\?$", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class LockedPackage:
    name: str
    version: str
    hashes: tuple[str, ...]


def read_lock(text: str) -> dict[str, LockedPackage]:
    """The packages that the lock asks for on this machine, by name."""
    entries = list(_ENTRY.finditer(text))
    ends = [entry.start() for entry in entries[1:]] + [len(text)]
    found = {}
    for entry, end in zip(entries, ends, strict=True):
        if entry["marker"] is None or Marker(entry["marker"]).evaluate():
            name = canonicalize_name(entry["name"])
            found[name] = LockedPackage(name, entry["version"], tuple(_HASH.findall(text[entry.end() : end])))
    return found


def lock_findings(locked: Mapping[str, LockedPackage], installed: Mapping[str, str]) -> Iterator[str]:
    """What differs; ``installed`` are the versions in the environment by name."""
    for package in locked.values():
        if not package.hashes:
            yield f"{package.name} {package.version} has no hash in requirements.lock: make lock"
        there = installed.get(package.name)
        if there != package.version:
            there = there or "not installed"
            yield f"{package.name} is {there}, and {package.version} in requirements.lock: make setup"
    for name in sorted(set(installed) - set(locked) - BESIDE):
        yield f"{name} {installed[name]} is installed, and not in requirements.lock"
