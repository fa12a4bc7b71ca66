"""What a service is told when it starts: environment variables, read once, typed, checked.

Every service takes the same variables, so that one table in the docs, one chart and one ``stairwise up``
describe them all. A value that cannot be meant gives a ``ConfigError`` that names the variable.

| variable | meaning | default |
|---|---|---|
| STAIRWISE_BROKERS | Kafka bootstrap servers, ``host:port`` joined by commas | 127.0.0.1:9092 |
| STAIRWISE_DIR | the state directory; a service keeps its own things below ``<dir>/<service>`` | .stairwise |
| STAIRWISE_LISTEN | where this service's own gRPC server listens; port 0: any free one | DEFAULT_PORTS |
| STAIRWISE_REGISTRY | where clients reach the registry (service ``windows``) | 127.0.0.1:7070 |
| STAIRWISE_RESULTS | where clients reach the results | 127.0.0.1:7071 |
| STAIRWISE_LOOKUPS | where clients reach the lookups | 127.0.0.1:7072 |
| STAIRWISE_INSTANCE | which of several ingest processes this is: each has a name that survives its restarts | 0 |
| STAIRWISE_INGEST_LINGER_MS | how long ingest lets a row wait for others, in milliseconds | 50 |
| STAIRWISE_INGEST_MAX_BYTES | the largest message that ingest reads; a larger one is a dead letter | 4194304 |
| STAIRWISE_MIN_FREE_BYTES | ingest pauses while the volume of STAIRWISE_DIR has less free | 268435456 |
| STAIRWISE_RESULTS_SUBSCRIPTIONS | how many subscriptions a results process serves at a time | 20000 |
| STAIRWISE_RESULTS_STALL_MS | after how long a subscription ends whose client takes nothing, in milliseconds | 30000 |
| STAIRWISE_LOOKUPS_RETAIN_MS | how far back lookups reach, in milliseconds of event time | 3600000 |
| STAIRWISE_LOOKUPS_RETAIN_BYTES | how much memory lookups take for one partition, at most | 268435456 |
| STAIRWISE_SHARDS | into how many shards a signature with a common key is split | 1 |
| STAIRWISE_BATCH_MESSAGES | how many messages of ``s.*`` a micro-batch of operators takes at the most | 400 |
| STAIRWISE_TRIGGER_MS | how long after a micro-batch has started the next one starts that is not full | 1200 |
| STAIRWISE_BATCH_LIMIT_MS | operators ends, to be started again, where a micro-batch takes longer | 600000 |
| STAIRWISE_QUERY_BYTES | about how much memory queries that share an operator may take on a shard | 2147483648 |
| STAIRWISE_REPORT_BYTES | the largest report of a shard that operators publishes | 536870912 |
| STAIRWISE_PIECE_BYTES | how much of a report one message of ``results`` holds at the most | 4194304 |
| STAIRWISE_MOST_PAIRS | how many pairs a query may have whose inputs no condition links; 0: any number | 1000000000 |
| STAIRWISE_METRICS | where Prometheus scrapes this service, ``host:port``; ``none``: nowhere | none |
| STAIRWISE_SCRAPE | metrics pages, ``part=host:port,...``, by which windows knows what queries wait for | none |
| STAIRWISE_LOG | DEBUG, INFO, WARNING or ERROR | INFO |
| STAIRWISE_SPARK_MASTER | Spark's master | local[2] |
| STAIRWISE_SPARK_UI | port of Spark's own page; 0 or ``none``: off | off |
| STAIRWISE_JVM | where ``make setup`` put the jars of ``broker/`` and ``spark/`` | .jvm in the source tree |

Of servers, read by ``security.settings``:

| variable | meaning | default |
|---|---|---|
| STAIRWISE_TLS_CERT | the server's certificate chain, a PEM file: it then speaks TLS alone | none |
| STAIRWISE_TLS_KEY | the private key to it, a PEM file | none |
| STAIRWISE_TLS_CLIENT_CA | clients must show a certificate of this authority, a PEM file: mutual TLS | none |
| STAIRWISE_TOKENS_FILE | hashes of bearer tokens, and names in certificates, with their scopes | nobody is asked |
| STAIRWISE_INSECURE | yes: without TLS, listen on any address, and send tokens to any | no |
| STAIRWISE_AUDIT_FILE | where the audit log goes, beside the service's own log | nowhere else |
| STAIRWISE_MAX_REQUEST_BYTES | the largest request that a server takes | 8388608 |
| STAIRWISE_MAX_STREAMS | how many streaming calls the bearer of a token may have open on a server | 1000 |
| STAIRWISE_MAX_QUERIES | how many queries the bearer of a token may have registered | 10000 |
| STAIRWISE_MAX_CALLS | how many calls of the bearer of a token a server answers at a time, streams aside | 8 |
| STAIRWISE_MAX_WAITING | how many more of them wait; beyond that they are refused | 100 |

Of clients, read by ``channels``:

| variable | meaning | default |
|---|---|---|
| STAIRWISE_TLS_CA | the authority of the servers' certificates, a PEM file: the client then speaks TLS alone | none |
| STAIRWISE_TLS_CLIENT_CERT | the client's own certificate chain, a PEM file | none |
| STAIRWISE_TLS_CLIENT_KEY | the private key to it, a PEM file | none |
| STAIRWISE_TLS_SERVER_NAME | the name that servers' certificates are checked for | that of the address |
| STAIRWISE_TOKEN | the bearer token | none |
| STAIRWISE_TOKEN_FILE | a file that holds it | none |

Of everyone who speaks Kafka, read by ``kafka_security``:

| variable | meaning | default |
|---|---|---|
| STAIRWISE_KAFKA_CA | the authority of the brokers' certificates, a PEM file: Kafka is then spoken over TLS | none |
| STAIRWISE_KAFKA_TLS | yes: TLS without an authority of one's own, by those of the machine | no |
| STAIRWISE_KAFKA_CERT | this process's certificate chain for brokers, a PEM file | none |
| STAIRWISE_KAFKA_KEY | the private key to it, a PEM file in PKCS #8 | none |
| STAIRWISE_KAFKA_USER | the user by SASL | none |
| STAIRWISE_KAFKA_PASSWORD | the user's password | none |
| STAIRWISE_KAFKA_PASSWORD_FILE | a file that holds it | none |
| STAIRWISE_KAFKA_MECHANISM | PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 | SCRAM-SHA-512 |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stairwise.errors import ConfigError
from stairwise.platform import variables
from stairwise.platform.security.settings import OFF, Security

SOURCE_TREE = Path(__file__).resolve().parents[3]
"""The root of the source tree that this package was installed from (editable, or a copy in an image)."""

DEFAULT_BROKERS = "127.0.0.1:9092"
DEFAULT_PORTS: Mapping[str, int] = {
    "windows": 7070,
    "results": 7071,
    "lookups": 7072,
    "ingest": 7073,
    "operators": 7074,
}
"""The port of each service's gRPC server. Ingest and operators serve health and reflection only."""

DEFAULT_METRICS_PORTS: Mapping[str, int] = {service: port + 100 for service, port in DEFAULT_PORTS.items()}
"""Where `stairwise up` and the chart let Prometheus scrape each service."""

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True)
class Settings:
    """The configuration of one service process."""

    brokers: str = DEFAULT_BROKERS
    directory: Path = Path(".stairwise")
    listen: str = "127.0.0.1:0"
    registry: str = f"127.0.0.1:{DEFAULT_PORTS['windows']}"
    results: str = f"127.0.0.1:{DEFAULT_PORTS['results']}"
    lookups: str = f"127.0.0.1:{DEFAULT_PORTS['lookups']}"
    instance: str = "0"
    ingest_linger_ms: int = 50
    ingest_max_bytes: int = 4 << 20
    min_free_bytes: int = 256 << 20
    results_subscriptions: int = 20_000
    results_stall_ms: int = 30_000
    lookups_retain_ms: int = 3_600_000
    lookups_retain_bytes: int = 256 << 20
    shards: int = 1
    batch_messages: int = 400
    trigger_ms: int = 1200
    batch_limit_ms: int = 600_000
    report_bytes: int = 512 << 20
    query_bytes: int = 2 << 30
    piece_bytes: int = 4 << 20
    most_pairs: int | None = 10**9
    """None: any number."""
    metrics: str | None = None
    scrape: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "INFO"
    spark_master: str = "local[2]"
    spark_ui_port: int | None = None
    jvm: Path = SOURCE_TREE / ".jvm"
    security: Security = OFF

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, service: str | None = None) -> Settings:
        """Read and check the variables; ``service`` (a key of ``DEFAULT_PORTS``) gives LISTEN its default."""
        listen = f"127.0.0.1:{DEFAULT_PORTS[service]}" if service is not None else cls.listen
        return cls(
            brokers=variables.addresses(environ, "STAIRWISE_BROKERS", cls.brokers),
            directory=Path(variables.text(environ, "STAIRWISE_DIR", str(cls.directory))).absolute(),
            listen=variables.address(environ, "STAIRWISE_LISTEN", listen, lowest_port=0),
            registry=variables.address(environ, "STAIRWISE_REGISTRY", cls.registry),
            results=variables.address(environ, "STAIRWISE_RESULTS", cls.results),
            lookups=variables.address(environ, "STAIRWISE_LOOKUPS", cls.lookups),
            instance=variables.identifier(environ, "STAIRWISE_INSTANCE", cls.instance),
            ingest_linger_ms=variables.integer(
                environ, "STAIRWISE_INGEST_LINGER_MS", cls.ingest_linger_ms, lowest=0, highest=10_000
            ),
            ingest_max_bytes=variables.integer(
                environ, "STAIRWISE_INGEST_MAX_BYTES", cls.ingest_max_bytes, lowest=1024, highest=cls.ingest_max_bytes
            ),
            min_free_bytes=variables.integer(
                environ, "STAIRWISE_MIN_FREE_BYTES", cls.min_free_bytes, lowest=0, highest=1 << 60
            ),
            results_subscriptions=variables.integer(
                environ, "STAIRWISE_RESULTS_SUBSCRIPTIONS", cls.results_subscriptions, lowest=1, highest=1_000_000
            ),
            results_stall_ms=variables.integer(
                environ, "STAIRWISE_RESULTS_STALL_MS", cls.results_stall_ms, lowest=100, highest=3_600_000
            ),
            lookups_retain_ms=variables.integer(
                environ, "STAIRWISE_LOOKUPS_RETAIN_MS", cls.lookups_retain_ms, lowest=1, highest=2**53
            ),
            lookups_retain_bytes=variables.integer(
                environ, "STAIRWISE_LOOKUPS_RETAIN_BYTES", cls.lookups_retain_bytes, lowest=1 << 20, highest=2**50
            ),
            shards=variables.integer(environ, "STAIRWISE_SHARDS", cls.shards, lowest=1, highest=4096),
            batch_messages=variables.integer(
                environ, "STAIRWISE_BATCH_MESSAGES", cls.batch_messages, lowest=1, highest=1_000_000
            ),
            trigger_ms=variables.integer(environ, "STAIRWISE_TRIGGER_MS", cls.trigger_ms, lowest=1, highest=60_000),
            batch_limit_ms=variables.integer(
                environ, "STAIRWISE_BATCH_LIMIT_MS", cls.batch_limit_ms, lowest=1000, highest=86_400_000
            ),
            query_bytes=variables.integer(
                environ, "STAIRWISE_QUERY_BYTES", cls.query_bytes, lowest=1 << 20, highest=1 << 50
            ),
            report_bytes=variables.integer(
                environ, "STAIRWISE_REPORT_BYTES", cls.report_bytes, lowest=1024, highest=1 << 30
            ),
            piece_bytes=variables.integer(
                environ, "STAIRWISE_PIECE_BYTES", cls.piece_bytes, lowest=1024, highest=cls.piece_bytes
            ),
            most_pairs=variables.integer(environ, "STAIRWISE_MOST_PAIRS", 10**9, lowest=0, highest=2**62) or None,
            metrics=variables.optional_address(environ, "STAIRWISE_METRICS"),
            scrape=variables.named_addresses(environ, "STAIRWISE_SCRAPE"),
            log_level=variables.choice(environ, "STAIRWISE_LOG", cls.log_level, LOG_LEVELS),
            spark_master=variables.text(environ, "STAIRWISE_SPARK_MASTER", cls.spark_master),
            spark_ui_port=variables.optional_port(environ, "STAIRWISE_SPARK_UI"),
            jvm=Path(variables.text(environ, "STAIRWISE_JVM", str(cls.jvm))).absolute(),
            security=Security.from_environment(environ),
        )

    def spark_jars(self) -> tuple[Path, ...]:
        """The jars that Spark needs beside its own."""
        jars = tuple(sorted((self.jvm / "spark").glob("*.jar")))
        if not jars:
            raise ConfigError(
                f"the Spark connector's jars are not in {self.jvm / 'spark'}",
                hint="make setup fetches them; STAIRWISE_JVM names another place",
            )
        return jars
