"""What the cluster is made of: programs built by deploy/kubernetes/build, and others that Debian has packages of."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stairwise.platform.config import SOURCE_TREE

BUILT = Path(os.environ.get("STAIRWISE_KUBERNETES", SOURCE_TREE / ".tools" / "kubernetes"))
OWN = (
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "pause",
)
PACKAGED = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "openssl": "openssl",
    "ip": "iproute2",
}
NETWORK_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")


def missing() -> list[str]:
    """What keeps the tests from running here now, in words."""
    return [f"{name}: make kubernetes" for name in OWN if not (BUILT / "bin" / name).exists()] + unavailable()


def unavailable() -> list[str]:
    """What `make test-cluster` cannot make by itself."""
    found = [f"{name}: apt-get install {package}" for name, package in PACKAGED.items() if shutil.which(name) is None]
    if shutil.which("go") is None:
        found.append("go 1.24 or newer: https://go.dev/dl")
    if network_plugins() is None:
        found.append("ptp: apt-get install containernetworking-plugins")
    if os.geteuid() != 0:
        found.append("the rights of root")
    return found


def network_plugins() -> Path | None:
    places = [*os.environ.get("CNI_PATH", "").split(":"), *NETWORK_PLUGINS]
    return next((Path(place) for place in places if place and (Path(place) / "ptp").exists()), None)


@dataclass(frozen=True)
class Running:
    """A program that was started here."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(name: str, *arguments: str, directory: Path, own: bool = False) -> Running:
    program = str(BUILT / "bin" / name) if own else name
    log = directory / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Running(name, process, log)


def run(*command: str | Path, within: float = 120, stdin: str | None = None, check: bool = True) -> str:
    """What a command prints; if it fails, an error with what it said."""
    done = subprocess.run(
        [str(word) for word in command], input=stdin, capture_output=True, text=True, timeout=within, check=False
    )
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout
