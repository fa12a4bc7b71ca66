"""The system's Zipkin: one event that is followed from its publication on, and its trace."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from typing import Any

from tests.e2e.conftest import System, wait_for
from tests.e2e.test_trace import PATH, START

Span = dict[str, Any]
Step = tuple[str, str]
"""A service and the name of its span."""


def page(system: System) -> str:
    return f"http://{system.parts()['zipkin']['address']}/zipkin/"


def follow(system: System, stream: str, at: int = START) -> dict[Step, Span]:
    """Publish one event of a new stream, receive what becomes of it; the spans of its trace."""
    system.sql(
        f"CREATE STREAM {stream} (ts TIMESTAMP, qty BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
        f"CREATE QUERY {stream}_count AS SELECT COUNT(*) AS n FROM {stream} [TUMBLE 10 SECONDS]"
    )
    system.publish(stream, [{"ts": at, "qty": 1}], "--seal")
    assert [line["row"] for line in system.lines(f"{stream}_count")] == [{"n": 1}]

    def whole() -> dict[Step, Span] | None:
        query = f"stairwise.stream={stream}"
        traces = _ask(system, "/api/v2/traces", serviceName="stairwise-cli", annotationQuery=query, limit=20)
        by_step = [{_step(span): span for span in trace} for trace in traces]
        return next((spans for spans in by_step if set(PATH) <= set(spans)), None)

    spans: dict[Step, Span] = wait_for(whole, "the whole trace in Zipkin")
    return spans


def _ask(system: System, path: str, **parameters: str | int) -> Any:
    url = f"http://{system.parts()['zipkin']['address']}{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


def _step(span: Span) -> Step:
    return span["localEndpoint"]["serviceName"], span["name"]
