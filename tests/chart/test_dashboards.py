"""The dashboards in the chart are those of the source, and only ask for what is measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.dashboards.catalogue import DASHBOARDS
from deploy.dashboards.panels import Dashboard
from tests.chart.rendering import CHART, VALUE_SETS, Chart


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda d: d.name)
def test_the_chart_has_what_make_dashboards_writes(dashboard: Dashboard) -> None:
    written = json.loads((CHART / "dashboards" / f"{dashboard.name}.json").read_text())
    assert written == dashboard.json(), "make dashboards"


def test_there_is_no_other_dashboard() -> None:
    assert {path.stem for path in (CHART / "dashboards").iterdir()} == {d.name for d in DASHBOARDS}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda d: d.name)
def test_every_panel_says_what_it_shows_and_no_two_overlap(dashboard: Dashboard) -> None:
    panels = dashboard.json()["panels"]
    assert all(panel["title"] and panel["description"] for panel in panels)
    assert len({(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}) == len(panels)
    for panel in panels:
        for target in panel["targets"]:
            assert target["legendFormat"] or panel["type"] == "stat"
            # A legend by a label that the query has summed away would be empty.
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"])


def test_grafanas_sidecar_finds_them(tmp_path: Path) -> None:
    maps = [
        o
        for o in Chart(VALUE_SETS["watched and scaled"], tmp_path).of("ConfigMap")
        if "grafana_dashboard" in o["metadata"]["labels"]
    ]
    shown = [json.loads(text) for each in maps for text in each["data"].values()]
    assert sorted(d["uid"] for d in shown) == sorted(f"stairwise-{d.name}" for d in DASHBOARDS)
