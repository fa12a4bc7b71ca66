"""The picture of ``make bench-time``: how much of each goal was used, and a query's delays around the leap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.report import PLOTS, Goal


@dataclass(frozen=True)
class Figure:
    """A goal, its name in the picture, and what was measured as a share of what is allowed."""

    goal: Goal
    name: str
    share: float


Delays = Sequence[tuple[float, float]]
"""By report: how long after the leap it came (before it: negative), and after its report time; in seconds."""


def plot(figures: Sequence[Figure], delays: Delays) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "stairwise"
    from matplotlib import pyplot as plt

    sheet, (left, right) = plt.subplots(1, 2, figsize=(12, 3.4))
    colours = ["#3b6ea5" if figure.goal.is_met else "#b03a2e" for figure in figures]
    bars = left.barh([figure.name for figure in figures], [max(0, 100 * f.share) for f in figures], color=colours)
    left.bar_label(bars, fmt="%.0f %%", padding=3)
    left.axvline(100, color="black", linestyle="--")
    left.set(xlabel="% of what the goal allows", xlim=(0, max(120.0, *(115 * figure.share for figure in figures))))
    left.invert_yaxis()
    right.plot([came for came, _ in delays], [delay for _, delay in delays], marker=".")
    right.axvline(0, color="black", linestyle="--")
    right.set(xlabel="seconds after another stream leapt by 56 years", ylabel="delay of a report, s", ylim=(0, None))
    sheet.tight_layout()
    PLOTS.mkdir(parents=True, exist_ok=True)
    sheet.savefig(PLOTS / "time.svg", metadata={"Date": None})
