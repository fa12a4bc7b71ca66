"""A broker that takes clients only by TLS with a certificate of theirs, and by SASL, and lets one of its users do what
it is allowed to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports

CERTIFICATES = Path(__file__).parents[1] / "certificates"
FEEDER = "feeder"
"""A user without rights of its own, with the same password."""
USER, PASSWORD = "stairwise", 'open "sesame" \\o/'


@dataclass(frozen=True)
class SecuredBroker:
    """Where it is, and the variables that a process needs to be let in."""

    bootstrap: str
    plain: str
    """The listener that asks for nothing."""

    def variables(self, directory: Path, mechanism: str, user: str = USER) -> dict[str, str]:
        password = directory / "password"
        password.write_text(PASSWORD + "\n")
        return {
            "STAIRWISE_BROKERS": self.bootstrap,
            "STAIRWISE_KAFKA_CA": str(CERTIFICATES / "ca.pem"),
            "STAIRWISE_KAFKA_CERT": str(CERTIFICATES / "client.pem"),
            "STAIRWISE_KAFKA_KEY": str(CERTIFICATES / "client.key"),
            "STAIRWISE_KAFKA_USER": user,
            "STAIRWISE_KAFKA_PASSWORD_FILE": str(password),
            "STAIRWISE_KAFKA_MECHANISM": mechanism,
        }


@contextmanager
def secured_broker(directory: Path, host: str = "127.0.0.1") -> Iterator[SecuredBroker]:
    port, controller_port, secured_port = free_ports(3)
    installation = find_installation(os.environ)
    templates = _templates(installation.templates, directory / "templates", f"{host}:{secured_port}")
    broker = Broker(replace(installation, templates=templates), directory / "broker", port, controller_port)
    broker.prepare()
    running = launch(broker.part(), directory)
    try:
        await_healthy(running)
        _add_users(broker.address)
        yield SecuredBroker(f"{host}:{secured_port}", broker.address)
    finally:
        stop(running)


def _templates(original: Path, copy: Path, secured: str) -> Path:
    """The broker's templates with one more listener."""
    copy.mkdir()
    (copy / "log4j2.properties").write_bytes((original / "log4j2.properties").read_bytes())
    identity = copy / "identity.pem"
    identity.write_bytes((CERTIFICATES / "server.key").read_bytes() + (CERTIFICATES / "server.pem").read_bytes())
    login = f'user_{USER}="{_quoted(PASSWORD)}"'
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "plain.sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};",
        "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(CERTIFICATES / "ca.pem"),
        "ssl.client.auth": "required",
    }
    lines = []
    for line in (original / "server.properties").read_text().splitlines():
        name = line.partition("=")[0]
        if name in ("listeners", "advertised.listeners"):
            line += f",SECURED://{secured}"
        if name == "listener.security.protocol.map":
            line += ",SECURED:SASL_SSL"
        lines.append(line)
    lines += [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users=User:ANONYMOUS;User:{USER}",
    ]
    lines += [f"listener.name.secured.{name}={value}" for name, value in settings.items()]
    (copy / "server.properties").write_text("\n".join(lines) + "\n")
    return copy


def _quoted(text: str) -> str:
    """Inside JAAS, inside a properties file."""
    in_jaas = text.replace("\\", "\\\\").replace('"', '\\"')
    return in_jaas.replace("\\", "\\\\")


def _add_users(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for user in (USER, FEEDER):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for answer in admin.alter_user_scram_credentials([change]).values():
                answer.result()
