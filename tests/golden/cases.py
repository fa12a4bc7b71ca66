"""The golden cases: one folder each, with a script, the messages of its streams, and the lines it must print.

    tests/golden/<case>/query.cql               CREATE STREAM statements and queries
                        input.<stream>.jsonl    what arrives, one JSON message per line, in one partition
                        expected.jsonl          the result lines

A new case is a new folder with the first two; ``python -m tests.golden.regenerate`` writes the third by the oracle,
and whoever adds it reads it. Lines are compared as values: how an engine spaces its JSON or spells a double does not
matter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class GoldenCase:
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def script(self) -> str:
        return (self.folder / "query.cql").read_text(encoding="utf-8")

    @property
    def inputs(self) -> dict[str, Path]:
        """The file of each stream that has one."""
        found = sorted(self.folder.glob("input.*.jsonl"))
        return {path.name.removeprefix("input.").removesuffix(".jsonl"): path for path in found}

    @property
    def messages(self) -> dict[str, list[dict[str, Any]]]:
        return {stream: read_lines(path) for stream, path in self.inputs.items()}

    @property
    def expected_file(self) -> Path:
        return self.folder / "expected.jsonl"

    @property
    def expected(self) -> list[dict[str, Any]]:
        return read_lines(self.expected_file)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def golden_cases() -> list[GoldenCase]:
    """All cases, by name."""
    return [GoldenCase(path.parent) for path in sorted(HERE.glob("*/query.cql"))]
