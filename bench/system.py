"""The whole system, from one JSON object a message to final results at a subscriber (``make bench-system``).

Counts the CPU seconds of ingest, windows, operators (its driver, Spark's JVM and its Python workers) and results, not
those of the broker, the producer and the subscriber. A case that takes too long is stopped; what it costs is then told
by the events whose results had become final.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import psutil
from prometheus_client.parser import text_string_to_metric_families

from bench.ending import end_in_order, undisturbed
from bench.report import HEAD, Goal, as_text, conclude
from stairwise.client import Client, Update
from stairwise.errors import StairwiseError
from stairwise.platform import kafka
from stairwise.system import state
from stairwise.system.temporary import state_directory
from stairwise.wire import topics

START = 1_700_000_000_000
EVENTS_A_SECOND = 10_000
"""Of event time."""
KEYS = 1_000
PARTITIONS = 4
WINDOWS = (1, 50, 10_000)
WARM_UP = 900_000
EVENTS = 4_000_000
LIMIT = 120.0
"""For how many seconds a case may run, its warm-up not counted."""
PATIENCE = 90.0
"""For how many seconds the first results of a case are waited for."""
LATENCY_SECONDS = 40
WARM_SECONDS = 15
BAR = 3.5

OTHERS = """
| system | 60 s / 60 s | 60 s / 1 s | 10 windows | 50 windows |
|---|---|---|---|---|
| Flink SQL 2.3, heap state | 6.3-6.8 | 13-15 | 24-31 | 203 |
| Flink SQL, RocksDB | | 26 | 45 | |
| Kafka Streams 4.3, RocksDB | 11 | 227 | 219 | 5,300 |
| bytewax, 2 processes | 28 | 167 | 339 | 3,500 |
| quixstreams, 2 processes | 111 | 2,090 | 2,870 | 30,700 |
""".strip()
STAIRWISE = (sys.executable, "-m", "stairwise.cli.main")


@dataclass(frozen=True)
class Case:
    """What a number of windows cost."""

    windows: int
    events: int
    """Whose results became final while it was measured."""
    cpu: dict[str, float]
    """CPU seconds by part."""
    is_whole: bool

    @property
    def cost(self) -> float:
        """CPU seconds per million events."""
        return sum(self.cpu.values()) / self.events * 1e6 if self.events else float("inf")

    @property
    def figure(self) -> str:
        if not self.events:
            return f"nothing final within {PATIENCE:.0f} s"
        return f"{self.cost:,.1f}" + ("" if self.is_whole else f" (stopped after {self.events:,} events)")

    @property
    def row(self) -> str:
        each = [f"{self.cpu.get(part, 0.0) / max(1, self.events) * 1e6:,.2f}" for part in PARTS]
        return f"| {self.windows:,} | {' | '.join(each)} | {self.figure} |"


SERVICES = ("ingest", "operators", "results", "windows")
PARTS = ("ingest", "driver", "Spark's JVM", "Python workers", "results", "windows")
"""The processes of operators are told apart."""


@dataclass
class Bench:
    directory: Path
    client: Client

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far, by part, of its process and all below it."""
        known = state.read(self.directory)
        assert known is not None
        found = dict.fromkeys(PARTS, 0.0)
        for part in known.parts:
            if part.name in SERVICES and part.process is not None:
                for name, spent in _family(part.name, part.process.pid):
                    found[name] += spent
        return found

    def averages(self) -> dict[str, float]:
        """Where the time goes between publisher and subscriber: milliseconds of each step, on average so far."""
        known = state.read(self.directory)
        assert known is not None
        sums: Counter[str] = Counter()
        for part in known.parts:
            if part.name in ("ingest", "operators") and part.metrics is not None:
                with urllib.request.urlopen(part.metrics) as page:
                    for family in text_string_to_metric_families(page.read().decode()):
                        for sample in family.samples:
                            sums[" ".join([sample.name, sample.labels.get("phase", "")]).strip()] += sample.value
        transactions = sums["stairwise_ingest_transaction_duration_seconds_count"]
        found = {"ingest: commit": sums["stairwise_ingest_transaction_duration_seconds_sum"] / max(1, transactions)}
        batches = max(1, sums["stairwise_operators_batches_total"])
        found["operators: micro-batch"] = sums["stairwise_operators_batch_duration_seconds_sum"] / batches
        phase = "stairwise_operators_phase_time_seconds_total "
        found |= {f"… {name.removeprefix(phase)}": spent / batches for name, spent in sums.items() if phase in name}
        return {name: seconds * 1000 for name, seconds in found.items()}

    def case(self, windows: int) -> Case:
        """Declare, warm up, publish, and wait for the last report or for the time to be up."""
        stream = f"load{windows}"
        self._declare(stream, windows)
        say("  warming up")
        with self.client.subscribe(f"{stream}_0", "earliest", encoding="arrow") as updates:
            progress = _Progress(updates)
            # As it would come: the JVM is warm after dozens of micro-batches, which a burst would not take.
            self._publish(stream, 0, WARM_UP, EVENTS_A_SECOND)
            if not progress.reaches(START + (WARM_UP // EVENTS_A_SECOND - 1) * 1_000, PATIENCE):
                return Case(windows, 0, {}, is_whole=False)
            say("  measuring")
            before, since = self.cpu(), progress.time
            feeding = threading.Thread(target=self._publish, args=(stream, WARM_UP, EVENTS))
            feeding.start()
            last = START + ((WARM_UP + EVENTS) // EVENTS_A_SECOND - 1) * 1_000
            is_whole = progress.reaches(last, LIMIT)
            after = self.cpu()
            feeding.join()
        events = (progress.time - since) // 1_000 * EVENTS_A_SECOND
        return Case(windows, events, {part: after[part] - before.get(part, 0.0) for part in after}, is_whole)

    def latencies(self) -> np.ndarray:
        """Milliseconds from when a report was due to the subscriber, at a steady rate."""
        self.client.execute(f"{_stream('live')} CREATE QUERY live_0 AS {_select('live', 'TUMBLE 1 SECOND')};")
        stopping = threading.Event()
        feeding = threading.Thread(target=_feed, args=(self.client.addresses.brokers, stopping))
        found: list[tuple[float, int]] = []
        feeding.start()
        try:
            with self.client.subscribe("live_0", "earliest", encoding="arrow") as updates:
                for update in updates:
                    found.append((time.time() * 1_000, update.time))
                    if len(found) >= WARM_SECONDS + LATENCY_SECONDS:
                        break
        finally:
            stopping.set()
            feeding.join()
        return np.array([came - due for came, due in found[WARM_SECONDS:]])

    def _declare(self, stream: str, windows: int) -> None:
        kinds = [f"RANGE {range_} SECONDS SLIDE {slide} SECONDS" for range_, slide in _windows(windows)]
        queries = [f"CREATE QUERY {stream}_{i} AS {_select(stream, kind)};" for i, kind in enumerate(kinds)]
        self.client.execute(_stream(stream) + "\n".join(queries))

    def _publish(self, stream: str, first: int, count: int, rate: int | None = None) -> None:
        """Events as fast as they can be sent, or so many a second."""
        producer = kafka.producer(self.client.addresses.brokers, linger_ms=20)
        topic = topics.incoming(stream)
        begun = time.monotonic()
        for number in range(first, first + count):
            if rate is not None and number % 100 == 0:
                producer.poll(0)
                time.sleep(max(0.0, begun + (number - first) / rate - time.monotonic()))
            at, key = START + number * 1_000 // EVENTS_A_SECOND, number * 7 % KEYS
            value = b'{"ts":%d,"k":"key%d","x":%d}' % (at, key, number % 1_009)
            while True:
                try:
                    producer.produce(topic, value, partition=key % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush(120)


class _Progress(threading.Thread):
    """How far the reports of a subscription have come."""

    def __init__(self, updates: Iterator[Update]) -> None:
        super().__init__(daemon=True)
        self.time = START
        self._updates = updates
        self._changed = threading.Condition()
        self.start()

    def run(self) -> None:
        try:
            for update in self._updates:
                with self._changed:
                    self.time = update.time
                    self._changed.notify_all()
        except StairwiseError as error:
            print("the subscription ended:", error, file=sys.stderr)

    def reaches(self, time_: int, within: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.time >= time_, within)


def _family(service: str, pid: int) -> Iterator[tuple[str, float]]:
    """The processes of a service: which part each is, its CPU seconds and those of its children that have ended."""
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        try:
            yield _part_of(service, process), sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:  # or about to be: a zombie has no command line
            continue


def _part_of(service: str, process: psutil.Process) -> str:
    if service != "operators":
        return service
    if process.name() == "java":
        return "Spark's JVM"
    return "Python workers" if "pyspark.daemon" in process.cmdline() else "driver"


def _windows(count: int) -> list[tuple[int, int]]:
    """Ranges and slides in seconds, the widest and finest first: each once, and again only when all were drawn."""
    kinds = [(range_, slide) for slide in range(1, 11) for range_ in range(slide, 61)]
    random.Random(count).shuffle(kinds)
    kinds.remove((60, 1))
    return list(itertools.islice(itertools.cycle([(60, 1), *kinds]), count))


def _stream(name: str) -> str:
    return f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts PARTITIONS {PARTITIONS};\n"


def _select(stream: str, window: str) -> str:
    return f"SELECT k, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS least, MAX(x) AS most FROM {stream} [{window}] GROUP BY k"


def _feed(brokers: str, stopping: threading.Event) -> None:
    """Rows that happen now, at a steady rate."""
    producer = kafka.producer(brokers, linger_ms=5)
    begun, number = time.monotonic(), 0
    while not stopping.is_set():
        now = int(time.time() * 1_000)
        for key in range(100):
            value = b'{"ts":%d,"k":"key%d","x":%d}' % (now, key, number)
            producer.produce(topics.incoming("live"), value, partition=key % PARTITIONS)
            number += 1
        producer.poll(0)
        time.sleep(max(0.0, begun + number / EVENTS_A_SECOND - time.monotonic()))
    producer.flush(30)


@contextmanager
def system(directory: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Bench]:
    """All services and a broker, started as a user would."""
    environment = {**os.environ, **settings, "STAIRWISE_DIR": str(directory)}
    up, down = [*STAIRWISE, "up", "--detach", "--port-base", "0"], [*STAIRWISE, "down"]
    try:
        subprocess.run(up, env=environment, check=True, stdout=subprocess.DEVNULL)
        with Client.connect(directory=directory, environ={}) as client:
            yield Bench(directory, client)
    finally:
        with undisturbed():
            subprocess.run(down, env=environment, check=False, stdout=subprocess.DEVNULL)


def directory_of_system() -> AbstractContextManager[Path]:
    """For one system; its logs stay if it does not start."""
    return state_directory("bench-system-", subprocess.CalledProcessError)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def alone(windows: int) -> Case:
    """A case on a system of its own, so that none pays for the queries of another."""
    say(f"{windows:,} windows")
    with directory_of_system() as directory, system(directory) as bench:
        try:
            return bench.case(windows)
        except StairwiseError as error:
            print(f"{windows:,} windows: {error}", file=sys.stderr)
            return Case(windows, 0, {}, is_whole=False)


def delay_goals() -> tuple[list[Goal], str]:
    """The goals, and a table of where the time goes."""
    say("delay")
    with directory_of_system() as directory, system(directory) as bench:
        p50, p99 = np.percentile(bench.latencies(), [50, 99])
        averages = bench.averages()
    rate = f"beyond the due time at {EVENTS_A_SECOND:,} rows a second"
    goals = [
        Goal(f"delay {rate}, p50", "< 1,500 ms", f"{p50:,.0f} ms", bool(p50 < 1_500)),
        Goal(f"delay {rate}, p99", "< 3,000 ms", f"{p99:,.0f} ms", bool(p99 < 3_000)),
    ]
    rows = "\n".join(f"| {step} | {spent:,.0f} |" for step, spent in averages.items())
    return goals, f"| step | ms on average, start included |\n|---|---|\n{rows}"


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost and the delay of the whole system.")
    parser.add_argument("--only", metavar="WINDOWS|delay", help="one case; the page of figures stays as it is")
    only = parser.parse_args().only
    end_in_order()
    cases = [alone(windows) for windows in WINDOWS if only in (None, str(windows))]
    goals = [
        Goal(f"{c.windows:,} windows, CPU s per million events", f"≤ {BAR}", c.figure, c.is_whole and c.cost <= BAR)
        for c in cases
    ]
    steps = ""
    if only in (None, "delay"):
        delays, steps = delay_goals()
        goals += delays
    table = "\n".join(
        [f"| windows | {' | '.join(PARTS)} | all |", f"|{'---|' * (len(PARTS) + 2)}", *(c.row for c in cases)]
    )
    if only is not None:
        print(table, steps, as_text([HEAD, *(goal.row for goal in goals)]), sep="\n")
        return 0 if all(goal.is_met for goal in goals) else 1
    text = (
        f"One JSON object a message, {KEYS:,} keys, {EVENTS_A_SECOND:,} events a second of event time; SUM, COUNT, "
        "MIN, MAX by key over windows of up to 60 s that slide by up to 10 s, in whole seconds, and one subscriber. Of "
        f"such windows there are {len(set(_windows(max(WINDOWS))))}: among {max(WINDOWS):,} queries each is asked for "
        "by several. (Ranges that all differ, by milliseconds, are not this: a report then has as many steps as there "
        "are ranges, for each key, and costs what these cost to write.) CPU seconds per million events, of "
        f"{EVENTS:,} after {WARM_UP:,} at the pace of event time that warm up, by part; the broker is not counted. "
        f"A case is stopped after "
        f"{LIMIT:.0f} s.\n\n{table}\n\n"
        "What other systems need for such windows (CPU seconds per million events, warm-up included, measured once on "
        "two cores of the same kind, each as its user would write it; above 100 only an order of magnitude):\n\n"
        f"{OTHERS}\n\nWhere the time of a report goes at {EVENTS_A_SECOND:,} rows a second:\n\n{steps}"
    )
    return conclude("system", "The whole system", text, goals)


if __name__ == "__main__":
    sys.exit(main())
