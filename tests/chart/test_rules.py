"""The rules are what Prometheus understands, each alert fires on what it is for, and the guide explains it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from stairwise.platform.config import SOURCE_TREE
from tests.chart.rendering import CHART, VALUE_SETS, Chart
from tests.chart.tools import tool

RULES = CHART / "rules" / "stairwise.yaml"
CASES = Path(__file__).with_name("rules_test.yaml")
GUIDE = SOURCE_TREE / "docs" / "operations.md"


def groups() -> list[dict[str, Any]]:
    return list(yaml.safe_load(RULES.read_text())["groups"])


def alerts() -> list[str]:
    return [rule["alert"] for group in groups() for rule in group["rules"] if "alert" in rule]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("promtool"), *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_promtool_finds_nothing_wrong() -> None:
    checked = run("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_on_what_they_are_for_and_leave_the_rest_in_peace(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.read_text().replace("RULES", str(RULES)))
    tested = run("test", "rules", str(cases))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_case() -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    tested = {t["alertname"] for case in cases for t in case.get("alert_rule_test", []) if t.get("exp_alerts")}
    assert tested == set(alerts())


def test_the_guide_says_of_every_alert_what_to_do() -> None:
    explained = re.findall(r"^\| `(Stairwise\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert explained == alerts()


def test_the_chart_hands_the_rules_on_as_they_are(tmp_path: Path) -> None:
    watched = Chart(VALUE_SETS["watched and scaled"], tmp_path)
    (rule,) = watched.of("PrometheusRule")
    assert rule["spec"]["groups"] == groups()
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    trial = Chart(VALUE_SETS["trial"], tmp_path)
    assert (
        yaml.safe_load(trial.named("ConfigMap", "demo-stairwise-rules")["data"]["stairwise.yaml"])["groups"] == groups()
    )
