"""`make demo` from its start to its end, as CI runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import STAIRWISE

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]


def test_the_demo_shows_three_reports_and_leaves_nothing_running(tmp_path: Path) -> None:
    environment = {**os.environ, "STAIRWISE_DIR": str(tmp_path), "DEMO_REPORTS": "3"}
    done = subprocess.run([*STAIRWISE, "demo"], env=environment, capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stderr
    lines = [line.split("  ") for line in done.stdout.splitlines()]
    assert len({line[0] for line in lines if line[1:2] == ["volumes"]}) >= 3, done.stdout
    assert "That was the demo." in done.stdout
    left = subprocess.run([*STAIRWISE, "status", "--dir", str(tmp_path / "demo")], capture_output=True, text=True)
    assert left.returncode == 1
