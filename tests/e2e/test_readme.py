"""What the README says is what happens."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import STAIRWISE, System

pytestmark = pytest.mark.jvm

README = Path(__file__).parents[2] / "README.md"


def block(heading: str, language: str) -> str:
    """The first fenced block of a language below a heading."""
    below = README.read_text().split(f"## {heading}\n", 1)[1]
    found = re.search(rf"```{language}\n(.*?)```", below, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_first_query_prints_what_the_readme_shows(system: System) -> None:
    up, commands = block("A first query", "sh").split("\n", 1)
    assert up == ".venv/bin/stairwise up --detach"  # as the fixture does, on other ports
    script = commands.replace(".venv/bin/stairwise", shlex.join(STAIRWISE))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env=system.environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(block("A first query", "json"))
