"""The control plane: etcd, API server, controllers, scheduler, with one administrator.

The API server listens on an address that only this machine and its pods know; all others on loopback.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stairwise.system.ports import free_ports
from tests.cluster.programs import BUILT, Running, run, start
from tests.e2e.conftest import wait_for

TOKEN = "administrator-of-a-cluster-that-lives-for-minutes"
SERVICES = "10.96.0.0/16"
ADDRESS = "10.246.0.1"
"""The machine's own, as pods know it."""
LINK = "stairwise0"


@dataclass
class ControlPlane:
    directory: Path
    port: int
    running: list[Running] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def kubectl(self, *arguments: str, stdin: str | None = None, within: float = 120, check: bool = True) -> str:
        program = BUILT / "bin" / "kubectl"
        return run(program, f"--kubeconfig={self.kubeconfig}", *arguments, stdin=stdin, within=within, check=check)

    def read(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind, in all namespaces."""
        with self.ask(f"/api/v1/{kind}") as answer:
            items: list[dict[str, Any]] = json.load(answer)["items"]
            return items

    def ask(self, path: str) -> Any:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        asked = urllib.request.Request(f"https://{ADDRESS}:{self.port}{path}")
        asked.add_header("Authorization", f"Bearer {TOKEN}")
        return urllib.request.urlopen(asked, timeout=10, context=unchecked)

    def stop(self) -> None:
        for each in reversed(self.running):
            each.stop()
        run("ip", "link", "delete", LINK, check=False)


@contextmanager
def started_control_plane(directory: Path) -> Iterator[ControlPlane]:
    etcd_port, peer_port, port = free_ports(3)
    plane = ControlPlane(directory, port)
    try:
        _start(plane, f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}")
        yield plane
    finally:
        plane.stop()


def _start(plane: ControlPlane, etcd: str, peers: str) -> None:
    directory, port = plane.directory, plane.port
    run("ip", "link", "add", LINK, "type", "bridge")
    run("ip", "address", "add", f"{ADDRESS}/32", "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    run("ip", "route", "add", SERVICES, "dev", LINK)  # what is sent to a Service without rules must stay here
    key, public = directory / "accounts.key", directory / "accounts.pub"
    run("openssl", "genrsa", "-out", key, "2048")
    run("openssl", "rsa", "-in", key, "-pubout", "-out", public)
    (directory / "tokens.csv").write_text(f'{TOKEN},administrator,1,"system:masters"\n')
    plane.kubeconfig.write_text(json.dumps(_kubeconfig(port)))
    plane.running.append(
        start(
            "etcd",
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peers}",
            "--unsafe-no-fsync",
            directory=directory,
        )
    )
    plane.running.append(
        start(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--secure-port={port}",
            f"--bind-address={ADDRESS}",
            f"--advertise-address={ADDRESS}",
            f"--cert-dir={directory / 'certificates'}",
            f"--token-auth-file={directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={key}",
            f"--service-cluster-ip-range={SERVICES}",
            "--disable-admission-plugins=DefaultStorageClass",
            "--kubelet-preferred-address-types=InternalIP",
            directory=directory,
            own=True,
        )
    )
    wait_for(lambda: _answers(plane), "the API server is ready")
    common = (f"--kubeconfig={plane.kubeconfig}", "--secure-port=0", "--leader-elect=false")
    plane.running.append(
        start(
            "kube-controller-manager",
            *common,
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={directory / 'certificates' / 'apiserver.crt'}",
            directory=directory,
            own=True,
        )
    )
    plane.running.append(start("kube-scheduler", *common, directory=directory, own=True))
    wait_for(
        lambda: plane.kubectl("get", "serviceaccount", "default", "--output=name", check=False), "the controllers work"
    )


def _kubeconfig(port: int) -> dict[str, object]:
    server = {"server": f"https://{ADDRESS}:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": server}],
        "users": [{"name": "administrator", "user": {"token": TOKEN}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "administrator"}}],
        "current-context": "tests",
    }


def _answers(plane: ControlPlane) -> bool:
    try:
        with plane.ask("/readyz"):
            return True
    except OSError:
        return False
