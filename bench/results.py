"""What subscriptions cost the results service, and one that stops reading the others (``make bench-results``)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
import psutil

from bench.report import Goal, conclude
from bench.results_source import Source
from stairwise.v1 import results_pb2 as pb
from stairwise.v1 import results_pb2_grpc
from tests.integration.ingest_system import ingest_system
from tests.integration.results_system import Service, running

COUNTS = (1, 100, 1_000)
IDLE = 10_000
REPORTS = 10
ROWS = 10
PACE = 1.0
"""Seconds between two rounds of reports, where the machine keeps up."""
STOPPED = 60.0
"""For how many seconds a subscriber does not read."""
CALM = 20.0
LARGE_ROWS = 20_000
QUICK = 0.1
"""Seconds between two reports beside the subscriber that does not read."""


@dataclass(frozen=True)
class Cost:
    """What a number of subscriptions cost."""

    subscriptions: int
    came: int
    delays: np.ndarray
    """Seconds from the writer to the subscriber."""
    cpu: float
    """CPU seconds of the service."""
    memory: int
    """Bytes of the service at the end."""

    @property
    def row(self) -> str:
        p50, p99 = np.percentile(self.delays, [50, 99]) * 1000 if len(self.delays) else (0, 0)
        each = self.cpu / max(1, self.came) * 1e6
        cells = (
            f"{self.subscriptions:,}",
            f"{self.came:,}",
            f"{each:,.0f}",
            f"{self.memory >> 20}",
            f"{p50:.0f}",
            f"{p99:.0f}",
        )
        return f"| {' | '.join(cells)} |"


class Bench:
    def __init__(self, brokers: str, service: Service) -> None:
        self._brokers = brokers
        self._service = service
        assert service.process is not None
        self._process = psutil.Process(service.process.pid)

    @contextmanager
    def source(self, queries: int) -> Iterator[Source]:
        """A stream with so many queries of one signature."""
        source = Source(self._brokers, queries)
        try:
            yield source
        finally:
            source.close()

    @contextmanager
    def subscribed(self, names: Sequence[str], reports: int, channels: int = 1) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "bench.results_load", self._service.address, str(reports), str(channels)]
        load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert load.stdin is not None
        assert load.stdout is not None
        try:
            load.stdin.write("\n".join(names))
            load.stdin.close()
            assert load.stdout.readline() == "ready\n"
            yield load
        finally:
            load.kill()
            load.wait()

    def cost(self, queries: int) -> Cost:
        """Of one subscription to each query, all of which report in every round."""
        with self.source(queries) as source, self.subscribed(source.queries, REPORTS) as load:
            before = self._cpu()
            for _ in range(REPORTS):
                begun = time.monotonic()
                source.report(ROWS)
                time.sleep(max(0.0, PACE - (time.monotonic() - begun)))
            said = _answer(load)
            return self._cost(queries, said, before)

    def idle(self) -> tuple[Cost, float]:
        """Many subscriptions to which nothing happens for a while, and then one report. Also the CPU of a second."""
        with self.source(1) as source, self.subscribed(source.queries * IDLE, 1, channels=10) as load:
            before = self._cpu()
            time.sleep(10)
            quiet = (self._cpu() - before) / 10
            before = self._cpu()
            source.report(ROWS)
            return self._cost(IDLE, _answer(load), before), quiet

    def stopped(self) -> tuple[np.ndarray, np.ndarray, bool, str]:
        """Delays of a subscriber beside one that reads large reports, and beside one that does not read them; did that
        one get everything in the end, and how."""
        with (
            self.source(1) as large,
            self.source(1) as small,
            grpc.insecure_channel(self._service.address) as channel,
        ):
            (name,) = large.queries
            stub = results_pb2_grpc.ResultsStub(channel)
            reading = stub.Subscribe(pb.SubscribeRequest(query=name))
            reader = threading.Thread(target=_drain, args=(reading,))
            reader.start()
            calm, _ = self._steady(small, CALM, large)
            reading.cancel()
            reader.join()
            call = stub.Subscribe(pb.SubscribeRequest(query=name))
            got = [next(call)]
            beside, expected = self._steady(small, STOPPED, large)
            ended = "it read on"
            while not got[-1].HasField("progress") or got[-1].progress.time_ms < expected[-1]:
                try:
                    got.append(next(call))
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.ABORTED:
                        raise
                    ended = "it was ended, and resumed by its token"
                    call = stub.Subscribe(pb.SubscribeRequest(query=name, token=got[-1].token))
            call.cancel()
        came = [m.progress.time_ms for m in got if m.HasField("progress")]
        rows = sum(len(m.update.changes) for m in got)
        return calm, beside, came == expected and rows == len(expected) * LARGE_ROWS, ended

    def _steady(self, small: Source, seconds: float, large: Source) -> tuple[np.ndarray, list[int]]:
        """Delays of a subscriber to small reports, while large ones of another query are written; and their times."""
        rounds, times = int(seconds / QUICK), []
        with self.subscribed(small.queries, rounds) as load:
            begun = time.monotonic()
            for number in range(rounds):
                small.report(ROWS)
                if number % 10 == 0:
                    large.report(LARGE_ROWS)
                    times.append(large.time)
                time.sleep(max(0.0, QUICK * (number + 1) - (time.monotonic() - begun)))
            return np.array(_answer(load)["delays"]), times

    def _cost(self, subscriptions: int, said: dict[str, object], cpu_before: float) -> Cost:
        memory = self._process.memory_info().rss
        delays = np.array(said["delays"])
        return Cost(subscriptions, int(str(said["came"])), delays, self._cpu() - cpu_before, memory)

    def _cpu(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)


def _drain(call: Iterator[object]) -> None:
    try:
        for _ in call:
            pass
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.CANCELLED:
            raise


def _answer(load: subprocess.Popen[str]) -> dict[str, object]:
    assert load.stdout is not None
    said: dict[str, object] = json.loads(load.stdout.readline())
    return said


def measure(bench: Bench) -> tuple[list[Goal], str]:
    costs = [bench.cost(count) for count in COUNTS]
    idle, quiet = bench.idle()
    calm, beside, complete, ended = bench.stopped()
    before, during = np.percentile(calm, 99) * 1000, np.percentile(beside, 99) * 1000
    many = costs[-1]
    expected = many.subscriptions * REPORTS
    goals = [
        Goal(
            f"{many.subscriptions:,} subscriptions to as many queries of one signature get every report",
            f"{expected:,}",
            f"{many.came:,}",
            many.came == expected,
        ),
        Goal(f"{IDLE:,} idle subscriptions hold, and get a report", f"{IDLE:,}", f"{idle.came:,}", idle.came == IDLE),
        Goal(
            f"delay (p99) beside a subscriber that does not read for {STOPPED:.0f} s",
            "≤ 1.5 times, or 20 ms more",
            f"{during:.0f} ms, {before:.0f} ms while it reads",
            bool(during <= max(1.5 * before, before + 20)),
        ),
        Goal("what that subscriber gets in the end", "everything, once", ended if complete else "NOT ALL", complete),
    ]
    table = "\n".join(cost.row for cost in (*costs, idle))
    text = (
        f"One process; queries of one signature with windows of different ranges, each of which reports {ROWS} rows "
        f"every {PACE:g} s, {REPORTS} times, to one subscriber, out of one stair in each of two shards; the last line "
        f"is {IDLE:,} subscribers of one query that get one report between them. Delay is from the producer's call to "
        f"the subscriber, both in Python. While nothing happens the {IDLE:,} cost {quiet:.1%} of a core.\n\n"
        "| subscriptions | reports received | CPU µs a report | memory, MiB | delay p50, ms | p99, ms |\n"
        f"|---|---|---|---|---|---|\n{table}"
    )
    return goals, text


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        ingest_system(Path(directory)) as system,
        running(system.brokers, Path(directory) / "results.log") as service,
    ):
        goals, text = measure(Bench(system.brokers, service))
    return conclude("results", "Results", text, goals)


if __name__ == "__main__":
    sys.exit(main())
