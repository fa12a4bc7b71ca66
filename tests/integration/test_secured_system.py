"""The services behind TLS and tokens, on a Kafka that takes nobody without TLS and SASL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from stairwise.client import Client, Credentials
from stairwise.errors import ConfigError, LimitError, PermissionDeniedError, StairwiseError, UnauthenticatedError
from stairwise.platform import kafka
from stairwise.platform.kafka_security import MECHANISMS
from stairwise.platform.security.scopes import METHODS
from stairwise.system.health import probe
from stairwise.system.ports import free_ports
from stairwise.system.system_part import Check
from tests.integration import authority_matrix
from tests.integration.secured_broker import CERTIFICATES, FEEDER, SecuredBroker, secured_broker
from tests.unit.platform.secured_servers import entry

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
TRUSTING = Credentials(ca=CERTIFICATES / "ca.pem")


def until(condition: Callable[[], bool], explain: Callable[[], str], within: float = 120) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@dataclass(frozen=True)
class Services:
    """Services that speak TLS and ask for tokens; ``variables`` is what they are told."""

    directory: Path
    variables: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        return {name: self.variables[f"STAIRWISE_{name.upper()}"] for name in ("registry", "results", "lookups")}

    def client(self, token: str | None) -> Client:
        credentials = replace(TRUSTING, token=token)
        return Client.connect(**self.addresses, brokers=self.variables["STAIRWISE_BROKERS"], credentials=credentials)

    @property
    def audited(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.directory / "audit.jsonl").read_text().splitlines()]

    def start(self, name: str, variable: str | None = None) -> None:
        """A service on the port that the variable says, until it is healthy, by TLS."""
        listen = self.variables[variable] if variable is not None else f"127.0.0.1:{free_ports(1)[0]}"
        environment = {**os.environ, **self.variables, "STAIRWISE_LISTEN": listen, "GRPC_ENABLE_FORK_SUPPORT": "0"}
        log = self.directory / f"{name}.log"
        with log.open("ab") as output:
            command = [sys.executable, "-m", f"services.{name}"]
            self.processes[name] = subprocess.Popen(command, env=environment, stderr=output, stdout=output)
        until(lambda: probe(Check("grpc", listen), 2).healthy, log.read_text)

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def services(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("services")
    (directory / "tokens.toml").write_text(
        entry("root", ["admin"])
        + entry("definer", ["define"], "max_queries = 2")
        + entry("publisher", ["publish"])
        + entry("reader", ["read"])
        + authority_matrix.tokens()
    )
    ports = free_ports(3)
    variables = {
        **broker.variables(directory, "SCRAM-SHA-512"),
        "STAIRWISE_DIR": str(directory),
        "STAIRWISE_REGISTRY": f"127.0.0.1:{ports[0]}",
        "STAIRWISE_RESULTS": f"127.0.0.1:{ports[1]}",
        "STAIRWISE_LOOKUPS": f"127.0.0.1:{ports[2]}",
        "STAIRWISE_TLS_CERT": str(CERTIFICATES / "server.pem"),
        "STAIRWISE_TLS_KEY": str(CERTIFICATES / "server.key"),
        "STAIRWISE_TLS_CA": str(CERTIFICATES / "ca.pem"),
        "STAIRWISE_TOKENS_FILE": str(directory / "tokens.toml"),
        "STAIRWISE_AUDIT_FILE": str(directory / "audit.jsonl"),
    }
    patch = pytest.MonkeyPatch()
    for name, value in variables.items():
        patch.setenv(name, value)
    services = Services(directory, variables)
    try:
        services.start("windows", "STAIRWISE_REGISTRY")
        yield services
    finally:
        for name in list(services.processes):
            services.stop(name)
        patch.undo()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_lets_a_client_in_and_a_wrong_password_does_not(
    broker: SecuredBroker, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in broker.variables(tmp_path, mechanism).items():
        monkeypatch.setenv(name, value)
    assert kafka.admin(broker.bootstrap).list_topics(timeout=30).brokers
    monkeypatch.delenv("STAIRWISE_KAFKA_PASSWORD_FILE")
    monkeypatch.setenv("STAIRWISE_KAFKA_PASSWORD", "guessed")
    with pytest.raises(KafkaException):
        kafka.admin(broker.bootstrap).list_topics(timeout=2)


def test_each_statement_needs_its_scope(services: Services) -> None:
    create = "CREATE STREAM scoped (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 1"
    select = "CREATE QUERY {} AS SELECT COUNT(*) AS n FROM scoped [TUMBLE 10 SECONDS]"
    with services.client("publisher") as publisher, services.client("definer") as definer:
        for statement in (
            create,
            "ALTER STREAM scoped SET LATENESS 1s",
            "DROP STREAM scoped",
            "DROP QUERY q",
            f"SEAL STREAM scoped; {create}",
        ):
            with pytest.raises(PermissionDeniedError, match="needs the scope define"):
                publisher.execute(statement)
        definer.execute(create)
        assert publisher.streams() == []
        with pytest.raises(StairwiseError, match="there is no stream 'scoped'"):
            publisher.execute("SEAL STREAM scoped")
        definer.execute("GRANT PUBLISH ON scoped TO publisher")
        assert [(stream.name, stream.owner) for stream in publisher.streams()] == [("scoped", "definer")]
        assert publisher.publish("scoped", [{"ts": START, "v": 1}]) == 1
        definer.execute(";".join(select.format(f"limited_{i}") for i in range(2)))
        with pytest.raises(LimitError, match="definer would have 3 queries, and may have 2"):
            definer.execute(select.format("limited_2"))
        definer.execute("DROP QUERY limited_0;" + select.format("limited_2"))
        with pytest.raises(PermissionDeniedError):
            publisher.queries()
        publisher.execute("SEAL STREAM scoped")
    with services.client("root") as root:
        root.execute(";".join(["DROP QUERY limited_1", "DROP QUERY limited_2", "DROP STREAM scoped"]))
    with services.client(None) as nobody, pytest.raises(UnauthenticatedError, match="asks for a token"):
        nobody.streams()
    refused = {(e["principal"], e["outcome"]) for e in services.audited if e["outcome"] != "done"}
    assert refused == {
        ("publisher", "refused: PermissionDeniedError"),
        ("publisher", "refused: NotFoundError"),
        ("definer", "refused: LimitError"),
        ("unknown", "refused: UnauthenticatedError"),
    }
    done = [(e["principal"], e["what"]) for e in services.audited if e["outcome"] == "done"]
    assert done[0] == ("definer", create)
    assert done[-1][0] == "root"


def test_a_publisher_says_what_kafka_lets_it_know(
    services: Services, broker: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.plain})

    def allow(kind: ResourceType, name: str, *operations: AclOperation) -> None:
        rights = [
            AclBinding(
                kind, name, ResourcePatternType.LITERAL, f"User:{FEEDER}", "*", operation, AclPermissionType.ALLOW
            )
            for operation in operations
        ]
        for answer in admin.create_acls(rights).values():
            answer.result()

    with services.client("root") as root:
        root.execute("CREATE STREAM fed (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 1")
        root.execute("GRANT PUBLISH ON fed TO publisher")
    allow(ResourceType.TOPIC, "in.fed", AclOperation.WRITE)
    for name, value in broker.variables(tmp_path, "SCRAM-SHA-512", FEEDER).items():
        monkeypatch.setenv(name, value)
    with services.client("publisher") as client:
        publisher = client.publisher("fed", tracked=True)
        assert publisher.publish([{"ts": START, "v": 1}]) == 1
        unknown = publisher.confirm(0)
        assert (unknown.rows, unknown.taken, unknown.waiting) == (1, None, None)
        assert "read the topics dlq.fed and late.fed, and describe the group stairwise-ingest" in str(unknown.untold)
        for topic in ("dlq.fed", "late.fed"):
            allow(ResourceType.TOPIC, topic, AclOperation.READ)
        allow(ResourceType.GROUP, "stairwise-ingest", AclOperation.DESCRIBE)
        publisher = client.publisher("fed", tracked=True)
        publisher.publish([{"ts": START, "v": 1}])
        known = publisher.confirm(0)
        assert (known.rows, known.taken, known.waiting, known.untold) == (1, 0, 1, None)
        assert client.publish("fed", [{"ts": START, "v": 1}]) == 1
    with services.client("root") as root:
        root.execute("DROP STREAM fed")


def test_limits_count_queries_that_were_registered_before_a_restart(services: Services) -> None:
    select = "CREATE QUERY owned_{0} AS SELECT COUNT(*) AS n FROM owned [TUMBLE 10 SECONDS]"
    with services.client("definer") as client:
        client.execute("CREATE STREAM owned (ts TIMESTAMP) TIMESTAMP BY ts PARTITIONS 1;" + select.format(0))
        services.stop("windows")
        services.start("windows", "STAIRWISE_REGISTRY")
        client.execute(select.format(1))
        with pytest.raises(LimitError):
            client.execute(select.format(2))
        client.execute("DROP QUERY owned_0; DROP QUERY owned_1; DROP STREAM owned")


def test_a_client_that_does_not_trust_the_server_gets_no_answer(services: Services) -> None:
    stranger = Credentials(ca=CERTIFICATES / "stranger.pem", token="root")
    with Client.connect(**services.addresses, credentials=stranger) as client, pytest.raises(ConfigError):
        client.streams()


def test_every_method_ends_for_every_kind_of_principal_as_the_security_page_prints(services: Services) -> None:
    with services.client("owner") as owner:
        owner.execute(authority_matrix.DECLARATIONS + authority_matrix.doomed())
        owner.publish(authority_matrix.STREAM, [{"ts": START + i * 1000, "k": "a"} for i in range(1, 60)])
    for name, variable in {"ingest": None, "lookups": "STAIRWISE_LOOKUPS", "results": "STAIRWISE_RESULTS"}.items():
        services.start(name, variable)

    def ended(kind: str, method: str) -> grpc.StatusCode:
        saying = authority_matrix.sayings(kind)[method]
        token = {"none": None, "admin": "root"}.get(kind, kind)
        return authority_matrix.call(services.addresses[saying.service], replace(TRUSTING, token=token), method, saying)

    printed = authority_matrix.printed()
    assert printed.keys() == METHODS.keys() == authority_matrix.sayings("none").keys()
    for method in ("/stairwise.v1.Results/Snapshot", "/stairwise.v1.Lookups/Lookup"):
        until(lambda method=method: ended("admin", method) is grpc.StatusCode.OK, lambda: "there is no report yet")
    found = {method: {kind: ended(kind, method) for kind in authority_matrix.KINDS} for method in printed}
    assert found == printed
    for name in ("ingest", "lookups", "results"):
        services.stop(name)


@pytest.mark.long
def test_an_event_passes_every_service_behind_tls_sasl_and_tokens(services: Services) -> None:
    for name, variable in {"ingest": None, "operators": None, "results": "STAIRWISE_RESULTS"}.items():
        services.start(name, variable)
    with (
        services.client("root") as root,
        services.client("publisher") as publisher,
        services.client("reader") as reader,
    ):
        root.execute(
            "CREATE STREAM passing (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
            "CREATE QUERY passed AS SELECT SUM(v) AS total FROM passing [TUMBLE 10 SECONDS];"
            "GRANT PUBLISH ON passing TO publisher; GRANT READ ON passed TO reader"
        )
        publisher.publish("passing", [{"ts": START + i, "v": i} for i in range(1, 5)])
        publisher.execute("SEAL STREAM passing")
        with pytest.raises(PermissionDeniedError):
            list(publisher.subscribe("passed", "earliest"))
        updates = list(reader.subscribe("passed", "earliest", patience=120))
    assert [change.row for update in updates for change in update.changes] == [{"total": 10}]
