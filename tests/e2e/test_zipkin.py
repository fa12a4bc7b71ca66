"""`stairwise up --tracing`: Zipkin has the trace of one event, from publish to the subscriber, each step a child."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.e2e.browser import find_browser, started_browser
from tests.e2e.conftest import System, has_zipkin, wait_for
from tests.e2e.test_trace import PATH
from tests.e2e.zipkin import Span, Step, follow, page

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def as_users_do(system: System) -> System:
    """The command line without any variable of OpenTelemetry: it finds the system's Zipkin by itself."""
    if not has_zipkin():
        pytest.skip("Zipkin is not there: make tracing")
    environment = {n: v for n, v in system.environment.items() if not n.startswith("OTEL_")}
    return System(system.directory, environment)


@pytest.fixture(scope="module")
def followed(as_users_do: System) -> dict[Step, Span]:
    return follow(as_users_do, "followed")


def test_zipkin_shows_the_path_of_one_event(followed: dict[Step, Span]) -> None:
    chain = [followed[each] for each in PATH]
    assert "parentId" not in chain[0]
    assert [s["parentId"] for s in chain[1:]] == [s["id"] for s in chain[:-1]]
    lookups = followed.get(("stairwise-lookups", "lookups batch"))
    assert lookups is None or lookups["parentId"] == followed["stairwise-ingest", "ingest batch"]["id"]


def test_its_page_is_served(as_users_do: System) -> None:
    with urllib.request.urlopen(page(as_users_do), timeout=30) as answer:
        assert b'<div id="root"' in answer.read()


def test_a_browser_shows_the_trace_with_every_step(
    as_users_do: System, followed: dict[Step, Span], tmp_path: Path
) -> None:
    path = find_browser()
    if path is None:
        pytest.skip("no browser is there: apt-get install chromium")
    trace = followed[PATH[0]]["traceId"]
    with started_browser(path, tmp_path) as browser:
        browser.open(f"{page(as_users_do)}traces/{trace}")
        words = {word for step in PATH for word in step}
        wait_for(lambda: all(word in browser.text().lower() for word in words), "the page names every step")
        assert browser.thrown == []
        assert browser.picture().startswith(b"\x89PNG")
