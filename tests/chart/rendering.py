"""The chart with several sets of values, and how to find one's way in what it renders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from stairwise.platform.config import DEFAULT_PORTS, SOURCE_TREE

CHART = SOURCE_TREE / "charts" / "stairwise"
HELM = Path(sys.executable).with_name("helm")
SERVICES = set(DEFAULT_PORTS)
WORKLOADS = {"Deployment", "StatefulSet"}
NAMED = {"ingest", "lookups"}
"""The services whose pods have names that survive them."""
Object = dict[str, Any]

VALUE_SETS: dict[str, Object] = {
    "defaults": {},
    "larger": {
        "kafka": {"brokers": "kafka-0.kafka:9092,kafka-1.kafka:9092"},
        "image": {"repository": "registry.example.com/stairwise", "tag": "1.2.3", "pullSecrets": ["registry"]},
        "logLevel": "DEBUG",
        "shards": 8,
        "telemetry": {"endpoint": "http://collector:4317"},
        "environment": {"OTEL_TRACES_SAMPLER": "always_on", "STAIRWISE_INGEST_LINGER_MS": "20"},
        "ingest": {"replicas": 3, "priorityClassName": "high"},
        "results": {"replicas": 3, "podAnnotations": {"example.com/team": "streams"}},
        "lookups": {"replicas": 4, "nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]},
        "operators": {"spark": {"master": "local[8]", "uiPort": 4040}, "persistence": {"storageClass": "ssd"}},
        "spreadOver": ["topology.kubernetes.io/zone", "kubernetes.io/hostname"],
    },
    "what is there already": {
        "serviceAccount": {"create": False, "name": "mine"},
        "operators": {"persistence": {"existingClaim": "my-checkpoint"}},
        "networkPolicy": {"enabled": False},
    },
    "executors": {
        "image": {"pullSecrets": ["registry"]},
        "operators": {"spark": {"mode": "kubernetes", "conf": {"spark.executor.extraJavaOptions": "-Xss4m"}}},
    },
    "secured": {
        "kafka": {
            "brokers": "kafka:9093",
            "tls": {"secret": "kafka-tls", "clientCertificate": True},
            "sasl": {"secret": "kafka-user"},
        },
        "tls": {"secret": "grpc-tls", "serverName": "stairwise.prod", "mutual": True},
        "tokens": {"secret": "tokens"},
        "tests": {"tokenSecret": "tester"},
        "networkPolicy": {
            "clients": [{"namespaceSelector": {"matchLabels": {"team": "desk"}}}],
            "scrapers": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        },
    },
    "watched and scaled": {
        "metrics": {
            "podMonitor": True,
            "rules": "prometheusRule",
            "dashboards": True,
            "labels": {"release": "prometheus"},
        },
        "ingest": {"autoscaling": {"enabled": True, "min": 2, "max": 6}},
        "results": {"autoscaling": {"enabled": True}},
        "lookups": {"replicas": 2},
    },
    "trial": {
        "trialBroker": {"enabled": True, "persistence": {"enabled": False}},
        "metrics": {"rules": "configMap", "annotations": False},
    },
    "trial that lasts": {"trialBroker": {"enabled": True}},
    "insecure": {
        "insecure": True,
        "trialBroker": {"enabled": True},
        "networkPolicy": {"clients": [{"podSelector": {}}]},
    },
    "a Kafka user for each service": {
        "kafka": {
            "brokers": "kafka-0.kafka:9093,kafka-1.kafka:9094",
            "sasl": {"users": {s: f"kafka-{s}" for s in ("windows", "ingest", "operators", "results", "lookups")}},
        },
        "networkPolicy": {
            "brokers": [{"namespaceSelector": {"matchLabels": {"name": "kafka"}}}],
            "egress": [{"ports": [{"port": 4318}]}],
        },
        "lookups": {"replicas": 2, "resources": {"limits": {"cpu": 1}}},
        "volumes": {"scratch": "50Gi"},
    },
}


def helm(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HELM_CACHE_HOME": str(directory), "HELM_CONFIG_HOME": str(directory)}
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, env=environment, check=False)


class Chart:
    """The chart with one set of values, rendered as release ``demo`` into namespace ``prod``."""

    def __init__(self, values: Mapping[str, Any], directory: Path) -> None:
        self.values = values
        self._directory = directory
        self._values = directory / "values.json"
        self._values.write_text(json.dumps(values))

    def lint(self) -> subprocess.CompletedProcess[str]:
        return helm("lint", "--strict", str(CHART), "--values", str(self._values), directory=self._directory)

    def template(self) -> subprocess.CompletedProcess[str]:
        arguments = ("template", "demo", str(CHART), "--namespace", "prod", "--values", str(self._values))
        return helm(*arguments, directory=self._directory)

    @cached_property
    def objects(self) -> list[Object]:
        rendered = self.template()
        assert rendered.returncode == 0, rendered.stderr
        return [document for document in yaml.safe_load_all(rendered.stdout) if document is not None]

    def of(self, *kinds: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] in kinds]

    def named(self, kind: str, name: str) -> Object:
        (found,) = [each for each in self.of(kind) if each["metadata"]["name"] == name]
        return found

    @property
    def workloads(self) -> Iterator[Object]:
        """Those of the services, without the trial broker."""
        return (each for each in self.of(*WORKLOADS) if service_of(each) in SERVICES)

    @property
    def pods(self) -> dict[str, dict[str, str]]:
        """The labels of the pods of each service, of executors too."""
        found = {service_of(w): w["spec"]["template"]["metadata"]["labels"] for w in self.of(*WORKLOADS)}
        for configuration in self.of("ConfigMap"):
            if "executor.yaml" in configuration["data"]:
                executor = yaml.safe_load(configuration["data"]["executor.yaml"])
                found[service_of(executor)] = executor["metadata"]["labels"]
        return found

    def secret(self, name: str) -> dict[str, str]:
        """What a Secret that the chart makes holds."""
        return {key: b64decode(value).decode() for key, value in self.named("Secret", name)["data"].items()}

    def workload(self, service: str) -> Object:
        (found,) = [each for each in self.workloads if service_of(each) == service]
        return found

    def variables(self, workload: Object) -> dict[str, str]:
        """The environment that a container gets: from the ConfigMap, then its own, as Kubernetes does it."""
        container = container_of(workload)
        (reference,) = container["envFrom"]
        given: dict[str, str] = dict(self.named("ConfigMap", reference["configMapRef"]["name"])["data"])
        for variable in container["env"]:
            value = variable.get("value", f"{service_of(workload)}-0")
            given[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda m: given[m[1]], value)
        return given


def service_of(each: Object) -> str:
    name: str = each["metadata"]["labels"]["app.kubernetes.io/component"]
    return name


def pod_of(each: Object) -> Object:
    """The pod that an object makes, or is."""
    pod: Object = each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"]
    return pod


def container_of(each: Object) -> Object:
    (container,) = pod_of(each)["containers"]
    found: Object = container
    return found
