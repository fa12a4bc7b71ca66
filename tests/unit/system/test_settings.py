"""The services' configuration: defaults, and errors that name the variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise.errors import ConfigError
from stairwise.platform.config import DEFAULT_PORTS, Settings
from stairwise.platform.variables import host_and_port


def test_without_variables_everything_has_its_default() -> None:
    settings = Settings.from_environment({})
    assert settings.brokers == "127.0.0.1:9092"
    assert (settings.registry, settings.results, settings.lookups) == (
        "127.0.0.1:7070",
        "127.0.0.1:7071",
        "127.0.0.1:7072",
    )
    assert settings.directory == Path.cwd() / ".stairwise"
    assert (settings.shards, settings.log_level, settings.spark_master) == (1, "INFO", "local[2]")
    assert settings.spark_ui_port is None


@pytest.mark.parametrize("service", DEFAULT_PORTS)
def test_a_service_listens_on_its_own_port(service: str) -> None:
    assert Settings.from_environment({}, service=service).listen == f"127.0.0.1:{DEFAULT_PORTS[service]}"


def test_variables_are_taken() -> None:
    settings = Settings.from_environment(
        {
            "STAIRWISE_BROKERS": "a:1, b:2",
            "STAIRWISE_DIR": "/state",
            "STAIRWISE_LISTEN": "0.0.0.0:0",
            "STAIRWISE_REGISTRY": "[::1]:7070",
            "STAIRWISE_SHARDS": "8",
            "STAIRWISE_LOG": "debug",
            "STAIRWISE_SPARK_MASTER": "local[4]",
            "STAIRWISE_SPARK_UI": "4040",
            "STAIRWISE_JVM": "/jars",
        },
        service="windows",
    )
    assert settings.brokers == "a:1,b:2"
    assert settings.directory == Path("/state")
    assert settings.listen == "0.0.0.0:0"
    assert settings.registry == "[::1]:7070"
    assert (settings.shards, settings.log_level, settings.spark_master) == (8, "DEBUG", "local[4]")
    assert (settings.spark_ui_port, settings.jvm) == (4040, Path("/jars"))


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.from_environment({"STAIRWISE_SHARDS": "", "STAIRWISE_LOG": " "}) == Settings.from_environment({})


@pytest.mark.parametrize("off", ["0", "none", "NONE", ""])
def test_sparks_page_is_off_unless_a_port_is_given(off: str) -> None:
    assert Settings.from_environment({"STAIRWISE_SPARK_UI": off}).spark_ui_port is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("STAIRWISE_BROKERS", "localhost", "host:port joined by commas"),
        ("STAIRWISE_BROKERS", "a:1,,b:2", "host:port joined by commas"),
        ("STAIRWISE_LISTEN", "7070", "host:port"),
        ("STAIRWISE_LISTEN", "::1:7070", "host:port"),
        ("STAIRWISE_REGISTRY", "http://registry:7070", "host:port"),
        ("STAIRWISE_REGISTRY", "registry:0", "from 1 to 65535"),
        ("STAIRWISE_RESULTS", "results:70710", "host:port"),
        ("STAIRWISE_LOOKUPS", ":7072", "host:port"),
        ("STAIRWISE_SHARDS", "0", "whole number from 1 to 4096"),
        ("STAIRWISE_SHARDS", "two", "whole number from 1 to 4096"),
        ("STAIRWISE_SHARDS", "²", "whole number"),
        ("STAIRWISE_LOG", "loud", "DEBUG, INFO, WARNING, ERROR"),
        ("STAIRWISE_SPARK_UI", "-1", "a port from 1 to 65535"),
        ("STAIRWISE_SPARK_UI", "65536", "a port from 1 to 65535"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_what_was_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        Settings.from_environment({name: value})
    assert name in error.value.message
    assert value in error.value.message
    assert expected in error.value.hint


def test_missing_connector_jars_point_to_make_setup(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="connector's jars are not in") as error:
        Settings.from_environment({"STAIRWISE_JVM": str(tmp_path)}).spark_jars()
    assert "make setup" in error.value.hint


def test_an_address_is_split_into_host_and_port() -> None:
    assert host_and_port("example.org:80") == ("example.org", 80)
    assert host_and_port("[::1]:80") == ("::1", 80)
