"""The API server takes what the chart renders, whatever the values, and helm names what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import VALUE_SETS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.release import NAME, Release

pytestmark = pytest.mark.cluster

OF_THE_PROMETHEUS_OPERATOR = {"podMonitor": False, "rules": "configMap"}


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_server_takes_every_object(plane: ControlPlane, tmp_path: Path, values: str) -> None:
    chosen: dict[str, Any] = dict(VALUE_SETS[values])
    if "metrics" in chosen:
        chosen["metrics"] = {**chosen["metrics"], **OF_THE_PROMETHEUS_OPERATOR}
    said = Release(plane, tmp_path, chosen).apply("install", "--dry-run=server")
    assert "STATUS: pending-install" in said


def test_a_wrong_value_is_named_and_nothing_is_installed(plane: ControlPlane, tmp_path: Path) -> None:
    release = Release(plane, tmp_path, {"kafka": {"broker": "kafka:9092"}})
    with pytest.raises(RuntimeError, match="Additional property broker is not allowed"):
        release.apply("install")
    assert NAME not in release.helm("list", "--all", "--short")
