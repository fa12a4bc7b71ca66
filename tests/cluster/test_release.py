"""The chart in real pods: results as the local engine has them, whatever is restarted, killed or upgraded meanwhile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ADDRESS
from tests.cluster.node import Node
from tests.cluster.release import NAME, SMALL, Release
from tests.e2e.conftest import STAIRWISE, wait_for
from tests.integration.secured_broker import PASSWORD, USER, secured_broker
from tests.unit.platform.secured_servers import CERTIFICATES, write_tokens

pytestmark = pytest.mark.cluster

START = 1_700_000_000_000
WORKLOADS = ("deployment/windows", "statefulset/ingest", "deployment/operators", "deployment/results")
WORKLOADS += ("statefulset/lookups", "statefulset/broker")
NEEDED_TO_PUBLISH = {"windows", "broker"}
"""There is one of each: while it is replaced, `publish` says that it is away."""
DECLARED = "CREATE STREAM {0} (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
SELECT = "SELECT ticker, COUNT(*) AS n, SUM(qty) AS total FROM {0} [TUMBLE 10 SECONDS] GROUP BY ticker"


def events(first: int, count: int) -> str:
    rows = ({"ts": START + 1000 * n, "ticker": f"T{n % 3}", "qty": n} for n in range(first, first + count))
    return "".join(json.dumps(row) + "\n" for row in rows)


def locally(directory: Path, stream: str, data: str) -> list[str]:
    """What `stairwise run` prints for the same script over the same events."""
    script, file = directory / "script.cql", directory / "events.jsonl"
    script.write_text(DECLARED.format(stream) + f"CREATE QUERY {stream}_q AS {SELECT.format(stream)};")
    file.write_text(data)
    command = [*STAIRWISE, "run", str(script), "--data", f"{stream}={file}", "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


class Subscriber:
    """A subscription from outside that goes on while the tests disturb what serves it."""

    def __init__(self, release: Release, stream: str, results: str | None = None) -> None:
        self._release, self._stream = release, stream
        self._published = 0
        self._process = release.outside("subscribe", f"{stream}_q", "--from", "earliest", results=results)

    def publish(self, count: int = 30, *options: str) -> None:
        self._release.inside("publish", self._stream, "-", *options, stdin=events(self._published, count))
        self._published += count

    def finish(self) -> list[str]:
        """Seal the stream: every line that was printed since the beginning."""
        self.publish(1, "--seal")
        out, _ = self._process.communicate(timeout=300)
        assert self._process.returncode == 0
        return out.splitlines()

    @property
    def data(self) -> str:
        return events(0, self._published)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def declare(release: Release, stream: str) -> None:
    release.inside("sql", "-e", DECLARED.format(stream) + f"CREATE QUERY {stream}_q AS {SELECT.format(stream)}")


@pytest.fixture
def subscriber(release: Release, request: pytest.FixtureRequest) -> Iterator[Subscriber]:
    stream = str(request.node.originalname).removeprefix("test_")[:40]
    declare(release, stream)
    subscriber = Subscriber(release, stream)
    yield subscriber
    subscriber.stop()


def await_ready(release: Release) -> None:
    def is_ready() -> bool:
        pods = release.pods()
        states = [pod["status"].get("containerStatuses", [{}])[0].get("ready", False) for pod in pods.values()]
        return len(pods) == len(WORKLOADS) and all(states)

    wait_for(is_ready, "every pod is ready", within=600)


def test_all_pods_are_ready(release: Release) -> None:
    await_ready(release)


def test_helm_test_passes(release: Release) -> None:
    assert "Phase:          Succeeded" in release.helm("test", NAME, "--timeout=5m")


def test_results_over_a_forwarded_port_equal_the_local_engine(release: Release, tmp_path: Path) -> None:
    declare(release, "forwarded")
    with release.forwarded("results") as address:
        subscriber = Subscriber(release, "forwarded", address)
        try:
            subscriber.publish(100)
            lines = subscriber.finish()
        finally:
            subscriber.stop()
    assert len(lines) > 30
    assert lines == locally(tmp_path, "forwarded", subscriber.data)


def test_a_restart_of_everything(release: Release, subscriber: Subscriber, tmp_path: Path) -> None:
    """Nothing is lost and nothing comes twice."""
    subscriber.publish()
    for workload in WORKLOADS:
        kind, _, service = workload.partition("/")
        target = f"{kind}/{NAME}-stairwise-{service}"
        release.plane.kubectl("rollout", "restart", target)
        if service not in NEEDED_TO_PUBLISH:
            subscriber.publish()
        release.plane.kubectl("rollout", "status", target, "--timeout=5m", within=320)
        subscriber.publish()
    assert subscriber.finish() == locally(tmp_path, "a_restart_of_everything", subscriber.data)


def test_every_pod_killed_once(release: Release, subscriber: Subscriber, tmp_path: Path) -> None:
    """Nothing is lost and nothing comes twice."""
    await_ready(release)
    subscriber.publish()
    for name in release.pods():
        release.plane.kubectl("delete", "pod", name, "--force", "--grace-period=0")
        await_ready(release)
        subscriber.publish()
    assert subscriber.finish() == locally(tmp_path, "every_pod_killed_once", subscriber.data)


def test_pods_without_kafka_say_so_and_recover(release: Release, subscriber: Subscriber, tmp_path: Path) -> None:
    await_ready(release)
    subscriber.publish()
    broker = f"statefulset/{NAME}-stairwise-broker"
    release.plane.kubectl("scale", broker, "--replicas=0")
    release.plane.kubectl("wait", f"pod/{NAME}-stairwise-broker-0", "--for=delete", "--timeout=120s")
    for name in release.pods():
        release.plane.kubectl("delete", "pod", name)

    def say_so() -> bool:
        pods = release.pods()
        ready = [pod["status"].get("containerStatuses", [{}])[0].get("ready", False) for pod in pods.values()]
        logs = [release.plane.kubectl("logs", name, check=False) for name in pods]
        unhealthy = release.events("Unhealthy")
        return (
            len(pods) == len(WORKLOADS) - 1
            and not any(ready)
            and all("does not answer" in log for log in logs)
            and all(any("NOT_SERVING" in said for said in unhealthy.get(name, [])) for name in pods)
        )

    wait_for(say_so, "every pod says that Kafka does not answer", within=300)
    release.plane.kubectl("scale", broker, "--replicas=1")
    await_ready(release)
    subscriber.publish()
    assert subscriber.finish() == locally(tmp_path, "pods_without_kafka_say_so_and_recover", subscriber.data)


def test_an_upgrade_under_way(release: Release, subscriber: Subscriber, tmp_path: Path) -> None:
    subscriber.publish()
    release.apply("upgrade", "--wait", "--timeout=10m", logLevel="DEBUG")
    subscriber.publish()
    assert subscriber.finish() == locally(tmp_path, "an_upgrade_under_way", subscriber.data)


def test_an_uninstalled_release_leaves_its_checkpoint_and_nothing_else(release: Release, node: Node) -> None:
    release.helm("uninstall", NAME, "--wait", "--timeout=5m")
    kinds = "deployments,statefulsets,services,configmaps,pods,serviceaccounts,networkpolicies"
    wait_for(lambda: release.objects(kinds) == [], "everything is gone")
    left = {claim["metadata"]["name"] for claim in release.objects("persistentvolumeclaims")}
    assert left == {f"{NAME}-stairwise-operators", f"data-{NAME}-stairwise-broker-0"}


def test_executors_in_pods_of_their_own(release: Release, tmp_path: Path) -> None:
    """Installed anew; one executor is killed while reports are on their way."""
    release.forget()
    executors = {"instances": 1, "cores": 1, "memory": "1g", "memoryOverhead": "512m"}
    spark = {"mode": "kubernetes", "executors": executors}
    release.apply("install", "--wait", "--timeout=10m", operators={"resources": SMALL, "spark": spark})

    def made() -> list[str]:
        label = "app.kubernetes.io/component"
        pods = release.pods().items()
        return [name for name, pod in pods if pod["metadata"]["labels"].get(label) == "executors"]

    declare(release, "spread")
    subscriber = Subscriber(release, "spread")
    try:
        subscriber.publish()
        wait_for(lambda: len(made()) == 1, "there is an executor")
        release.plane.kubectl("delete", "pod", *made(), "--force", "--grace-period=0")
        subscriber.publish()
        lines = subscriber.finish()
    finally:
        subscriber.stop()
    assert lines == locally(tmp_path, "spread", subscriber.data)


def certificate(owner: str) -> dict[str, str]:
    """What a secret for TLS holds."""
    held = {"tls.crt": f"{owner}.pem", "tls.key": f"{owner}.key", "ca.crt": "ca.pem"}
    return {name: (CERTIFICATES / file).read_text() for name, file in held.items()}


def test_tls_and_tokens(release: Release, tmp_path: Path) -> None:
    """`helm test` passes with the token that it is given; who comes without TLS is not heard."""
    tokens = write_tokens(tmp_path / "tokens.toml", tester=["admin", "define", "publish", "read"])
    release.make_secret("certificate", **certificate("server"))
    release.make_secret("tokens", **{"tokens.toml": tokens.read_text()})
    release.make_secret("tester", token="tester")
    release.apply(
        "upgrade",
        "--wait",
        "--timeout=10m",
        tls={"secret": "certificate", "serverName": "localhost", "mutual": True},
        tokens={"secret": "tokens"},
        tests={"tokenSecret": "tester"},
    )
    assert "Phase:          Succeeded" in release.helm("test", NAME, "--timeout=5m")
    with pytest.raises(RuntimeError, match="no answer"):
        release.inside("sql", "-e", "SHOW STREAMS")


def test_a_kafka_outside_of_the_cluster_behind_tls_and_sasl(release: Release, tmp_path: Path) -> None:
    """As the chart is meant to be used; with everything else that the tests before have switched on."""
    release.helm("uninstall", NAME, "--wait", "--timeout=5m")
    release.forget()
    release.make_secret("kafka", **certificate("client"))
    release.make_secret("login", username=USER, password=PASSWORD)
    with secured_broker(tmp_path, ADDRESS) as kafka:
        release.apply(
            "install",
            "--wait",
            "--timeout=10m",
            trialBroker={"enabled": False},
            kafka={
                "brokers": kafka.bootstrap,
                "tls": {"secret": "kafka", "clientCertificate": True},
                "sasl": {"secret": "login"},
            },
        )
        assert "Phase:          Succeeded" in release.helm("test", NAME, "--timeout=5m")
        release.helm("uninstall", NAME, "--wait", "--timeout=5m")
