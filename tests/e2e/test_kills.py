"""kill -9 of any one process while data flow: it comes back, and a subscriber sees every line once."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from tests.e2e.conftest import System, wait_for
from tests.oracle import run as oracle_lines

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
SECONDS = 60
NOTE = 40_000
"""How long a key of windows is for operators to keep their pages in files beside Spark's state."""


def expected(query: str) -> list[dict[str, Any]]:
    """Two rows a second, of quantity 1 and 2, from second 0 to 59; a window holds its last instant, not its first."""
    counts = [(0, 2, 3), *((t, 20, 30) for t in range(10, SECONDS, 10)), (SECONDS, 18, 27)]
    return [
        {"query": query, "time": START + t * 1000, "diff": 1, "row": {"n": n, "volume": volume}}
        for t, n, volume in counts
    ]


def changes(stream: str) -> dict[str, str]:
    """Queries whose reports say what moved: rows with their ends, and negative tuples."""
    recent = f"SELECT ts, qty FROM {stream} [RANGE 20 SECONDS SLIDE 5 SECONDS]"
    return {
        f"{stream}_recent": f"{recent} EMIT CHANGES",
        f"{stream}_beyond": f"{recent} EXCEPT SELECT ts, qty FROM {stream} [ROWS 7 SLIDE 5 SECONDS] EMIT CHANGES",
    }


def has_files(system: System) -> bool:
    return any((system.directory / "operators" / "checkpoint" / "pages").glob("*/*"))


@pytest.mark.parametrize("part", ["ingest", "windows", "operators", "results", "lookups", "broker"])
def test_a_killed_part_comes_back_and_nothing_is_lost_or_repeated(system: System, part: str) -> None:
    name = f"kill_{part}"
    stream = f"CREATE STREAM {name} (ts TIMESTAMP, qty BIGINT, note STRING) TIMESTAMP BY ts PARTITIONS 1"
    moving = changes(name) if part in ("operators", "results") else {}
    system.sql(
        f"{stream}; CREATE QUERY {name}_q AS"
        f" SELECT COUNT(*) AS n, SUM(qty) AS volume FROM {name} [TUMBLE 10 SECONDS] GROUP BY note"
        + "".join(f"; CREATE QUERY {query} AS {select}" for query, select in moving.items())
    )
    note = "-" * NOTE if part == "operators" else ""
    subscription = system.start("subscribe", f"{name}_q", "--from", "earliest")
    lines: list[dict[str, Any]] = []

    def read() -> None:
        assert subscription.stdout is not None
        lines.extend(json.loads(line) for line in subscription.stdout)

    reader = threading.Thread(target=read)
    reader.start()
    seconds = list(range(SECONDS))
    for half in (seconds[: SECONDS // 2], seconds[SECONDS // 2 :]):
        rows = [{"ts": START + s * 1000, "qty": q, "note": note} for s in half for q in (1, 2)]
        is_last = half[-1] == seconds[-1]
        system.publish(name, rows, *(["--seal"] if is_last else []))
        if not is_last:
            if part == "operators":
                wait_for(lambda: has_files(system), "pages lie in files")
            system.kill(part)
    reader.join(240)
    assert not reader.is_alive(), f"the subscription goes on after the seal; so far {lines}"
    assert subscription.wait(60) == 0
    assert lines == expected(f"{name}_q")
    rows = [{"ts": START + s * 1000, "qty": q, "note": ""} for s in seconds for q in (1, 2)]
    for query, select in moving.items():
        assert system.lines(query) == oracle_lines(f"{stream}; CREATE QUERY {query} AS {select}", {name: rows})
