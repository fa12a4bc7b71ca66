"""What time that leaps, stands still or lags behind costs those who have no part in it (``make bench-time``).

One system for all cases: a live query whose delay is watched while a row in another stream leaps by 56 years, and a
query that is dropped while another one catches up on ten million rows. Then starts after few idle marks and after many.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from bench.ending import end_in_order
from bench.report import Goal, conclude
from bench.system import STAIRWISE, Bench, directory_of_system, say, system
from bench.time_plot import Delays, Figure, plot
from stairwise.client import Client
from stairwise.platform import kafka
from stairwise.system.lag import group_lags
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders

START = 1_700_000_000_000
SECONDS_BEFORE, SECONDS_AFTER = 20, 20
"""For how long the innocent query is watched before and after the leap."""
ROWS = 10_000_000
BATCH = 16_384
KEYS = 1_000
DROPS = 3
MARKS = (5_000, 500_000)
STARTS = 3

LEAP = (
    "CREATE STREAM leaping (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts IN MILLISECONDS PARTITIONS 1;"
    "CREATE QUERY leap_groups AS SELECT k, COUNT(*) AS n FROM leaping [TUMBLE 1 SECOND] GROUP BY k;"
    "CREATE QUERY leap_all AS SELECT COUNT(*) AS n FROM leaping [TUMBLE 1 SECOND];"
    "CREATE QUERY leap_values AS SELECT DISTINCT k FROM leaping [RANGE 1 MINUTE SLIDE 1 SECOND];"
    "CREATE QUERY leap_rows AS SELECT k, v FROM leaping [RANGE 1 MINUTE SLIDE 1 SECOND] EMIT CHANGES;"
    "CREATE QUERY leap_landmark AS SELECT COUNT(*) AS n FROM leaping [FROM 0 SLIDE 1 SECOND];"
)
INNOCENT = (
    "CREATE STREAM innocent (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITIONS 1;"
    "CREATE QUERY innocent_counts AS SELECT k, COUNT(*) AS n FROM innocent [TUMBLE 1 SECOND] GROUP BY k;"
)
TWO_ROWS = '{"ts":1700000000,"k":"a","v":1}\n{"ts":1700000000000,"k":"a","v":2}\n'


def leap(bench: Bench) -> tuple[list[Figure], Delays]:
    """An innocent query's delays and the operators' CPU, before and after a row that leaps."""
    say("a leap of 56 years")
    bench.client.execute(INNOCENT + LEAP)
    stopping = threading.Event()
    feeding = threading.Thread(target=_feed, args=(bench.client.addresses.brokers, stopping))
    came: list[tuple[float, float]] = []
    feeding.start()
    try:
        with bench.client.subscribe("innocent_counts", "earliest") as updates:
            watching = threading.Thread(
                target=lambda: came.extend((time.monotonic(), time.time() - u.time / 1_000) for u in updates)
            )
            watching.start()
            _wait(lambda: len(came) >= 10, 120, "the innocent query reports")
            calm = _spent(bench, SECONDS_BEFORE)
            at = time.monotonic()
            rows = pa.table({"ts": [START // 1_000, START], "k": ["a", "a"], "v": [1, 2]})
            bench.client.publisher("leaping").publish(rows)
            disturbed = _spent(bench, SECONDS_AFTER)
            updates.close()
            watching.join()
    finally:
        stopping.set()
        feeding.join()
    delays = [(when - at, delay) for when, delay in came if when >= at - SECONDS_BEFORE]
    before = [delay for when, delay in delays if when < 0]
    after = [delay for when, delay in delays if when >= 0]
    extra = max(after) - max(before)
    delay = Goal(
        "an unrelated query beside a leap of 56 years, slide 1 s: longest delay beyond the longest before",
        "≤ 2 s",
        f"{max(0.0, extra):.2f} s ({max(before):.2f} before, {max(after):.2f} after)",
        extra <= 2 and len(after) >= SECONDS_AFTER // 2,
    )
    work = Goal(
        f"CPU of operators in the {SECONDS_AFTER} s from the leap on, beyond the {SECONDS_BEFORE} s before",
        "≤ 5 s",
        f"{disturbed - calm:.1f} s ({calm:.1f} before, {disturbed:.1f} after)",
        disturbed - calm <= 5,
    )
    figures = [
        Figure(delay, "a leap: an unrelated\nquery's extra delay", extra / 2),
        Figure(work, "a leap: operators'\nextra CPU", (disturbed - calm) / 5),
    ]
    return figures, delays


def run_two_rows() -> list[Figure]:
    """`stairwise run` over the two rows."""
    say("run over two rows")
    took = []
    with tempfile.TemporaryDirectory() as directory:
        script, data = Path(directory) / "q.cql", Path(directory) / "rows.jsonl"
        script.write_text(LEAP.split("CREATE QUERY leap_all", maxsplit=1)[0])
        data.write_text(TWO_ROWS)
        for _ in range(5):
            begun = time.monotonic()
            command = [*STAIRWISE, "run", str(script), "--data", f"leaping={data}"]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            took.append(time.monotonic() - begun)
            assert len(lines) == 2, lines
    median = statistics.median(took)
    goal = Goal("run over a row in seconds and one in milliseconds, GROUP BY", "< 2 s", f"{median:.2f} s", median < 2)
    return [Figure(goal, "run over a leap", median / 2)]


def drop(bench: Bench) -> list[Figure]:
    """From DROP QUERY until its subscriber is told, while another signature has millions of rows before it."""
    say("drops beside a catch-up")
    client = bench.client
    client.execute(
        "CREATE STREAM heavy (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts PARTITIONS 4;"
        "CREATE STREAM light (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITIONS 1;"
        "CREATE QUERY heavy_0 AS SELECT k, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS least, MAX(x) AS most"
        " FROM heavy [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY k;"
        + "".join(
            f"CREATE QUERY light_{i} AS SELECT k, COUNT(*) AS n FROM light [TUMBLE {i + 1} SECONDS] GROUP BY k;"
            for i in range(DROPS)
        )
    )
    client.publisher("light").publish([{"ts": START + i * 1_000, "k": "a"} for i in range(10)])
    subscriptions = [client.subscribe(f"light_{i}", "earliest") for i in range(DROPS)]
    for subscription in subscriptions:
        next(iter(subscription))
    ended: dict[int, float] = {}

    def watch(number: int) -> None:
        for _ in subscriptions[number]:
            pass
        ended[number] = time.monotonic()

    watching = [threading.Thread(target=watch, args=(i,)) for i in range(DROPS)]
    for thread in watching:
        thread.start()
    _publish_heavy(client)
    took, behind = [], []
    for number in range(DROPS):
        last = client.snapshot("heavy_0")[0] if number else START
        behind.append(START + ROWS // 10 - last)
        begun = time.monotonic()
        client.execute(f"DROP QUERY light_{number}")
        watching[number].join(120)
        took.append(ended.get(number, begun + 120) - begun)
    goal = Goal(
        f"a drop takes effect while another signature catches up on {ROWS:,} rows",
        "< 5 s",
        f"{max(took):.1f} s at the most ({', '.join(f'{t:.1f}' for t in took)};"
        f" the other was behind by {', '.join(f'{b // 1000:,}' for b in behind)} s of event time)",
        max(took) < 5,
    )
    return [Figure(goal, "a drop beside\na catch-up", max(took) / 5)]


def starts() -> list[Figure]:
    """How long `up` takes with few and with many marks of an idle partition in a stream, turn by turn."""
    took: dict[int, list[float]] = {few: [] for few in MARKS}
    with ExitStack() as stack:
        directories = {marks: stack.enter_context(directory_of_system()) for marks in MARKS}
        for marks, directory in directories.items():
            say(f"{marks:,} idle marks")
            _idle(directory, marks)
        for turn in range(STARTS):
            for marks, directory in directories.items():
                say(f"start {turn + 1} of {STARTS} after {marks:,} marks")
                environment = {**os.environ, "STAIRWISE_DIR": str(directory)}
                begun = time.monotonic()
                subprocess.run([*STAIRWISE, "up", "--detach"], env=environment, check=True, stdout=subprocess.DEVNULL)
                took[marks].append(time.monotonic() - begun)
                subprocess.run([*STAIRWISE, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
    few, many = (statistics.median(took[marks]) for marks in MARKS)
    spread = "; ".join(f"{marks:,}: {', '.join(f'{t:.1f}' for t in took[marks])} s" for marks in MARKS)
    goal = Goal(
        f"a start after {MARKS[1]:,} idle marks, beside one after {MARKS[0]:,}",
        "≤ 1.2 ×",
        f"{many / few:.2f} × ({spread})",
        many / few <= 1.2,
    )
    return [Figure(goal, "a start after\nmany idle marks", many / few / 1.2)]


def _idle(directory: Path, marks: int) -> None:
    """A system whose stream has so many marks of an idle partition, all of them taken by operators, and stopped."""
    with system(directory, {"STAIRWISE_BATCH_MESSAGES": "100000"}) as bench:
        bench.client.execute(
            "CREATE STREAM idle (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITION BY k PARTITIONS 2 RETAIN 1 DAY;"
            "CREATE QUERY idle_counts AS SELECT k, COUNT(*) AS n FROM idle [TUMBLE 1 MINUTE] GROUP BY k;"
        )
        far = START + 1_000_000_000
        bench.client.publish("idle", [{"ts": far if i < 8 else START, "k": f"key{i % 8}"} for i in range(16)])
        brokers = bench.client.addresses.brokers
        topic = "s.idle.1"
        reader = kafka.consumer(brokers, "bench-time", enable_partition_eof=True)
        last: dict[int, BatchHeaders] = {}

        def written() -> bool:
            places = [TopicPartition(topic, p, 0) for p in range(2)]
            for message in kafka.read_to_end(reader, places):
                last[message.partition()] = BatchHeaders.decode(kafka.headers_of(message))
            return sum(h.sequence + h.rows for h in last.values()) >= 8

        _wait(written, 60, "ingest has written the rows")
        reader.close()
        partition, before = min(last.items(), key=lambda item: item[1].watermark)
        producer = kafka.producer(brokers, linger_ms=20)
        for number in range(marks):
            mark = replace(
                before,
                sequence=before.sequence + before.rows,
                rows=0,
                watermark=before.watermark + number,
                previous=before.watermark + number - 1,
            )
            while True:
                try:
                    producer.produce(topic, b"", partition=partition, headers=mark.encode())
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush(120)
        _wait(lambda: group_lags(brokers, 30)["operators"] == 0, 600, "operators have taken the marks")


def _publish_heavy(client: Client) -> None:
    publisher = client.publisher("heavy")
    for first in range(0, ROWS, BATCH * 8):
        number = np.arange(first, min(ROWS, first + BATCH * 8))
        keys = pa.DictionaryArray.from_arrays(pa.array(number * 7 % KEYS), [f"key{i}" for i in range(KEYS)])
        columns = {"ts": pa.array(START + number // 10), "k": keys.cast(pa.string()), "x": pa.array(number % 1_009)}
        publisher.send_table(pa.table(columns))
    publisher.flush()


def _feed(brokers: str, stopping: threading.Event) -> None:
    """A hundred rows a second that happen now."""
    producer = kafka.producer(brokers, linger_ms=5)
    begun, number = time.monotonic(), 0
    while not stopping.is_set():
        now = int(time.time() * 1_000)
        producer.produce(topics.incoming("innocent"), b'{"ts":%d,"k":"key%d"}' % (now, number % 10), partition=0)
        producer.poll(0)
        number += 1
        time.sleep(max(0.0, begun + number / 100 - time.monotonic()))
    producer.flush(30)


def _spent(bench: Bench, seconds: float) -> float:
    """The CPU seconds of operators in so many seconds from now."""
    parts = ("driver", "Spark's JVM", "Python workers")
    before = bench.cpu()
    time.sleep(seconds)
    after = bench.cpu()
    return sum(after[part] - before[part] for part in parts)


def _wait(condition: Callable[[], bool], within: float, what: str) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within} s: {what}")
        time.sleep(0.1)


def _told(figures: list[Figure]) -> list[Figure]:
    for figure in figures:
        say("  " + "  ".join(figure.goal.row))
    return figures


def main() -> int:
    end_in_order()
    figures = _told(run_two_rows())
    with directory_of_system() as directory, system(directory) as bench:
        of_leap, delays = leap(bench)
        figures += _told(of_leap)
        figures += _told(drop(bench))
    figures += _told(starts())
    plot(figures, delays)
    text = (
        "A stretch of report times at which nothing changes is one report, a run, in operators, on the results topic "
        "and in `run`; and what a signature has to do is cut into parts, so that no other one waits for all of it.\n\n"
        "![shares of the goals; delays around a leap](plots/time.svg)"
    )
    goals = [figure.goal for figure in figures]
    return conclude("time", "Time that leaps, and work that is carried over", text, goals)


if __name__ == "__main__":
    sys.exit(main())
