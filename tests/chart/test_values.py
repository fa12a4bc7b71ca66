"""A value that is misspelt or makes no sense is refused, by name, before anything is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, Chart

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kafka": {"broker": "kafka:9092"}}, "broker"),
    ({"kafka": {"brokers": "kafka"}}, "kafka.brokers"),
    ({"kafka": {"sasl": {"mechanism": "SCRAM"}}}, "kafka.sasl.mechanism"),
    ({"lookup": {"replicas": 2}}, "lookup"),
    ({"lookups": {"replica": 2}}, "replica"),
    ({"lookups": {"autoscaling": {"enabled": True}}}, "autoscaling"),
    ({"windows": {"replicas": 2}}, "replicas"),
    ({"operators": {"replicas": 2}}, "replicas"),
    ({"results": {"replicas": 0}}, "results.replicas"),
    ({"results": {"autoscaling": {"cpu": 0}}}, "results.autoscaling.cpu"),
    ({"shards": "many"}, "shards"),
    ({"logLevel": "LOUD"}, "logLevel"),
    ({"metrics": {"rules": "yes"}}, "metrics.rules"),
    ({"operators": {"resources": {"request": {"cpu": 1}}}}, "request"),
    ({"operators": {"persistence": {"size": "much"}}}, "operators.persistence.size"),
    ({"operators": {"spark": {"mode": "yarn"}}}, "operators.spark.mode"),
    ({"operators": {"spark": {"master": "k8s://here"}}}, "operators.spark.master"),
    ({"operators": {"spark": {"executors": {"memory": "2Gi"}}}}, "operators.spark.executors.memory"),
    ({"operators": {"spark": {"conf": {"executor.cores": 2}}}}, "executor.cores"),
    ({"environment": {"STAIRWISE_LOG": "DEBUG"}}, "STAIRWISE_LOG"),
    ({"networkPolicy": {"clients": [{"namespace": "prod"}]}}, "namespace"),
    ({"trialBroker": True}, "trialBroker"),
    ({"tls": {"secret": "Not A Name"}}, "tls.secret"),
    ({"insecure": "yes"}, "insecure"),
    ({"kafka": {"sasl": {"users": {"window": "user"}}}}, "window"),
    ({"volumes": {"tmp": "much"}}, "volumes.tmp"),
]


@pytest.mark.parametrize(("values", "said"), WRONG, ids=[json.dumps(values) for values, _ in WRONG])
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    refused = Chart(values, tmp_path).template()
    assert refused.returncode != 0
    assert "values don't meet the specifications of the schema" in refused.stderr
    assert said in refused.stderr


def leaves(values: dict[str, Any], path: str = "") -> list[str]:
    """Every value by its path; what is empty, and what the cluster's owner fills in, counts as one."""
    found = []
    for name, value in values.items():
        here = f"{path}.{name}" if path else name
        found += leaves(value, here) if isinstance(value, dict) and value and name != "resources" else [here]
    return found


def test_the_readme_describes_every_value() -> None:
    page = (CHART / "README.md").read_text()
    table = page[page.index("| value |") :]
    described = set()
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", cell)
        described |= {first, *(first.rpartition(".")[0] + o if o.startswith(".") else o for o in others)}
    services = ("windows", "ingest", "operators", "results", "lookups")
    described |= {d.replace("<service>", s) for d in described if "<service>" in d for s in services}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [leaf for leaf in leaves(values) if leaf not in described] == []
