"""A dashboard as a picture: its panels where Grafana has them, its queries as Prometheus answers them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.ticker import FuncFormatter, MaxNLocator

from deploy.dashboards.panels import ACROSS, Dashboard, Line, Panel
from tests.e2e.prometheus import Prometheus

STEP = 5
"""Between two points of a line, in seconds."""
MOST_NAMED = 6
"""With more lines than these a legend would hide them."""


@dataclass(frozen=True)
class Series:
    name: str
    times: list[datetime]
    values: list[float]


def take(prometheus: Prometheus, line: Line, begin: float, end: float) -> list[Series]:
    """What a query says over a time, without the points that are no number."""
    answer = prometheus.get("query_range", query=line.expr, start=str(begin), end=str(end), step=str(STEP))
    taken = []
    for each in answer["result"]:
        points = [(float(at), float(value)) for at, value in each["values"]]
        kept = [(datetime.fromtimestamp(at, UTC), value) for at, value in points if math.isfinite(value)]
        if kept:
            name = re.sub(r"{{(\w+)}}", lambda label, labels=each["metric"]: labels.get(label[1], ""), line.legend)
            taken.append(Series(name, [at for at, _ in kept], [value for _, value in kept]))
    return taken


def draw(prometheus: Prometheus, dashboard: Dashboard, begin: float, end: float, path: Path) -> list[str]:
    """Write the picture; the titles of the panels that have nothing to show."""
    rows = -(-len(dashboard.panels) // ACROSS)
    figure, axes = plt.subplots(rows, ACROSS, figsize=(15, 3.1 * rows), squeeze=False)
    figure.suptitle(f"Stairwise / {dashboard.title}", x=0.01, ha="left", fontsize=13, fontweight="bold")
    empty = []
    for place, panel in zip(axes.flat, dashboard.panels, strict=False):
        series = [each for line in panel.lines for each in take(prometheus, line, begin, end)]
        place.set_title(panel.title, fontsize=10, loc="left")
        if not series:
            empty.append(panel.title)
        elif panel.number:
            _number(place, panel, series[0])
        else:
            _lines(place, panel, series)
            place.set_xlim(datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC))
    for place in axes.flat[len(dashboard.panels) :]:
        place.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)
    return empty


def _lines(place: Axes, panel: Panel, series: list[Series]) -> None:
    for each in series:
        place.plot(each.times, each.values, label=each.name, linewidth=1.4)
    place.set_ylim(0, max(max(each.values) for each in series) * 1.1 or 1)
    place.yaxis.set_major_locator(MaxNLocator(5))
    place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: UNITS[panel.unit](value)))
    place.xaxis.set_major_locator(AutoDateLocator(minticks=2, maxticks=7))
    place.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    place.tick_params(labelsize=8)
    place.grid(alpha=0.25)
    if len(series) <= MOST_NAMED:
        place.legend(fontsize=7, loc="best", framealpha=0.6)


def _number(place: Axes, panel: Panel, series: Series) -> None:
    place.fill_between(series.times, series.values, alpha=0.15)
    place.set_ylim(0, max(series.values) * 1.6 or 1)
    place.set_xticks([])
    place.set_yticks([])
    shown = UNITS[panel.unit](series.values[-1])
    place.text(0.5, 0.5, shown, transform=place.transAxes, ha="center", va="center", fontsize=30)


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _bytes(value: float) -> str:
    for size, letter in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g} B"


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if 0 < abs(value) < 1 else f"{value:.3g} s"


UNITS: dict[str, Callable[[float], str]] = {
    "short": _short,
    "rowsps": lambda value: f"{_short(value)}/s",
    "bytes": _bytes,
    "s": _seconds,
    "percentunit": lambda value: f"{100 * value:.3g} %",
}
"""As Grafana calls them."""
