"""How fast ingest is, against a bare loop that consumes the same messages and does nothing (``make bench-ingest``)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import psutil
import pyarrow as pa
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from bench import ingest_load as load
from bench.report import PLOTS, Goal, conclude
from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from stairwise.wire.batches import decode_rows, encode_rows, pack_rows
from tests.integration.ingest_system import IngestSystem, ingest_system

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PARTITIONS = 4
OBJECTS = 600_000
ARROW_ROWS = 24 * OBJECTS
ROUNDS = 3
LATENCY_ROWS = 10_000
LATENCY_SECONDS = 30
WARM_SECONDS = 5
"""Of them, in which processes and the broker's code for small transactions are new."""
HUGE = 3
CODEC_BATCHES = 100

BARE = """
import sys, time
from confluent_kafka import TopicPartition
from stairwise.platform import kafka
brokers, topic, partitions, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
consumer = kafka.consumer(brokers, "bare")
consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
seen = len(consumer.consume(1, timeout=30))
begun, used, threads = time.perf_counter(), time.thread_time(), time.process_time()
while seen < count:
    for message in consumer.consume(10_000, timeout=0.02):
        message.value()
        seen += 1
print(
    seen / (time.thread_time() - used), seen / (time.process_time() - threads), seen / (time.perf_counter() - begun)
)
"""


@dataclass(frozen=True)
class Rate:
    """Rows of one process a second: by three measures of a second."""

    busiest: float
    """Of CPU time of the busiest thread: what the process can do where cores are free."""
    threads: float
    """Of CPU time of all its threads: what it costs."""
    clock: float
    """What it did while everything else was running, too."""


def bare_rate(system: IngestSystem, stream: Stream, messages: int) -> Rate:
    """Of a loop that only consumes messages."""
    arguments = [system.brokers, topics.incoming(stream.name), str(stream.partitions), str(messages)]
    done = subprocess.run([sys.executable, "-c", BARE, *arguments], capture_output=True, text=True, check=True)
    return Rate(*map(float, done.stdout.split()))


def ingest_rate(system: IngestSystem, stream: Stream) -> Rate:
    """Of ingest, from when it is ready; by the clock from its first transaction to its last, as its batches say."""
    with system.running() as instance:
        process = psutil.Process(instance.process.pid)
        before = _cpu_by_thread(process)
        system.await_read(stream, within=300, every=0.25)  # each look is a dozen requests that the broker answers, too
        used = [cpu - before.get(thread, 0.0) for thread, cpu in _cpu_by_thread(process).items()]
    written: list[tuple[int, int]] = []
    for topic in (topics.sequenced(stream), topics.dead(stream.name)):
        for partition in range(stream.partitions):
            for message in system.read(topic, partition):
                rows = int(kafka.headers_of(message)["rows"])
                if rows:
                    written.append((message.timestamp()[1], rows))
    written.sort()
    first, last = written[0][0], written[-1][0]
    timed = sum(rows for at, rows in written if at > first + 20)
    rows = sum(rows for _, rows in written)
    return Rate(rows / max(used), rows / sum(used), timed / max(last - first, 1) * 1000)


def _cpu_by_thread(process: psutil.Process) -> dict[int, float]:
    return {thread.id: thread.user_time + thread.system_time for thread in process.threads()}


def declared(system: IngestSystem, values: Iterable[bytes], options: str = "") -> tuple[Stream, int]:
    stream = system.declare(f"PARTITIONS {PARTITIONS} {options}", load.COLUMNS)
    if "REJECT" in options:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topics.incoming(stream.name))
        resource.add_incremental_config(
            ConfigEntry("max.message.bytes", str(16 << 20), incremental_operation=AlterConfigOpType.SET)
        )
        admin = kafka.admin(system.brokers)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)
    return stream, load.publish(system, stream, values)


def wrong_reasons(system: IngestSystem, stream: Stream) -> tuple[int, int]:
    """How many dead letters there are, and how many of them with another reason than they should have."""
    codes = dict(load.WRONG.values())
    counted: Counter[bool] = Counter()
    for partition in range(stream.partitions):
        for value, headers in system.dead(stream, partition):
            expected = "TOO_LARGE" if int(headers["size"]) == len(load.HUGE) else codes.get(value)
            counted[headers["code"] == expected] += 1
    return counted.total(), counted[False]


def latencies(system: IngestSystem) -> np.ndarray:
    """Milliseconds from the producer's call to a reader of what is committed, at a steady rate."""
    stream = system.declare(f"PARTITIONS {PARTITIONS} LATENESS 1 SECOND", load.COLUMNS)
    count = LATENCY_ROWS * LATENCY_SECONDS

    def feed() -> None:
        producer = kafka.producer(system.brokers, linger_ms=5)  # librdkafka's own default
        begun = time.monotonic()
        for number in range(count):
            now = int(time.time() * 1000)
            value = b'{"ts":%d,"ticker":"ACME","price":1.5,"qty":%d}' % (now, number)
            producer.produce(topics.incoming(stream.name), value, partition=number % PARTITIONS)
            if number % 100 == 0:
                producer.poll(0)
                time.sleep(max(0.0, begun + number / LATENCY_ROWS - time.monotonic()))
        producer.flush()

    found: list[np.ndarray] = []
    reader = kafka.consumer(system.brokers, "latency")
    reader.assign([TopicPartition(topics.sequenced(stream), p, 0) for p in range(PARTITIONS)])
    with system.running():
        for partition in range(PARTITIONS):  # until it has joined its group rows only wait
            system.publish(stream, [{"ts": int(time.time() * 1000), "ticker": "ACME"}], partition)
        system.await_read(stream)
        feeder = threading.Thread(target=feed)
        feeder.start()
        seen = -PARTITIONS
        while seen < count:
            for message in reader.consume(100, timeout=0.005):
                now = time.time() * 1000
                rows = decode_rows(pa.py_buffer(kafka.checked(message).value() or b""), stream)
                seen += rows.num_rows
                found.append(now - rows.column("ts").to_numpy())
        feeder.join()
    reader.close()
    everything = np.concatenate(found)
    return everything[PARTITIONS + WARM_SECONDS * LATENCY_ROWS :]


@dataclass(frozen=True)
class Codec:
    """What a row of ``s.*`` costs with a compression, in nanoseconds of CPU and in bytes."""

    name: str
    write: float
    read: float
    size: float


def codecs(system: IngestSystem) -> list[Codec]:
    """Batches as ingest writes them, of values that are not all alike: encoded and produced, consumed and decoded."""
    batches = list(load.batches(CODEC_BATCHES, 16_384))
    stream = system.declare("", load.COLUMNS)
    rows = CODEC_BATCHES * 16_384
    found = []
    kafkas = [(name, encode_rows, name) for name in ("none", "lz4", "snappy", "zstd")]
    for number, (name, encode, compression) in enumerate([*kafkas, ("as `s.*` is packed", pack_rows, "none")]):
        topic = f"codec-{number}"
        topics.ensure(kafka.admin(system.brokers), {topic: 1}, topics.FOREVER)
        producer = kafka.producer(system.brokers, compression_type=compression)
        begun = time.process_time()
        for batch in batches:
            producer.produce(topic, encode(batch), partition=0)
        assert producer.flush(60) == 0
        wrote = time.process_time() - begun
        begun = time.process_time()
        read = [decode_rows(message.value(), stream).num_rows for message in system.read(topic, 0)]
        took = time.process_time() - begun
        assert sum(read) == rows
        size = sum(file.stat().st_size for file in system.directory.rglob(f"{topic}-0/*.log"))
        found.append(Codec(name, wrote / rows * 1e9, took / rows * 1e9, size / rows))
    return found


def rounds(system: IngestSystem) -> tuple[dict[str, list[Rate]], int, int]:
    """Every kind of load in turn, so that what else the machine does falls on all alike; and the dead letters."""
    print("warming up the broker, which compiles while it works", file=sys.stderr)
    for values in (load.objects(OBJECTS), load.arrow(ARROW_ROWS, 1_000)):
        ingest_rate(system, declared(system, values)[0])
    rates: dict[str, list[Rate]] = defaultdict(list)
    letters = other = 0
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
        stream, messages = declared(system, load.objects(OBJECTS))
        rates["bare loop"].append(bare_rate(system, stream, messages))
        rates["objects"].append(ingest_rate(system, stream))
        rates["1,000 lines"].append(ingest_rate(system, declared(system, load.lines(2 * OBJECTS, 1_000))[0]))
        rates["Arrow, 1,000 rows"].append(ingest_rate(system, declared(system, load.arrow(ARROW_ROWS, 1_000))[0]))
        stream, _ = declared(system, load.one_in_a_hundred_wrong(OBJECTS, HUGE), "REJECT UNKNOWN FIELDS")
        rates["objects, 1 % wrong"].append(ingest_rate(system, stream))
        letters, other = wrong_reasons(system, stream)
    large = declared(system, load.arrow(500 * 16_384, 16_384))[0]
    rates["Arrow, 16,384 rows"].append(ingest_rate(system, large))
    return rates, letters, other


def median(pairs: Iterable[Rate]) -> Rate:
    """By each measure."""
    found = list(pairs)
    return Rate(
        statistics.median(rate.busiest for rate in found),
        statistics.median(rate.threads for rate in found),
        statistics.median(rate.clock for rate in found),
    )


def ratio(rates: dict[str, list[Rate]], of: str, to: str) -> Rate:
    """The median over the rounds of one rate against another."""
    return median(
        Rate(a.busiest / b.busiest, a.threads / b.threads, a.clock / b.clock)
        for a, b in zip(rates[of], rates[to], strict=True)
    )


def goals_of(rates: dict[str, list[Rate]], letters: int, other: int, p50: float, p99: float) -> list[Goal]:
    compared = (
        ("one object a message, of the bare loop", "objects", "bare loop", 0.4),
        ("1,000 lines a message, of objects", "1,000 lines", "objects", 2.5),
        ("Arrow, 1,000 rows a message, of objects", "Arrow, 1,000 rows", "objects", 12),
        ("1 % malformed rows, of objects without", "objects, 1 % wrong", "objects", 2 / 3),
    )
    goals = []
    for name, of, to, wanted in compared:
        found = ratio(rates, of, to)
        figure = f"{found.clock:.2f} × (CPU of all threads {found.threads:.2f}, of the busiest {found.busiest:.2f})"
        goals.append(Goal(name, f"≥ {wanted:.3g} ×", figure, found.clock >= wanted))
    expected = OBJECTS // 100
    return [
        *goals,
        Goal(
            "dead letters with the right reason",
            f"{expected:,} of {expected:,}",
            f"{letters - other:,} of {letters:,}",
            letters == expected and not other,
        ),
        Goal(f"latency at {LATENCY_ROWS:,} rows a second, p99", "< 200 ms", f"{p99:.0f} ms (p50 {p50:.0f})", p99 < 200),
    ]


def plot(rates: dict[str, Rate]) -> None:
    PLOTS.mkdir(exist_ok=True)
    figure, axes = plt.subplots(figsize=(8, 3.5))
    names = [name.replace(", ", ",\n") for name in rates]
    values = [rate.clock for rate in rates.values()]
    bars = axes.bar(names, values, color=["#999999", *["#3b6ea5"] * (len(rates) - 1)])
    axes.bar_label(bars, [f"{value / 1e6:.2f} M" for value in values])
    axes.set_yscale("log")
    axes.set_ylabel("rows a second")
    figure.tight_layout()
    figure.savefig(PLOTS / "ingest.svg", metadata={"Date": None})


def section(rates: dict[str, Rate], compressions: Sequence[Codec]) -> str:
    table = "\n".join(
        f"| {name} | {rate.busiest:,.0f} | {rate.threads:,.0f} | {rate.clock:,.0f} |" for name, rate in rates.items()
    )
    codec_table = "\n".join(f"| {c.name} | {c.write:.0f} | {c.read:.0f} | {c.size:.1f} |" for c in compressions)
    return (
        "One process, four partitions, rows of four columns, against a loop over `consume` that does nothing with "
        f"the same messages; broker and all on the same machine. Medians of {ROUNDS} rounds in which the loads take "
        "turns, after one that warms the broker up. The goals are judged by the clock: it measures two cores, of which "
        "the broker takes most of one while Arrow flows, and less than half while objects do. A process fetches, "
        "decodes and sends in threads of their own: the CPU time of the busiest one is what bounds its rows a second "
        "where cores are free. Of all threads, unpacking the lz4 of `in.*` is a quarter of what Arrow costs. Latency "
        "is from the producer's call to a reader of what is committed, for "
        f"{LATENCY_SECONDS - WARM_SECONDS} s after {WARM_SECONDS} s that warm up.\n\n"
        "| messages | rows per CPU second of the busiest thread | of all threads | rows a second by the clock |\n"
        f"|---|---|---|---|\n{table}\n\n"
        "![Rows a second by format](plots/ingest.svg)\n\n"
        "What a row of `s.*` costs with Kafka's compressions, and packed as it is (integers by how far they are above "
        "the lowest of their column, then lz4), for batches of 16,384 rows with random values. What a broker needs to "
        "unpack and check Kafka's compressions comes on top:\n\n"
        "| compression | CPU ns a row to write | to read | bytes a row on disk |\n|---|---|---|---|\n"
        f"{codec_table}"
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, ingest_system(Path(directory)) as system:
        rates, letters, other = rounds(system)
        p50, p99 = np.percentile(latencies(system), [50, 99])
        compressions = codecs(system)
    goals = goals_of(rates, letters, other, p50, p99)
    medians = {name: median(found) for name, found in rates.items()}
    plot(medians)
    return conclude("ingest", "Ingest", section(medians, compressions), goals)


if __name__ == "__main__":
    sys.exit(main())
