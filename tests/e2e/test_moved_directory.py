"""A system goes on in another directory: what docs/operations.md says of backup and restore is carried out.

It starts beside a load of connections, on ports that it chooses: no start may lose one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stairwise.platform.config import SOURCE_TREE
from tests.e2e.conftest import STAIRWISE, START_WITHIN, System
from tests.integration.connections import load_of_connections

pytestmark = pytest.mark.jvm

STREAM = "CREATE STREAM trades (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
QUERIES = {
    "sums": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM trades [RANGE 60 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "seen": "SELECT DISTINCT k FROM trades [RANGE 10 SECONDS SLIDE 5 SECONDS]",
}
SCRIPT = STREAM + "".join(f"CREATE QUERY {name} AS {select};" for name, select in QUERIES.items())
ROWS = [{"ts": 1_700_000_000_000 + 100 * i, "k": f"k{i % 7}", "v": i} for i in range(3_000)]


def procedures(root: Path) -> list[str]:
    """The commands of the page for one machine, in order, with its directories below ``root``."""
    page = (SOURCE_TREE / "docs" / "operations.md").read_text()
    section = page.split("## Backup and restore\n", 1)[1].split("\n## ", 1)[0]
    section = re.sub(r"(?=/(srv|backup)/)", str(root), section)
    section = re.sub(r"^stairwise(?= )", shlex.join(STAIRWISE), section, flags=re.MULTILINE)
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def carry_out(commands: str) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], capture_output=True, text=True, timeout=START_WITHIN, check=False
    )
    assert done.returncode == 0, done.stderr


def at(directory: Path) -> System:
    return System(directory, {**os.environ, "STAIRWISE_DIR": str(directory)})


def expected(root: Path) -> dict[str, list[Any]]:
    """The lines of each query over all rows, as the local engine prints them."""
    (root / "q.cql").write_text(SCRIPT)
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    data = f"trades={root / 'rows.jsonl'}"
    out = at(root / "none").ok("run", str(root / "q.cql"), "--data", data, "--format", "jsonl", "--quiet")
    lines = [json.loads(line) for line in out.splitlines()]
    return {name: [line for line in lines if line["query"] == name] for name in QUERIES}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    for name in ("srv", "backup"):
        (tmp_path / name).mkdir()
    with load_of_connections():
        yield tmp_path
    for directory in (tmp_path / "srv").iterdir():
        at(directory).run("down")


def begun(root: Path, backup: str, until: int) -> System:
    """A system that has taken the first rows, and was then saved and lost, with the machine that it ran on."""
    system = at(root / "srv" / "stairwise")
    system.ok("up", "--detach", "--port-base", "0", within=START_WITHIN)
    system.sql(SCRIPT)
    system.publish("trades", ROWS[:until])
    system.await_ingest()
    system.ok("subscribe", "sums", "--from", "earliest", "--limit", "50")  # operators has state by now
    carry_out(backup)
    shutil.rmtree(system.directory)
    return system


def test_a_restored_directory_goes_on_exactly_where_it_was_saved(root: Path) -> None:
    backup, restore = procedures(root)
    begun(root, backup, 1_500)
    carry_out(restore)
    system = at(root / "srv" / "restored")
    system.publish("trades", ROWS[1_500:], "--seal")
    assert {name: system.lines(name) for name in QUERIES} == expected(root)
    assert {part["restarts"] for part in system.parts().values()} == {0}


@pytest.mark.long
def test_a_directory_may_be_moved_again_and_again(root: Path) -> None:
    backup, restore = procedures(root)
    begun(root, backup, 500)
    carry_out(restore)
    system = at(root / "srv" / "restored")
    for number in range(1, 5):
        system.publish("trades", ROWS[500 * number : 500 * (number + 1)])
        system.await_ingest()
        system.ok("down")
        moved = root / "srv" / f"moved {number}"
        system.directory.rename(moved)
        system = at(moved)
        system.ok("up", "--detach", within=START_WITHIN)
    system.publish("trades", ROWS[2_500:], "--seal")
    assert {name: system.lines(name) for name in QUERIES} == expected(root)
