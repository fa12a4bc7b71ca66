"""Whoever waits is told for what: by subscribe, explain and status."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest

from stairwise.system.processes import session_members
from tests.e2e.conftest import System, wait_for
from tests.e2e.test_flow import START, declare, trade

pytestmark = pytest.mark.jvm


def streams(system: System) -> dict[str, dict[str, Any]]:
    document = json.loads(system.run("status", "--json").stdout)
    return {stream["stream"]: stream for stream in document["streams"]}


def told(system: System, query: str) -> str:
    """The last line of EXPLAIN."""
    return system.ok("explain", query).splitlines()[-1]


def test_an_empty_partition_is_named_by_all_who_are_asked(system: System) -> None:
    declare(system, "hollow", partitions=2)
    system.sql("CREATE QUERY hollow_n AS SELECT COUNT(*) AS n FROM hollow [TUMBLE 10 SECONDS]")
    wait_for(lambda: told(system, "hollow_n") == "now: hollow_n waits for hollow: no row yet", "no row yet")
    subscription = system.start("subscribe", "hollow_n", "--limit", "1", stderr=subprocess.PIPE)
    assert subscription.stderr is not None
    assert subscription.stderr.readline() == "hollow_n waits for hollow: no row yet\n"
    system.publish("hollow", [trade(s, "A", 1) for s in range(25)])
    empty = subscription.stderr.readline()
    # A partition to which nothing was ever written may stop holding time back by itself after a while.
    if "hollow partition" in empty:
        assert ": no row yet" in empty
        assert "IDLE AFTER" in empty
        assert any(f"{where}: no row yet" == streams(system)["hollow"]["waits_for"] for where in _partitions())
    system.sql("SEAL STREAM hollow")
    out, _ = subscription.communicate(timeout=120)
    assert json.loads(out)["row"]["n"] == 1
    wait_for(
        lambda: told(system, "hollow_n") == "now: hollow_n is over: hollow is sealed and every report was made", "over"
    )


def _partitions() -> list[str]:
    return ["partition 0", "partition 1"]


def test_a_late_joiner_is_told_its_first_report(system: System) -> None:
    declare(system, "tardy", partitions=1)
    system.publish("tardy", [trade(s, "A", 1) for s in range(25)])
    system.await_ingest()
    system.sql("CREATE QUERY tardy_n AS SELECT COUNT(*) AS n FROM tardy [TUMBLE 10 SECONDS]")
    first = (
        "now: tardy_n joined at 2023-11-14 22:13:43.999, first report at 2023-11-14 22:13:50"
        " (the watermark of tardy is 2023-11-14 22:13:43.999)"
    )
    wait_for(lambda: told(system, "tardy_n") == first, "the first report")
    system.publish("tardy", [trade(s, "A", 1) for s in range(25, 32)])
    later = "now: tardy_n waits for event time: next report at 2023-11-14 22:14:00"
    wait_for(lambda: told(system, "tardy_n").startswith(later), "the next report")
    line = wait_for(lambda: streams(system).get("tardy"), "the stream's line")
    assert (line["rows"], line["late"], line["dead"], line["unread"]) == (32, 0, 0, 0)
    assert line["watermark"] == START + 30_999


def test_operators_that_stand_still_are_shown_behind_and_started_again(system: System) -> None:
    declare(system, "still", partitions=1)
    system.sql("CREATE QUERY still_n AS SELECT COUNT(*) AS n FROM still [TUMBLE 10 SECONDS]")
    system.publish("still", [trade(1, "A", 1)])
    wait_for(lambda: system.parts()["operators"]["lag"] == 0, "operators have taken everything")
    before = system.parts()["operators"]
    for process in session_members(before["pid"]):
        process.signal(signal.SIGSTOP)
    system.publish("still", [trade(s, "A", 1) for s in range(2, 31)])
    waits = "now: still_n waits for operators, which does not answer: "
    wait_for(lambda: told(system, "still_n").startswith(waits), "operators are named")
    operators = system.parts()["operators"]
    assert operators["lag"] > 0
    assert operators["health"] == "unhealthy"
    assert streams(system)["still"]["untaken"] > 0

    def is_back() -> bool:
        now = system.parts()["operators"]
        return bool(now["restarts"] > before["restarts"] and now["health"] == "healthy" and now["lag"] == 0)

    wait_for(is_back, "operators were started again and have caught up")
    assert "operators hangs" in (system.directory / "logs" / "supervisor.log").read_text()
