"""A benchmark in parts: each gives goals, tables and panels of a plot, and says how it gets on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.report import HEAD, PLOTS, Goal, as_text


@dataclass(frozen=True)
class Panel:
    """Lines over a common axis."""

    title: str
    xlabel: str
    ylabel: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logarithmic: str = ""
    """Which axes are: "x", "y" or both."""


@dataclass(frozen=True)
class Part:
    goals: list[Goal] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    """In Markdown, each with a heading sentence."""
    panels: list[Panel] = field(default_factory=list)


def run(parts: Mapping[str, Callable[[], Part]]) -> list[Part]:
    """One after the other, with a line for each and its goals as they are known."""
    done: list[Part] = []
    begin = time.monotonic()
    for number, (name, make) in enumerate(parts.items(), 1):
        print(f"[{number}/{len(parts)}] {name}", file=sys.stderr, flush=True)
        part = make()
        for goal in part.goals:
            print(f"       {'  '.join(goal.row)}", file=sys.stderr)
        print(f"       {time.monotonic() - begin:.0f} s so far", file=sys.stderr, flush=True)
        done.append(part)
    return done


def some(all_: Mapping[str, Callable[[], Part]], names: Sequence[str]) -> int:
    """Some parts only: prints what they give, and gives the exit code."""
    unknown = [name for name in names if name not in all_]
    if unknown:
        print(f"no part {', '.join(unknown)}; there are {', '.join(all_)}", file=sys.stderr)
        return 2
    done = run({name: all_[name] for name in names})
    for part in done:
        print("\n\n".join(part.tables))
    goals = [goal for part in done for goal in part.goals]
    print(as_text([HEAD, *(goal.row for goal in goals)]))
    return 0 if all(goal.is_met for goal in goals) else 1


def table(sentence: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [sentence, "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def plot(name: str, panels: Sequence[Panel]) -> None:
    """All panels in one picture, docs/plots/NAME.svg."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "stairwise"
    from matplotlib import pyplot as plt

    rows = -(-len(panels) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(15, 3.8 * rows), squeeze=False)
    for place, panel in zip(axes.flat, panels, strict=False):
        for label, (x, y) in panel.lines.items():
            place.plot(x, y, marker="o", label=label)
        place.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
        if "x" in panel.logarithmic:
            place.set_xscale("log")
        if "y" in panel.logarithmic:
            place.set_yscale("log")
        else:
            place.set_ylim(0, None)
        if len(panel.lines) > 1:
            place.legend()
    for place in axes.flat[len(panels) :]:
        place.set_axis_off()
    figure.tight_layout()
    PLOTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOTS / f"{name}.svg", metadata={"Date": None})
