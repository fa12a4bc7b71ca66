"""The one node: containerd runs the pods, kubelet starts them, kube-proxy and a small DNS let them find each other.

Its kubelet and its DNS listen where pods reach the machine, and nowhere else. Each pod has a link of its own to the
machine, and all traffic is routed by it: no bridge, so that what is sent to a Service comes back the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.system.ports import free_ports
from tests.cluster import traces
from tests.cluster.control_plane import ADDRESS, LINK, ControlPlane
from tests.cluster.names import Names
from tests.cluster.programs import BUILT, Running, network_plugins, run, start
from tests.e2e.conftest import wait_for

NAME = "machine"
PODS = "10.245.0.0/24"
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")

CONTAINERD = """\
version = 2
root = "{here}/containerd"
state = "{here}/state"
[grpc]
  address = "{here}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{here}/network"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


@dataclass
class Node:
    plane: ControlPlane
    directory: Path
    running: list[Running] = field(default_factory=list)
    names: Names | None = None
    forwarding: str = "0"

    @property
    def socket(self) -> Path:
        return self.directory / "containerd.sock"

    def ctr(self, *arguments: str, check: bool = True) -> str:
        return run("ctr", "--address", self.socket, "--namespace", "k8s.io", *arguments, within=600, check=check)

    def load(self, image: str) -> None:
        """An image of the builder's, under the same name."""
        archive = self.directory / "image.tar"
        archive.unlink(missing_ok=True)
        run("buildah", "push", "--quiet", image, f"docker-archive:{archive}:{image}", within=600)
        self.ctr("images", "import", str(archive))
        archive.unlink()

    def stop(self) -> None:
        """End every pod, then the programs, and take away what they have left on the machine.

        Each step is taken whatever becomes of those before it; what fails is raised when all are done.
        """
        with ExitStack() as steps:  # the last one first
            steps.callback(traces.check_gone, self.directory)
            steps.callback(traces.remove_files, self.directory / "containerd", self.directory / "kubelet")
            steps.callback(traces.remove_chains)
            steps.callback(traces.remove_groups)
            steps.callback(traces.remove_mounts, self.directory)
            steps.callback(traces.end_processes, self.directory)
            steps.callback(FORWARDING.write_text, self.forwarding)
            if self.names is not None:
                steps.callback(self.names.stop)
            steps.callback(run, BUILT / "bin" / "kube-proxy", "--cleanup", check=False)
            for each in self.running:
                steps.callback(each.stop)
            steps.callback(self._end_pods)

    def _end_pods(self) -> None:
        self.plane.kubectl("delete", "pods", "--all", "--all-namespaces", "--force", "--grace-period=0", check=False)
        wait_for(lambda: not self.ctr("tasks", "list", "--quiet", check=False).strip(), "every container has ended")


@contextmanager
def started_node(plane: ControlPlane, directory: Path) -> Iterator[Node]:
    """A node that is ready; whatever happens, nothing of it is left on the machine."""
    node = Node(plane, directory, forwarding=FORWARDING.read_text())
    try:
        _start(node)
        yield node
    finally:
        node.stop()


def _start(node: Node) -> None:
    plane, directory = node.plane, node.directory
    FORWARDING.write_text("1")
    run("ip", "route", "add", PODS, "dev", LINK)  # what is sent to a pod that is gone must stay here
    node.names = Names(ADDRESS, plane.read)
    _configure(node)
    node.running.append(start("containerd", "--config", str(directory / "containerd.toml"), directory=directory))
    wait_for(lambda: node.ctr("version", check=False), "containerd answers")
    _make_pause_image(node)
    node.running.append(
        start(
            "kubelet",
            f"--kubeconfig={plane.kubeconfig}",
            f"--config={directory / 'kubelet.json'}",
            f"--root-dir={directory / 'kubelet'}",
            f"--cert-dir={directory / 'certificates'}",
            f"--hostname-override={NAME}",
            f"--node-ip={ADDRESS}",
            directory=directory,
            own=True,
        )
    )
    node.running.append(start("kube-proxy", f"--config={directory / 'proxy.json'}", directory=directory, own=True))
    wait_for(lambda: " Ready" in plane.kubectl("get", "node", NAME, "--no-headers", check=False), "the node is ready")


def _configure(node: Node) -> None:
    here, kubeconfig = node.directory, node.plane.kubeconfig
    kubelet_port, kubelet_health, proxy_health, proxy_metrics = free_ports(4)
    (here / "containerd.toml").write_text(CONTAINERD.format(here=here, plugins=network_plugins()))
    (here / "network").mkdir()
    addresses = {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
    addresses["dataDir"] = str(here / "addresses")
    network = {"cniVersion": "0.4.0", "name": "tests", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses}]}
    (here / "network" / "10-tests.conflist").write_text(json.dumps(network))
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": ADDRESS,
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "failSwapOn": False,
        "failCgroupV1": False,
        "port": kubelet_port,
        "healthzPort": kubelet_health,
        "readOnlyPort": 0,
        "oomScoreAdj": 0,
        "evictionHard": {},
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "podLogsDir": str(here / "logs"),
        "syncFrequency": "5s",
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
    }
    (here / "kubelet.json").write_text(json.dumps(kubelet))
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": PODS,
        "healthzBindAddress": f"127.0.0.1:{proxy_health}",
        "metricsBindAddress": f"127.0.0.1:{proxy_metrics}",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "hostnameOverride": NAME,
    }
    (here / "proxy.json").write_text(json.dumps(proxy))


def _make_pause_image(node: Node) -> None:
    container = run("buildah", "from", "scratch").strip()
    run("buildah", "copy", "--quiet", container, BUILT / "bin" / "pause", "/pause")
    run("buildah", "config", "--entrypoint", '["/pause"]', container)
    run("buildah", "commit", "--quiet", container, "localhost/pause:1")
    run("buildah", "rm", container)
    node.load("localhost/pause:1")
