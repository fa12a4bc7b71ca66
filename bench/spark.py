"""Operators on Spark: a backlog drained with 1 to 10,000 windows, and by Spark's own windows (``make bench-spark``)."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

from bench import spark_backlog as backlog
from bench import spark_latency as latency
from bench import spark_recovery
from bench.ending import end_in_order, undisturbed
from bench.report import HEAD, PLOTS, Goal, as_text, conclude
from services.windows.registry import Registry
from stairwise.platform import kafka
from stairwise.platform.config import Settings
from stairwise.schema import Stream
from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports
from stairwise.wire import topics

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROWS = 20_000_000
MESSAGES = ROWS // backlog.ROWS_PER_MESSAGE
PER_BATCH = 100
COUNTS = (1, 100, 1_000, 10_000)
WARM_UP = 2
"""How many batches are left out."""

OWN_SECONDS = 240.0
"""For how long Spark's own windows are given batches, at most, once they are warm."""


@dataclass(frozen=True)
class Beside:
    """How ours and Spark's own windows are compared."""

    memory: str
    """For Spark's own."""
    per_batch: int
    """How many messages are in a batch, of both: as many as theirs can bear, since larger ones take them minutes."""

    @property
    def messages(self) -> int:
        return max(160, 8 * self.per_batch)


OWN = {1: Beside("4g", 256), 10: Beside("8g", 16), 50: Beside("14g", 8)}
"""By the number of windows."""
LIVE_WARM = 20
LIVE_SECONDS = 60
"""For how long rows flow while delays are measured."""


@contextmanager
def broker_at(directory: Path) -> Iterator[str]:
    broker = Broker(find_installation(os.environ), directory / "broker", *free_ports(2))
    broker.prepare()
    running = launch(broker.part(), directory)
    try:
        await_healthy(running)
        yield broker.address
    finally:
        with undisturbed():
            stop(running)


class Bench:
    def __init__(self, brokers: str, directory: Path) -> None:
        self.brokers, self.directory = brokers, directory
        self.registry = Registry(brokers)
        self._runs = 0

    def ours(self, what: str, windows: Sequence[str], messages: int = MESSAGES, per_batch: int = PER_BATCH) -> float:
        """Rows a second with these windows."""
        stream = self._written(windows, messages)
        place = self.directory / f"run{self._runs}"
        arguments = [self.brokers, str(place), str(messages), str(per_batch)]
        batches = json.loads(_child("bench.spark_ours", arguments))[WARM_UP:]
        rate = _rate(sum(taken for taken, _ in batches), sum(spent for _, spent in batches) / 1000)
        self._forget(stream)
        say(f"  {what}: {rate / 1e6:.2f} M rows/s")
        return rate

    def own(self, windows: Sequence[tuple[int, int]]) -> float:
        """Rows a second of Spark's own windows."""
        beside = OWN[len(windows)]
        stream = self._written([], beside.messages)
        place, batch = self.directory / f"own{self._runs}", str(beside.per_batch)
        arguments = [self.brokers, str(place), topics.sequenced(stream), batch, str(OWN_SECONDS), beside.memory]
        done = json.loads(_child("bench.spark_windows", [*arguments, json.dumps(windows)]))
        rate = _rate(done["messages"], done["seconds"])
        self._forget(stream)
        say(f"  Spark's own, {len(windows)} windows with {beside.memory} of memory: {rate:,.0f} rows/s")
        return rate

    def delays(self) -> tuple[np.ndarray, dict[str, float]]:
        """Milliseconds from append to append for each report, and where those of a micro-batch go."""
        stream = self._written(["TUMBLE 1 SECOND"], 0)
        feed = latency.Feed(self.brokers, stream, self.registry.catalogue.version)
        stopping = threading.Event()
        feeding = threading.Thread(target=feed.run, args=(stopping,))
        feeding.start()
        try:
            place = self.directory / f"run{self._runs}"
            seconds = str(LIVE_WARM + LIVE_SECONDS)
            phases = json.loads(_child("bench.spark_ours", [self.brokers, str(place), "0", "400", seconds]))
        finally:
            stopping.set()
            feeding.join()
        (query,) = (r for r in self.registry.catalogue.queries.values() if stream in r.query.streams)
        reports = latency.appended(self.brokers, query.signature, Settings().shards)
        delays = [reports[at] - feed.due[at] for at in sorted(reports.keys() & feed.due.keys())]
        self._forget(stream)
        return np.array(delays[-LIVE_SECONDS:]), phases

    def _written(self, windows: Sequence[str], messages: int) -> Stream:
        self._runs += 1
        stream = backlog.declare(self.registry, f"b{self._runs}", windows)
        backlog.write(self.brokers, stream, self.registry.catalogue.version, messages)
        return stream

    def _forget(self, stream: Stream) -> None:
        """The next run must not read it again."""
        names = [name for name, r in self.registry.catalogue.queries.items() if stream in r.query.streams]
        self.registry.execute("".join(f"DROP QUERY {name}; " for name in names) + f"DROP STREAM {stream.name}")
        topics.delete(kafka.admin(self.brokers), topics.topics_of(stream))


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _rate(messages: float, seconds: float) -> float:
    return messages * backlog.ROWS_PER_MESSAGE / seconds if seconds else 0.0


def _child(module: str, arguments: Sequence[str]) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr[-3000:]}")
    return done.stdout.strip().splitlines()[-1]


def windows_of(pairs: Sequence[tuple[int, int]]) -> list[str]:
    return [f"RANGE {w} SECONDS SLIDE {b} SECONDS" for w, b in pairs]


def delay_goals(bench: Bench) -> tuple[list[Goal], str]:
    say(f"delays at {latency.RATE:,} rows a second")
    delays, phases = bench.delays()
    p50, p99 = np.percentile(delays, [50, 99])
    rate = f"append to append at {latency.RATE:,} rows a second"
    goals = [
        Goal(f"{rate}, p50", "< 1,000 ms", f"{p50:,.0f} ms", bool(p50 < 1000)),
        Goal(f"{rate}, p99", "< 2,000 ms", f"{p99:,.0f} ms", bool(p99 < 2000)),
    ]
    where = " | ".join(f"{phases[phase]:.0f}" for phase in sorted(phases))
    head = f"| {' | '.join(sorted(phases))} |\n|{'---|' * len(phases)}"
    return goals, f"Where the milliseconds of a micro-batch go, on average:\n\n{head}\n| {where} |"


def recovery_goal(bench: Bench) -> Goal:
    say("the driver is killed with a GiB of state")
    cold, after, size = spark_recovery.recovery(bench.brokers, bench.registry, bench.directory, say)
    name = f"start after a kill with {size / 2**30:.1f} GiB of state, beyond the {cold:.0f} s of one without"
    return Goal(name, "≤ 15 s", f"{after - cold:.1f} s", after - cold <= 15)


def drained(bench: Bench, counts: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
    say(f"draining {MESSAGES * backlog.ROWS_PER_MESSAGE:,} rows")
    abrupt = {n: bench.ours(f"abrupt, {n:,} windows", backlog.abrupt(n)) for n in counts}
    return abrupt, {n: bench.ours(f"all different, {n:,} windows", backlog.different(n)) for n in counts}


def compared(bench: Bench) -> tuple[dict[int, float], dict[int, float]]:
    say("beside Spark's own windows")
    ours, own = {}, {}
    for count, beside in OWN.items():
        pairs = backlog.usual(count)
        what = f"ours, {count} windows, {beside.per_batch} messages in a batch"
        ours[count] = bench.ours(what, windows_of(pairs), beside.messages, beside.per_batch)
        own[count] = bench.own(pairs)
    return ours, own


def times(name: str, ours: float, own: float, wanted: int) -> Goal:
    return Goal(name, f"≥ {wanted} ×", f"{ours / own:.0f} ×", ours >= wanted * own)


def one_part(bench: Bench, part: str) -> int:
    """One part alone, its goals on the terminal; the page of figures stays as it is."""
    goals: list[Goal] = []
    if part == "delay":
        goals, where = delay_goals(bench)
        print(where)
    elif part == "recovery":
        goals = [recovery_goal(bench)]
    elif part == "own":
        ours, own = compared(bench)
        goals = [times(f"{count} windows beside Spark's own", ours[count], own[count], 20) for count in OWN]
    else:
        bench.ours(f"abrupt, {int(part):,} windows", backlog.abrupt(int(part)))
    print(as_text([HEAD, *(goal.row for goal in goals)]))
    return 0 if all(goal.is_met for goal in goals) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Operators on Spark: throughput and delay.")
    parser.add_argument(
        "--only", metavar="WINDOWS|own|delay|recovery", help="one part; the page of figures stays as it is"
    )
    only = parser.parse_args().only
    end_in_order()
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as name, broker_at(Path(name)) as brokers:
        bench = Bench(brokers, Path(name))
        if only is not None:
            return one_part(bench, only)
        abrupt, different = drained(bench, COUNTS)
        ours, own = compared(bench)
        delays, where = delay_goals(bench)
        recovered = recovery_goal(bench)
    plot(abrupt, different)
    ratio = abrupt[10_000] / abrupt[1]
    goals = [
        Goal("10,000 windows (abrupt) beside one", "≥ 85 %", f"{ratio:.0%}", ratio >= 0.85),
        times("one window, 60 s by 1 s, beside Spark's own", ours[1], own[1], 20),
        times("50 windows beside Spark's own", ours[50], own[50], 100),
        *delays,
        recovered,
    ]
    text = f"""
{ROWS / 1e6:.0f} million rows in Arrow messages of {backlog.ROWS_PER_MESSAGE:,}, {backlog.KEYS:,} keys, SUM by key,
drained by operators in `local[2]`; rows a second by the time of the micro-batches, the first {WARM_UP} left out.

| windows | 1 | 100 | 1,000 | 10,000 |
|---|---|---|---|---|
| seed's abrupt set | {" | ".join(f"{abrupt[n] / 1e6:.2f} M" for n in COUNTS)} |
| all different, ranges to 1 hour | {" | ".join(f"{different[n] / 1e6:.2f} M" for n in COUNTS)} |

Beside Spark's own `window()`, one streaming query for each window, with the same batches, as large as it can bear:

| windows | messages in a batch | ours | Spark's own | its memory |
|---|---|---|---|---|
{chr(10).join(f"| {n} | {OWN[n].per_batch} | {ours[n]:,.0f} | {own[n]:,.0f} | {OWN[n].memory} |" for n in OWN)}

![rows a second against the number of windows](plots/spark.svg)

{where}
"""
    return conclude("spark", "Operators on Spark", text, goals)


def plot(abrupt: dict[int, float], different: dict[int, float]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for label, rates in (("abrupt", abrupt), ("all different", different)):
        axes.plot(list(rates), [rate / 1e6 for rate in rates.values()], "o-", label=label)
    axes.set(xscale="log", xlabel="windows", ylabel="million rows a second", ylim=(0, None))
    axes.legend()
    figure.savefig(PLOTS / "spark.svg", bbox_inches="tight")


if __name__ == "__main__":
    sys.exit(main())
