"""A query that cannot be evaluated fails by itself: others go on, people are told, and it can be tried again."""

from __future__ import annotations

import json
import os
import random
import signal
from typing import Any

import psutil
import pytest

from stairwise.client import Client, Update
from stairwise.errors import StairwiseError
from stairwise.system import state
from tests.e2e.conftest import System, wait_for

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
JOIN = "SELECT COUNT(*) AS n FROM {0} [RANGE 1 HOUR SLIDE 1 SECOND] x, {0} [RANGE 1 HOUR SLIDE 1 SECOND] y"


def rows(begin: int, seconds: int, a_second: int) -> list[dict[str, Any]]:
    chance = random.Random(begin)
    times = [START + 1000 * (begin + s) + n * 1000 // a_second for s in range(seconds) for n in range(a_second)]
    return [{"ts": ts, "v": chance.randrange(1_000_000)} for ts in times]


def failed(system: System) -> dict[str, str]:
    seen = json.loads(system.run("status", "--json").stdout)
    return {query["name"]: query["reason"] for query in seen["failed"]}


def counts(query: str, begin: int, seconds: int, a_second: int) -> list[dict[str, Any]]:
    """One-second windows: the row at a report time is in its window."""
    every = [1, *[a_second] * (seconds - 1), a_second - 1]
    return [
        {"query": query, "time": START + 1000 * (begin + s), "diff": 1, "row": {"n": n}} for s, n in enumerate(every)
    ]


def test_a_query_that_needs_too_much_memory_fails_by_itself(system: System) -> None:
    for name in ("poisoned", "elsewhere"):
        system.sql(
            f"CREATE STREAM {name} (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2;"
            f"CREATE QUERY {name}_count AS SELECT COUNT(*) AS n FROM {name} [TUMBLE 1 SECOND]"
        )
    system.sql(f"CREATE QUERY poison AS {JOIN.format('poisoned')} WHERE x.v > y.v")
    system.publish("poisoned", rows(0, 20, 1_000))
    wait_for(lambda: "poison" in failed(system), "the poison has failed")
    assert failed(system)["poison"].startswith("it needs more than 2,147 MB of memory")
    assert "poison has FAILED: it needs more than" in system.ok("explain", "poison")
    told = system.run("subscribe", "poison", "--from", "earliest")
    assert told.returncode == 1
    assert "query 'poison' has failed: it needs more than 2,147 MB" in told.stderr
    assert "RESTART QUERY poison" in told.stderr
    running = state.read(system.directory)
    assert running is not None
    client = Client(running.addresses)
    seen: list[Update] = []
    with pytest.raises(StairwiseError, match="'poison' has failed"):
        seen.extend(client.subscribe("poison", "earliest"))

    refused = system.run("sql", "-e", "RESTART QUERY poisoned_count")
    assert refused.returncode == 1
    assert "has not failed" in refused.stderr
    system.sql("RESTART QUERY poison")
    wait_for(lambda: "poison" not in failed(system), "the poison runs again")
    system.publish("poisoned", rows(20, 10, 20), "--seal")
    system.publish("elsewhere", rows(0, 10, 20), "--seal")
    values = [row["v"] for row in rows(20, 10, 20)]
    pairs = sum(x > y for x in values for y in values)
    lines = system.lines("poison")
    assert lines[-1]["row"] == {"n": pairs}, "it sees the rows that came after, and no other"
    resumed = client.subscribe("poison", seen[-1].token if seen else "earliest")
    assert [update.time for update in resumed] == [line["time"] for line in lines]
    client.close()
    assert system.lines("elsewhere_count") == counts("elsewhere_count", 0, 10, 20)
    whole = [*counts("poisoned_count", 0, 20, 1_000)[:-1], *counts("poisoned_count", 20, 10, 20)]
    whole[20]["row"]["n"] = 1_000
    assert system.lines("poisoned_count") == whole
    system.sql("DROP QUERY poison")


@pytest.mark.long
def test_a_query_at_which_workers_are_killed_twice_is_set_aside(system: System) -> None:
    system.sql(
        "CREATE STREAM deadly (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
        "CREATE QUERY beside AS SELECT COUNT(*) AS n FROM deadly [TUMBLE 1 SECOND];"
        f"CREATE QUERY killer AS {JOIN.format('deadly')} WHERE x.v > y.v"
    )
    system.publish("deadly", rows(0, 10, 500))

    def worker() -> psutil.Process | None:
        """The Python worker that is at work on the killer."""
        for note in (system.directory / "operators" / "checkpoint" / "work").glob("[0-9]"):
            if b"\x01killer@" in note.read_bytes():
                return next((p for p in workers() if str(note) in {mapped.path for mapped in p.memory_maps()}), None)
        return None

    def workers() -> list[psutil.Process]:
        running = state.read(system.directory)
        assert running is not None
        (operators,) = (part.process for part in running.parts if part.name == "operators")
        if operators is None:
            return []
        return [p for p in psutil.Process(operators.pid).children(recursive=True) if p.name().startswith("python")]

    for _ in range(2):
        found = wait_for(worker, "a worker is at work on the killer")
        os.kill(found.pid, signal.SIGKILL)
        found.wait(60)
    wait_for(lambda: "killer" in failed(system), "the killer is set aside", within=240)
    assert failed(system)["killer"].startswith("its worker was lost 2 times")
    system.publish("deadly", [], "--seal")
    assert system.lines("beside") == counts("beside", 0, 10, 500)
