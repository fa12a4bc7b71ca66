"""One system for all end-to-end tests, started as a user would, with a receiver for its traces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from stairwise.errors import ConfigError
from stairwise.system.installation import find_installation
from tests import command_server

START_WITHIN = 300
STAIRWISE = (sys.executable, "-m", "stairwise.cli.main")


def wait_for(condition: Callable[[], Any], what: str, within: float = 120) -> Any:
    """The first truthy answer of the condition; fails when the deadline has passed."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.05)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """End to end comes first, and of it the golden cases last: the hundreds of streams that they declare stay."""
    items.sort(key=lambda item: ("tests/e2e" not in item.nodeid, "tests/e2e/test_golden" in item.nodeid))


@dataclass(frozen=True)
class Span:
    """What a test needs to know of a span."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]


@dataclass
class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """An OTLP endpoint that keeps the spans it gets."""

    spans: list[Span] = field(default_factory=list)
    address: str = ""

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        attributes["service.name"],
                        s.name,
                        s.trace_id.hex(),
                        s.span_id.hex(),
                        s.parent_span_id.hex(),
                        tuple(link.span_id.hex() for link in s.links),
                    )
                    for s in scope.spans
                ]
        return trace_service_pb2.ExportTraceServiceResponse()

    def trace(self, trace_id: str) -> list[Span]:
        return [s for s in list(self.spans) if s.trace_id == trace_id]


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def Export(self, request: Any, context: Any) -> Any:
        return metrics_service_pb2.ExportMetricsServiceResponse()


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    receiver = Receiver()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receiver, server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(), server)
    receiver.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield receiver
    server.stop(1)


@dataclass(frozen=True)
class System:
    """A running system and the command line to use it with."""

    directory: Path
    environment: dict[str, str]

    def run(self, *arguments: str, stdin: str | None = None, within: float = 240) -> subprocess.CompletedProcess[str]:
        return command_server.run(arguments, self.environment, stdin=stdin, within=within)

    def ok(self, *arguments: str, stdin: str | None = None, within: float = 240) -> str:
        done = self.run(*arguments, stdin=stdin, within=within)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def sql(self, script: str) -> str:
        return self.ok("sql", "-e", script)

    def publish(self, stream: str, rows: list[Any], *options: str) -> None:
        text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        self.ok("publish", stream, "-", *options, stdin=text)

    def lines(self, query: str, *options: str, within: float = 240) -> list[dict[str, Any]]:
        """What a subscription from the beginning prints until it ends."""
        out = self.ok("subscribe", query, "--from", "earliest", *options, within=within)
        return [json.loads(line) for line in out.splitlines()]

    def start(self, *arguments: str, stderr: int | None = None) -> subprocess.Popen[str]:
        command = [*STAIRWISE, *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def parts(self) -> dict[str, dict[str, Any]]:
        out = self.run("status", "--format", "jsonl").stdout
        return {part["part"]: part for part in map(json.loads, out.splitlines()) if "part" in part}

    def await_ingest(self) -> None:
        """Wait until everything that was published has been read."""
        wait_for(lambda: self.parts()["ingest"]["lag"] == 0, "ingest has read everything")

    def kill(self, part: str) -> None:
        """kill -9, and wait until it has come back."""
        before = self.parts()[part]
        os.kill(before["pid"], signal.SIGKILL)

        def is_back() -> bool:
            now = self.parts()[part]
            return bool(now["pid"] != before["pid"] and now["health"] == "healthy")

        wait_for(is_back, f"{part} is back", within=240)


def has_zipkin() -> bool:
    """Has `make tracing` been run? `make test` does."""
    try:
        find_installation(os.environ).zipkin_jar()
    except ConfigError:
        return False
    return True


@pytest.fixture(scope="package")
def system(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[System]:
    directory = tmp_path_factory.mktemp("system")
    environment = {
        **os.environ,
        "STAIRWISE_DIR": str(directory),
        "STAIRWISE_PIECE_BYTES": "65536",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{receiver.address}",
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
    }
    system = System(directory, environment)
    tracing = ("--tracing",) if has_zipkin() else ()
    system.ok("up", "--detach", "--shards", "2", *tracing, "--port-base", "0", within=START_WITHIN)
    yield system
    system.ok("down")
