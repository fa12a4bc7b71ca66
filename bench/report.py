"""What all benchmarks share: a table of goals and figures, on the terminal and in docs/benchmarks.md.

A benchmark owns the text between its markers, ``<!-- bench-NAME -->`` and ``<!-- /bench-NAME -->``; everything
else in the page stays as it is. It ends with ``N of M goals met`` and exits with 0 only if all are.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
PLOTS = DOCS / "plots"
TITLE = """# Benchmarks

Each section is written by its benchmark; `make bench` runs them all, `make bench-local` one of them.
"""


@dataclass(frozen=True)
class Goal:
    """What was promised and what was measured."""

    name: str
    wanted: str
    figure: str
    is_met: bool

    @property
    def row(self) -> tuple[str, str, str, str]:
        return self.name, self.wanted, self.figure, "met" if self.is_met else "NOT MET"


HEAD = ("what", "goal", "figure", "")


def conclude(name: str, title: str, text: str, goals: Sequence[Goal]) -> int:
    """Print the goals, refresh the section of the page, and give the exit code."""
    print(as_text([HEAD, *(goal.row for goal in goals)]))
    refresh(name, f"## {title}\n\n{text.strip()}\n\n{as_markdown(goals)}\n\nMeasured on {machine()}.")
    met = sum(goal.is_met for goal in goals)
    print(f"{met} of {len(goals)} goals met")
    return 0 if met == len(goals) else 1


def as_text(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def as_markdown(goals: Sequence[Goal]) -> str:
    lines = ["| what | goal | figure | |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(goal.row)} |" for goal in goals)])


def refresh(name: str, section: str) -> None:
    """Put a section between its markers in the page, or at its end where it has none yet."""
    begin, end = f"<!-- bench-{name} -->", f"<!-- /bench-{name} -->"
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else TITLE
    if begin not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    before, rest = page.split(begin, 1)
    _, after = rest.split(end, 1)
    PAGE.write_text(f"{before}{begin}\n{section}\n{end}{after}", encoding="utf-8")


def machine() -> str:
    return f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, Python {platform.python_version()}"
