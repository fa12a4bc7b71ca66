"""A dashboard as data, and as the JSON that Grafana reads.

Panels stand three in a row, in the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ACROSS = 3
WIDTH, HEIGHT = 24 // ACROSS, 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Line:
    """One query of a panel; ``legend`` names its series by their labels."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A plot over time, or with ``number`` the last value alone."""

    title: str
    description: str
    lines: tuple[Line, ...]
    unit: str = "short"
    number: bool = False


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    panels: Sequence[Panel]

    def json(self) -> dict[str, Any]:
        return {
            "uid": f"stairwise-{self.name}",
            "title": f"Stairwise / {self.title}",
            "tags": ["stairwise"],
            "schemaVersion": 39,
            "version": 1,
            "editable": True,
            "refresh": "10s",
            "time": {"from": "now-30m", "to": "now"},
            "templating": {
                "list": [{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
            },
            "links": [
                {
                    "title": "Stairwise",
                    "type": "dashboards",
                    "tags": ["stairwise"],
                    "asDropdown": True,
                    "keepTime": True,
                }
            ],
            "panels": [_panel(number, panel) for number, panel in enumerate(self.panels)],
        }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, ACROSS)
    options: dict[str, Any] = (
        {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "area"}
        if panel.number
        else {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    )
    return {
        "id": number + 1,
        "type": "stat" if panel.number else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": line.expr, "legendFormat": line.legend}
            for at, line in enumerate(panel.lines)
        ],
    }


def plot(title: str, description: str, *lines: tuple[str, str], unit: str = "short") -> Panel:
    return Panel(title, description, tuple(Line(*line) for line in lines), unit)


def number(title: str, description: str, expr: str, unit: str = "short") -> Panel:
    return Panel(title, description, (Line(expr),), unit, number=True)
