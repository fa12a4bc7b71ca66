"""The operations page and the images say what the code says."""

from __future__ import annotations

import re
import tomllib

import pytest

from deploy.dashboards.catalogue import DASHBOARDS
from stairwise.platform import config
from stairwise.platform.config import DEFAULT_PORTS, SOURCE_TREE

PAGE = (SOURCE_TREE / "docs" / "operations.md").read_text()
VERSION = tomllib.loads((SOURCE_TREE / "pyproject.toml").read_text())["project"]["version"]


def instructions(service: str, name: str) -> list[str]:
    text = (SOURCE_TREE / "services" / service / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(f"{name} ").strip() for line in text.splitlines() if line.startswith(f"{name} ")]


def test_the_page_lists_every_variable() -> None:
    described = set(re.findall(r"^\| `(STAIRWISE_\w+)` \|", PAGE, re.MULTILINE))
    assert described == set(re.findall(r"^\| (STAIRWISE_\w+) \|", config.__doc__ or "", re.MULTILINE))


def test_the_page_lists_every_port() -> None:
    listed = {name: int(port) for name, port in re.findall(r"^\| (\w+) \| (70\d\d) \|", PAGE, re.MULTILINE)}
    assert listed == DEFAULT_PORTS


def test_the_page_shows_a_picture_of_every_dashboard_and_of_a_trace() -> None:
    shown = re.findall(r"^!\[.*\]\(screenshots/(\w+)\.png\)$", PAGE, re.MULTILINE)
    assert sorted(shown) == sorted([*(dashboard.name for dashboard in DASHBOARDS), "trace"])
    assert {path.stem for path in (SOURCE_TREE / "docs" / "screenshots").iterdir()} == set(shown), "make screenshots"


@pytest.mark.parametrize("service", DEFAULT_PORTS)
def test_an_image_holds_one_extra_and_runs_that_service_on_its_port(service: str) -> None:
    assert f"install-service {service}" in instructions(service, "RUN")
    assert instructions(service, "CMD") == [f'["python", "-P", "-m", "services.{service}"]']
    assert instructions(service, "EXPOSE") == [str(DEFAULT_PORTS[service])]
    assert any(f"STAIRWISE_LISTEN=0.0.0.0:{DEFAULT_PORTS[service]}" in line for line in instructions(service, "ENV"))


@pytest.mark.parametrize("service", DEFAULT_PORTS)
def test_an_image_is_of_this_version_and_does_not_end_as_root(service: str) -> None:
    assert instructions(service, "ARG") == [f"TAG={VERSION}"]
    assert instructions(service, "USER")[-1:] in ([], ["10001:10001"])
    assert instructions(service, "FROM")[-1] == "stairwise/runtime:${TAG}"


def test_the_chart_is_of_this_version() -> None:
    chart = (SOURCE_TREE / "charts" / "stairwise" / "Chart.yaml").read_text()
    assert re.findall(r"^appVersion: (.*)$", chart, re.MULTILINE) == [VERSION]
