"""Which parts there are, and that each service would understand what it's told."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise.errors import ConfigError
from stairwise.platform.config import Settings
from stairwise.system.installation import Installation
from stairwise.system.layout import PORTS, SystemLayout, choose_ports


def layout(spark_ui_port: int | None = None, jvm: Path = Path("/jvm"), *, tracing: bool = False) -> SystemLayout:
    installation = Installation(Path("/bin/java"), jvm, Path("/templates"))
    return SystemLayout(installation, Path("/state"), choose_ports({}), 3, spark_ui_port, tracing)


def test_ports_are_the_defaults_unless_something_else_is_said() -> None:
    assert choose_ports({}) == PORTS


def test_a_start_takes_the_ports_of_the_last_one() -> None:
    assert choose_ports({}, previous={"broker": 1000})["broker"] == 1000
    assert choose_ports({}, previous={"broker": 1000})["windows"] == 7070


def test_a_base_comes_before_the_last_start_and_a_chosen_port_before_both() -> None:
    ports = choose_ports({"results": 5}, base=17000, previous=dict.fromkeys(PORTS, 1))
    assert ports == {**dict(zip(PORTS, range(17000, 17000 + len(PORTS)), strict=True)), "results": 5}


def test_base_0_takes_free_ports() -> None:
    ports = choose_ports({}, base=0)
    assert ports.keys() == PORTS.keys()
    assert len(set(ports.values())) == len(PORTS)


@pytest.mark.parametrize("name", ["windows", "ingest", "operators", "results", "lookups"])
def test_each_service_understands_its_environment(name: str) -> None:
    part = next(part for part in layout().parts() if part.name == name)
    settings = Settings.from_environment(part.environment)
    assert settings.listen == part.address
    assert settings.brokers == "127.0.0.1:9092"
    assert settings.directory == Path("/state")
    assert settings.shards == 3
    assert settings.spark_ui_port is None
    assert settings.jvm == Path("/jvm")
    assert {"windows": settings.registry, "results": settings.results, "lookups": settings.lookups}.get(
        name, part.address
    ) == part.address
    assert part.command[-1] == f"services.{name}"


def traced(tmp_path: Path) -> SystemLayout:
    (tmp_path / "zipkin").mkdir()
    (tmp_path / "zipkin" / "zipkin-server-1-exec.jar").touch()
    return layout(jvm=tmp_path, tracing=True)


def test_every_port_belongs_to_a_part(tmp_path: Path) -> None:
    numbers = [port.number for part in traced(tmp_path).parts() for port in part.ports]
    assert sorted(numbers) == sorted(PORTS.values())


def test_with_tracing_every_service_starts_after_zipkin_and_sends_its_spans_there(tmp_path: Path) -> None:
    parts = {part.name: part for part in traced(tmp_path).parts()}
    zipkin = parts.pop("zipkin")
    services = [part for part in parts.values() if part.name != "broker"]
    assert all("zipkin" in part.after for part in services)
    endpoints = {part.environment["OTEL_EXPORTER_ZIPKIN_ENDPOINT"] for part in services}
    assert endpoints == {f"http://{zipkin.address}/api/v2/spans"}


def test_without_tracing_there_is_no_zipkin_and_nothing_is_sent() -> None:
    parts = layout().parts()
    assert "zipkin" not in {part.name for part in parts}
    assert not any("OTEL_EXPORTER_ZIPKIN_ENDPOINT" in part.environment for part in parts)


def test_tracing_without_zipkins_jar_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Zipkin's jar is not in") as refused:
        layout(jvm=tmp_path, tracing=True).parts()
    assert "make tracing" in (refused.value.hint or "")


def test_sparks_page_is_a_port_of_the_operators() -> None:
    operators = next(part for part in layout(spark_ui_port=4040).parts() if part.name == "operators")
    assert 4040 in [port.number for port in operators.ports]
    assert Settings.from_environment(operators.environment).spark_ui_port == 4040
