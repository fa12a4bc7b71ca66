"""What must be there before `stairwise up` starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise.errors import ConfigError
from stairwise.system.installation import find_installation, java_version


def installed(tmp_path: Path, version: str = 'openjdk version "17.0.15"') -> dict[str, str]:
    """An environment with a java that says what it's told, and a jar for each JVM part."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    java.chmod(0o755)
    for part in ("broker", "spark"):
        (tmp_path / "jvm" / part).mkdir(parents=True)
        (tmp_path / "jvm" / part / "some.jar").touch()
    return {"JAVA_HOME": str(tmp_path / "jdk"), "STAIRWISE_JVM": str(tmp_path / "jvm"), "PATH": ""}


def test_java_is_found_by_java_home_and_by_path(tmp_path: Path) -> None:
    environ = installed(tmp_path)
    java = tmp_path / "jdk" / "bin" / "java"
    assert find_installation(environ).java == java
    by_path = {**environ, "JAVA_HOME": "", "PATH": str(java.parent)}
    assert find_installation(by_path).java == java


def test_no_java_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no java on the PATH") as error:
        find_installation({**installed(tmp_path), "JAVA_HOME": ""})
    assert "openjdk-17" in error.value.hint


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't be run \(JAVA_HOME=/nowhere\)"):
        find_installation({**installed(tmp_path), "JAVA_HOME": "/nowhere"})


def test_an_old_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is Java 11, at least 17 is needed"):
        find_installation(installed(tmp_path, 'openjdk version "11.0.2"'))


def test_a_java_that_tells_no_version_is_refused_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gives no version: please install java"):
        find_installation(installed(tmp_path, "please install java"))


@pytest.mark.parametrize("part", ["broker", "spark"])
def test_missing_jars_point_to_make_setup(tmp_path: Path, part: str) -> None:
    environ = installed(tmp_path)
    (tmp_path / "jvm" / part / "some.jar").unlink()
    with pytest.raises(ConfigError, match=f"jars of the {part} part are not in") as error:
        find_installation(environ)
    assert "make setup" in error.value.hint


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_feature_release_is_read_from_every_style(text: str, version: int | None) -> None:
    assert java_version(text) == version
