"""The chart, installed: helm and kubectl, and a client inside and outside of the cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stairwise.system.ports import free_ports
from tests.chart.rendering import CHART, HELM
from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import BUILT, run
from tests.e2e.conftest import STAIRWISE

NAME = "demo"
CLIENT = "client"
REPOSITORY = "localhost/stairwise"
TAG = "0.1.0"
IMAGES = ("windows", "ingest", "operators", "results", "lookups", "broker")
SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "2Gi"}}
"""The node is one small machine: pods ask for little, so that an update has room for one more."""

VALUES: dict[str, Any] = {
    "image": {"repository": REPOSITORY, "tag": TAG, "pullPolicy": "Never"},
    "insecure": True,  # but for the test that brings certificates and tokens along
    "networkPolicy": {"clients": [{"podSelector": {}}]},
    "trialBroker": {"enabled": True, "resources": SMALL},
    **{service: {"resources": SMALL} for service in ("windows", "ingest", "operators", "results", "lookups")},
}


@dataclass
class Release:
    plane: ControlPlane
    directory: Path
    values: dict[str, Any] = field(default_factory=lambda: dict(VALUES))

    def helm(self, *arguments: str, within: float = 600, check: bool = True) -> str:
        homes = [f"HELM_{home}_HOME={self.directory}" for home in ("CACHE", "CONFIG", "DATA")]
        return run("env", *homes, HELM, f"--kubeconfig={self.plane.kubeconfig}", *arguments, within=within, check=check)

    def apply(self, verb: str, *options: str, **changes: Any) -> str:
        """Install or upgrade, with these values beside the usual ones."""
        self.values |= changes
        path = self.directory / "values.json"
        path.write_text(json.dumps(self.values))
        return self.helm(verb, NAME, str(CHART), f"--values={path}", *options, within=900)

    def forget(self) -> None:
        """Delete what a release that was uninstalled has left: its checkpoint, and the trial broker's data."""
        self.plane.kubectl("delete", "persistentvolumeclaims", "--all")

    def make_secret(self, name: str, **held: str) -> None:
        literals = [f"--from-literal={key}={value}" for key, value in held.items()]
        self.plane.kubectl("create", "secret", "generic", name, *literals)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        selector = f"--selector=app.kubernetes.io/instance={NAME}"
        items: list[dict[str, Any]] = json.loads(self.plane.kubectl("get", kind, selector, "--output=json"))["items"]
        return items

    def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["metadata"]["name"]: pod for pod in self.objects("pods")}

    def events(self, reason: str) -> dict[str, list[str]]:
        """What Kubernetes has said for a reason, by the pod that it is about."""
        found = json.loads(self.plane.kubectl("get", "events", f"--field-selector=reason={reason}", "--output=json"))
        said: dict[str, list[str]] = {}
        for event in found["items"]:
            said.setdefault(event["involvedObject"]["name"], []).append(event["message"])
        return said

    def address(self, service: str) -> str:
        path = "{.spec.clusterIP}:{.spec.ports[0].port}"
        return self.plane.kubectl("get", "service", f"{NAME}-stairwise-{service}", f"--output=jsonpath={path}")

    def start_client(self) -> None:
        """A pod with the command line in it: Kafka is reached by names that the cluster alone knows."""
        (configuration,) = [c for c in self.objects("configmaps") if c["metadata"]["name"] == f"{NAME}-stairwise"]
        told = [f"--env={name}={value}" for name, value in configuration["data"].items()]
        image = f"{REPOSITORY}/windows:{TAG}"
        forever = ("--command", "--", "python", "-c", "import signal; signal.pause()")
        self.plane.kubectl("run", CLIENT, f"--image={image}", "--image-pull-policy=Never", *told, *forever)
        self.plane.kubectl("wait", f"pod/{CLIENT}", "--for=condition=Ready", "--timeout=60s")

    def inside(self, *arguments: str, stdin: str | None = None, within: float = 300) -> str:
        """A verb of the command line, in the cluster."""
        return self.plane.kubectl("exec", "--stdin", CLIENT, "--", "stairwise", *arguments, stdin=stdin, within=within)

    @contextmanager
    def forwarded(self, service: str) -> Iterator[str]:
        """A port of this machine that kubectl forwards to a Service, as NOTES.txt tells people to do."""
        (port,) = free_ports(1)
        remote = self.address(service).rpartition(":")[2]
        forwarding = subprocess.Popen(
            [
                BUILT / "bin" / "kubectl",
                f"--kubeconfig={self.plane.kubeconfig}",
                "port-forward",
                f"service/{NAME}-stairwise-{service}",
                f"{port}:{remote}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert forwarding.stdout is not None
            assert "Forwarding from" in forwarding.stdout.readline()
            yield f"127.0.0.1:{port}"
        finally:
            forwarding.terminate()
            forwarding.wait(20)

    def outside(self, *arguments: str, results: str | None = None) -> subprocess.Popen[str]:
        """A verb of the command line on this machine, which reaches Services by their addresses."""
        told = {
            "STAIRWISE_REGISTRY": self.address("windows"),
            "STAIRWISE_RESULTS": results or self.address("results"),
            "STAIRWISE_BROKERS": "127.0.0.1:1",
            "STAIRWISE_INSECURE": "yes",
        }
        return subprocess.Popen(
            [*STAIRWISE, *arguments], env={**os.environ, **told}, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
        )
