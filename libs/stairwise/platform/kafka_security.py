"""How Kafka is reached: TLS and SASL, said once, in the words of each client library.

| who | library | here |
|---|---|---|
| ingest, windows, results, the client | librdkafka | ``librdkafka`` |
| operators: Spark's source and sink | Kafka's own Java client | ``java`` |
| lookups: Faust | aiokafka | ``ssl_context`` and the fields |

It is read from the environment wherever a client is made, also in the Python workers that Spark starts, and a
password file anew each time: a new password needs no restart for those who connect later.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform import variables

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PATHS = ("STAIRWISE_KAFKA_CA", "STAIRWISE_KAFKA_CERT", "STAIRWISE_KAFKA_KEY", "STAIRWISE_KAFKA_PASSWORD_FILE")
"""The variables that are paths."""
VARIABLES = (
    *PATHS,
    "STAIRWISE_KAFKA_TLS",
    "STAIRWISE_KAFKA_USER",
    "STAIRWISE_KAFKA_PASSWORD",
    "STAIRWISE_KAFKA_MECHANISM",
)


@dataclass(frozen=True)
class KafkaSecurity:
    """TLS if there is an authority, SASL if there is a user, both or neither."""

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanism: str = "SCRAM-SHA-512"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> KafkaSecurity:
        ca = variables.file(environ, "STAIRWISE_KAFKA_CA")
        security = cls(
            tls=ca is not None or variables.flag(environ, "STAIRWISE_KAFKA_TLS"),
            ca=ca,
            certificate=variables.file(environ, "STAIRWISE_KAFKA_CERT"),
            key=variables.file(environ, "STAIRWISE_KAFKA_KEY"),
            user=variables.text(environ, "STAIRWISE_KAFKA_USER", "") or None,
            password=variables.secret(environ, "STAIRWISE_KAFKA_PASSWORD"),
            mechanism=variables.choice(environ, "STAIRWISE_KAFKA_MECHANISM", cls.mechanism, MECHANISMS),
        )
        if (security.user is None) != (security.password is None):
            raise ConfigError(
                "Kafka's SASL needs a user and a password",
                hint="set STAIRWISE_KAFKA_USER and STAIRWISE_KAFKA_PASSWORD_FILE, or neither",
            )
        if (security.certificate is None) != (security.key is None) or (security.certificate and not security.tls):
            raise ConfigError(
                "a certificate for Kafka's brokers needs its key, and TLS",
                hint="set STAIRWISE_KAFKA_CERT, STAIRWISE_KAFKA_KEY and STAIRWISE_KAFKA_CA",
            )
        return security

    @property
    def protocol(self) -> str:
        layer = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{layer}" if self.user is not None else layer

    def librdkafka(self) -> dict[str, str]:
        """For confluent-kafka."""
        if self.protocol == "PLAINTEXT":
            return {}
        said = {
            "security.protocol": self.protocol,
            "ssl.ca.location": _text(self.ca),
            "ssl.certificate.location": _text(self.certificate),
            "ssl.key.location": _text(self.key),
        }
        if self.user is not None:
            said |= {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}
        return {name: value for name, value in said.items() if value is not None}

    def java(self) -> dict[str, str]:
        """For Kafka's Java client: PEM in the settings themselves, so that no key store has to be made."""
        if self.protocol == "PLAINTEXT":
            return {}
        said = {"security.protocol": self.protocol}
        if self.ca is not None:
            said |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.ca.read_text()}
        if self.certificate is not None and self.key is not None:
            said |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": self.certificate.read_text(),
                "ssl.keystore.key": self.key.read_text(),
            }
        if self.user is not None and self.password is not None:
            module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
            login = f"username={_quoted(self.user)} password={_quoted(self.password)}"
            said |= {
                "sasl.mechanism": self.mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login};",
            }
        return said

    def ssl_context(self) -> ssl.SSLContext | None:
        """For aiokafka; None without TLS."""
        if not self.tls:
            return None
        context = ssl.create_default_context(cafile=_text(self.ca))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def _text(path: Path | None) -> str | None:
    return str(path) if path is not None else None


def _quoted(value: str) -> str:
    """As JAAS reads it."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
