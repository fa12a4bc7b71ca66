"""A cluster for all tests, and the chart installed in it once; skipped, and not passed, where that cannot be."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane, started_control_plane
from tests.cluster.node import NAME, Node, started_node
from tests.cluster.programs import missing
from tests.cluster.release import IMAGES, REPOSITORY, TAG, Release

USER = 10001


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if problems := missing():
        pytest.skip("no cluster can be started here: " + "; ".join(problems))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends this, nothing is left running
    with started_control_plane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def node(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started_node(plane, tmp_path_factory.mktemp("node")) as node:
        for image in IMAGES:
            node.load(f"{REPOSITORY}/{image}:{TAG}")
        yield node


@pytest.fixture(scope="session")
def release(plane: ControlPlane, node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    release = Release(plane, tmp_path_factory.mktemp("release"))
    for number in range(5):  # two for each time that it is installed, one without a broker
        _offer_volume(plane, node.directory / f"volume-{number}", number)
    release.apply("install", "--wait", "--timeout=10m")
    release.start_client()
    yield release
    release.helm("uninstall", "demo", "--wait", check=False)


def _offer_volume(plane: ControlPlane, path: Path, number: int) -> None:
    """A directory of this machine for whichever claim comes; there is nobody who would make one when asked."""
    path.mkdir()
    os.chown(path, USER, USER)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "hostPath": {"path": str(path), "type": "Directory"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NAME]}]}
                    ]
                }
            },
        },
    }
    plane.kubectl("create", "--filename=-", stdin=json.dumps(volume))
