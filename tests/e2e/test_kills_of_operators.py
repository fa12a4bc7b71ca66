"""Operators killed again and again, at random and where reports are written but their micro-batch is not committed."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition

from services.operators.segments import RETAINED
from stairwise.platform import kafka
from stairwise.system.processes import session_members
from stairwise.wire import topics
from stairwise.wire.plans import PlanReader
from stairwise.wire.reports import ReportHeaders
from tests.e2e.conftest import System, wait_for
from tests.oracle import run as oracle_lines

pytestmark = [pytest.mark.jvm, pytest.mark.long]

START = 1_700_000_000_000
STEP = 20
"""Seconds of event time between two kills."""
LENGTH = 40_000
"""Of a key: a page with one of them is large enough to lie in a file."""


class Flow:
    """Rows of event time in steps, and what a subscriber must see of them."""

    def __init__(self, system: System, name: str) -> None:
        self.system, self.name, self._second = system, name, 0
        self._stream = f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, qty BIGINT) TIMESTAMP BY ts PARTITIONS 2"
        recent = f"SELECT ts, qty FROM {name} [RANGE 30 SECONDS SLIDE 10 SECONDS]"
        self._changes = {
            f"{name}_recent": f"{recent} EMIT CHANGES",
            f"{name}_beyond": f"{recent} EXCEPT SELECT ts, qty FROM {name} [ROWS 30 SLIDE 10 SECONDS] EMIT CHANGES",
        }
        system.sql(
            f"{self._stream};"
            f"CREATE QUERY {name}_q AS SELECT COUNT(*) AS n, SUM(qty) AS volume FROM {name} [TUMBLE 10 SECONDS];"
            f"CREATE QUERY {name}_by_key AS SELECT SUM(qty) AS volume FROM {name} [TUMBLE 10 SECONDS] GROUP BY k"
            + "".join(f"; CREATE QUERY {query} AS {select}" for query, select in self._changes.items())
        )

    def step(self, *options: str) -> None:
        seconds = range(self._second, self._second + STEP)
        rows = [{"ts": START + s * 1000, "k": f"k{q}" + "-" * LENGTH, "qty": q} for s in seconds for q in (1, 2)]
        self._second += STEP
        self.system.publish(self.name, rows, *options)

    def end(self) -> None:
        """Seal the stream, and hold every line against what it must be."""
        self.step("--seal")
        counts = [(0, 2, 3), *((t, 20, 30) for t in range(10, self._second, 10)), (self._second, 18, 27)]
        assert self.system.lines(f"{self.name}_q") == [
            {"query": f"{self.name}_q", "time": START + t * 1000, "diff": 1, "row": {"n": n, "volume": volume}}
            for t, n, volume in counts
        ]
        assert self.system.lines(f"{self.name}_by_key") == [
            {"query": f"{self.name}_by_key", "time": START + t * 1000, "diff": 1, "row": {"volume": n // 2 * q}}
            for t, n, _ in counts
            for q in (1, 2)
        ]

        rows = [{"ts": START + s * 1000, "k": "", "qty": q} for s in range(self._second) for q in (1, 2)]
        for query in self._changes:
            script = f"{self._stream}; CREATE QUERY {query} AS {self._changes[query]}"
            assert self.system.lines(query) == oracle_lines(script, {self.name: rows})

    def assert_in_files(self) -> None:
        """Pages lay in files, and those of long ago are gone, whoever was killed when they were written."""
        shards = [list(shard.iterdir()) for shard in (checkpoint(self.system) / "pages").iterdir()]
        assert any(shards)
        assert all(len(segments) <= 3 * RETAINED for segments in shards)

    def repeats(self) -> int:
        """How many reports stand in ``results`` more than once."""
        brokers = json.loads((self.system.directory / "system.json").read_text())["addresses"]["brokers"]
        plans = PlanReader(brokers)
        signature = plans.read_to_end().queries[f"{self.name}_q"].signature
        plans.close()
        consumer = kafka.consumer(brokers, "kills", enable_partition_eof=True)
        consumer.assign([TopicPartition(topics.RESULTS, topics.results_partition(signature), 0)])
        seen: Counter[tuple[Any, ...]] = Counter()
        while (message := consumer.poll(10)) is not None and message.error() is None:
            headers = ReportHeaders.decode(dict(message.headers()))
            if headers.signature == signature:
                seen[headers.shard, *headers.position, headers.mark] += 1
        consumer.close()
        return sum(count - 1 for count in seen.values())


def checkpoint(system: System) -> Path:
    return system.directory / "operators" / "checkpoint"


def operators(system: System) -> psutil.Process:
    return psutil.Process(wait_for(lambda: system.parts()["operators"]["pid"], "operators runs"))


def kill_a_worker(system: System, chance: random.Random) -> bool:
    """kill -9 of one of Spark's Python processes; False where none runs yet, or it has just ended.

    They are sought in the session of operators and not among its children: workers whose daemon was killed go on
    working, as nobody's children.
    """
    workers = [p for p in session_members(operators(system).pid) if "pyspark.daemon" in p.command]
    return bool(workers) and chance.choice(workers).signal(signal.SIGKILL)


def await_another(system: System, before: psutil.Process) -> None:
    def is_back() -> bool:
        now = system.parts()["operators"]
        return bool(now["pid"] not in (None, before.pid) and now["health"] == "healthy")

    wait_for(is_back, "operators is back", within=240)


@contextmanager
def uncommitted(system: System) -> Iterator[None]:
    """A place where no micro-batch can be committed, though its reports are written: Spark finds no directory there."""
    commits = checkpoint(system) / "commits"
    aside = commits.with_name("commits-aside")
    commits.rename(aside)
    commits.touch()
    try:
        yield
    finally:
        commits.unlink()
        aside.rename(commits)


@pytest.mark.parametrize("kills", [20])
def test_reports_of_a_micro_batch_that_was_not_committed_are_not_seen_twice(system: System, kills: int) -> None:
    flow = Flow(system, f"uncommitted{kills}")
    for _ in range(kills):
        flow.step()
        system.lines(f"{flow.name}_q", "--limit", "1")
        before = operators(system)
        with uncommitted(system):
            flow.step()
            wait_for(lambda before=before: not before.is_running(), "operators cannot commit, and ends")
        await_another(system, before)
    flow.end()
    repeats = flow.repeats()
    print(f"kills {kills}, reports written again {repeats}, lost 0, repeated 0, wrong 0")
    assert repeats >= kills
    flow.assert_in_files()


@pytest.mark.parametrize("kills", [20])
@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_kills_at_any_moment_change_no_line(system: System, victim: str, kills: int) -> None:
    flow, chance = Flow(system, f"any_{victim}{kills}"), random.Random(kills)
    for _ in range(kills):
        flow.step()
        before = operators(system)
        time.sleep(chance.uniform(0.0, 2.0))  # the moment is what is tried out
        if victim == "driver":
            before.send_signal(signal.SIGKILL)
            await_another(system, before)
        else:
            wait_for(lambda: kill_a_worker(system, chance), "a Python worker runs")
            flow.step()
    flow.end()
    flow.assert_in_files()
    print(f"kills {kills}, lost 0, repeated 0, wrong 0")
