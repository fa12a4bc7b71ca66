"""`stairwise up --tracing`: Zipkin has the trace of one event, from publish to the subscriber, each step a child."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from typing import Any

import pytest

from tests.e2e.conftest import System, has_zipkin, wait_for
from tests.e2e.test_trace import PATH, START

pytestmark = pytest.mark.jvm

Span = dict[str, Any]


@pytest.fixture(scope="module")
def as_users_do(system: System) -> System:
    """The command line without any variable of OpenTelemetry: it finds the system's Zipkin by itself."""
    if not has_zipkin():
        pytest.skip("Zipkin is not there: make tracing")
    environment = {n: v for n, v in system.environment.items() if not n.startswith("OTEL_")}
    return System(system.directory, environment)


def ask(system: System, path: str, **parameters: str | int) -> Any:
    url = f"http://{system.parts()['zipkin']['address']}{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


def step(span: Span) -> tuple[str, str]:
    return span["localEndpoint"]["serviceName"], span["name"]


def test_zipkin_shows_the_path_of_one_event(as_users_do: System) -> None:
    system = as_users_do
    system.sql(
        "CREATE STREAM followed (ts TIMESTAMP, qty BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
        "CREATE QUERY followed_count AS SELECT COUNT(*) AS n FROM followed [TUMBLE 10 SECONDS]"
    )
    system.publish("followed", [{"ts": START + 1000, "qty": 1}], "--seal")
    assert [line["row"] for line in system.lines("followed_count")] == [{"n": 1}]

    def whole() -> dict[tuple[str, str], Span] | None:
        query = "stairwise.stream=followed"
        traces = ask(system, "/api/v2/traces", serviceName="stairwise-cli", annotationQuery=query, limit=20)
        by_step = [{step(span): span for span in trace} for trace in traces]
        return next((spans for spans in by_step if set(PATH) <= set(spans)), None)

    spans = wait_for(whole, "the whole trace in Zipkin")
    chain = [spans[each] for each in PATH]
    assert "parentId" not in chain[0]
    assert [s["parentId"] for s in chain[1:]] == [s["id"] for s in chain[:-1]]
    lookups = spans.get(("stairwise-lookups", "lookups batch"))
    assert lookups is None or lookups["parentId"] == spans["stairwise-ingest", "ingest batch"]["id"]


def test_its_page_is_served(as_users_do: System) -> None:
    address = as_users_do.parts()["zipkin"]["address"]
    with urllib.request.urlopen(f"http://{address}/zipkin/", timeout=30) as page:
        assert b'<div id="root"' in page.read()
