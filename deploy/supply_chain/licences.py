"""The licence of every package: those that go into images must be permissive, or be looked at one by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import Distribution

PERMISSIVE = re.compile(
    r"^(?:0?BSD|BSD-[23]-Clause|3-Clause BSD|BSD License|MIT|MIT-CMU|ISC|Zlib|CC0-1\.0|PSF-2\.0|Apache(?:-2\.0)?|Apache"
    r" Software|Apache License 2\.0|Python Software Foundation|DFSG approved|The Unlicense)(?: License)?"
    r"(?: WITH LLVM-exception)?$"
)


def licence_of(distribution: Distribution) -> str:
    """As the package states it: an expression, else its classifiers, else its own words."""
    said = distribution.metadata
    classified = [
        line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    expression = said.get("License-Expression")
    return expression or " AND ".join(classified) or (said.get("License") or "").partition("\n")[0] or "unknown"


def is_permissive(licence: str) -> bool:
    return all(
        any(PERMISSIVE.match(choice.strip(" ()")) for choice in part.split(" OR ")) for part in licence.split(" AND ")
    )


def licence_findings(
    licences: Mapping[str, str], shipped: Collection[str], looked_at: Collection[str]
) -> Iterator[str]:
    """``licences`` by package; ``shipped`` are those that go into an image, ``looked_at`` those that may too."""
    for name in sorted(shipped):
        if not is_permissive(licences[name]) and name not in looked_at:
            yield f"{name} goes into an image under {licences[name]!r}: look at it, and say so in exceptions.toml"
    for name in sorted(looked_at):
        if name not in shipped or is_permissive(licences[name]):
            yield f"exceptions.toml lets {name} go into an image, which does not need it"
