"""Programs that the tests of the chart run: as `make tools` has put them into .tools, else as they are on the PATH."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from stairwise.platform.config import SOURCE_TREE

TOOLS = SOURCE_TREE / ".tools" / "bin"


def find_tool(name: str) -> Path | None:
    places = f"{TOOLS}:{Path(sys.executable).parent}"
    found = shutil.which(name, path=places) or shutil.which(name)
    return Path(found) if found is not None else None


def tool(name: str) -> Path:
    """The program; the test that needs it is skipped, and says so, where it is not there."""
    found = find_tool(name)
    if found is None:
        pytest.skip(f"{name} is not there: make tools")
    return found
