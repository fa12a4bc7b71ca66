"""The Dockerfiles are as hadolint wants them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stairwise.platform.config import SOURCE_TREE
from tests.chart.tools import tool

FILES = sorted([*SOURCE_TREE.glob("services/*/Dockerfile"), *SOURCE_TREE.glob("deploy/images/*.Dockerfile")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE_TREE)))
def test_hadolint_finds_nothing(path: Path) -> None:
    linted = subprocess.run([tool("hadolint"), path], capture_output=True, text=True, timeout=60, check=False)
    assert linted.returncode == 0, linted.stdout
