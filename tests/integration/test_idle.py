"""Idle partitions on the real broker: no row is late because a partition was quiet while others were read ahead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from tests.integration.ingest_system import START, IngestSystem, Instance, ingest_system, wait_for

pytestmark = pytest.mark.jvm

BUSY = "while True: sum(range(10_000))"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("idle")) as running:
        yield running


@pytest.fixture
def ingest(system: IngestSystem) -> Iterator[Instance]:
    with system.running() as instance:
        yield instance


@pytest.fixture
def load() -> Iterator[None]:
    """As many busy processes as there are cores."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    yield
    for process in busy:
        process.kill()
        process.wait()


def watermark(system: IngestSystem, stream: Stream, partition: int) -> int:
    batches = system.sequenced(stream, partition)
    return batches[-1].headers.watermark if batches else 0


def late(system: IngestSystem, stream: Stream) -> int:
    return sum(len(system.late(stream, p)) for p in range(stream.partitions))


def opened(system: IngestSystem, stream: Stream) -> bool:
    """Every partition has written the batch with which it begins."""
    return all(system.sequenced(stream, p) for p in range(stream.partitions))


OPTIONS = "PARTITIONS 4 IDLE AFTER 3 SECONDS"


def await_quiet(system: IngestSystem, streams: list[Stream]) -> None:
    """Wait until every partition counts as quiet: those of a stream that was declared later do."""
    wait_for(lambda: all(opened(system, stream) for stream in streams), "they are open")
    twin = system.declare(OPTIONS)
    given = 0

    def is_given() -> bool:
        nonlocal given
        given += 1
        system.publish(twin, [{"ts": START + 20_000 * given, "n": given}], 0)
        return all(watermark(system, twin, p) > START for p in (1, 2, 3))

    wait_for(is_given, "partitions count as quiet")


def await_marks(system: IngestSystem) -> None:
    """Wait until ingest has looked at idle partitions once more, and once again."""
    quick = system.declare("PARTITIONS 2 IDLE AFTER 100 ms")
    system.publish(quick, [{"ts": START, "n": 0}], 0)
    wait_for(lambda: watermark(system, quick, 1) == START - 1, "marks are written")


def test_rows_that_reach_the_broker_shortly_after_those_of_other_partitions_are_on_time(
    system: IngestSystem, ingest: Instance
) -> None:
    """All partitions have been quiet for long; then a producer fills them one after the other."""
    stream = system.declare("PARTITIONS 4 IDLE AFTER 5 SECONDS")
    await_quiet(system, [stream])
    await_quiet(system, [stream])  # 3 seconds twice
    rows = [{"ts": START + n, "n": n} for n in range(2_000)]
    system.publish(stream, rows, 0)
    system.await_read(stream, every=0.005)
    await_marks(system)
    for partition in (1, 2, 3):
        system.publish(stream, rows, partition)
    system.await_read(stream)
    assert late(system, stream) == 0
    assert [len(system.rows(stream, p)) for p in range(4)] == [2_000] * 4


def test_a_backlog_that_came_while_ingest_hung_is_on_time(system: IngestSystem, ingest: Instance) -> None:
    """One partition's rows were taken before; those of the others wait for far longer than IDLE AFTER."""
    stream = system.declare("PARTITIONS 4 IDLE AFTER 1 SECOND")
    wait_for(lambda: opened(system, stream), "it is open")
    system.publish(stream, [{"ts": START + n, "n": n} for n in range(5_000)], 0)
    wait_for(lambda: system.lag(stream) == 0, "it is read", every=0.005)
    ingest.process.send_signal(signal.SIGSTOP)
    for partition in (1, 2, 3):
        system.publish(stream, [{"ts": START + n, "n": n} for n in range(5_000)], partition)
    await_a_while(system)
    ingest.process.send_signal(signal.SIGCONT)
    wait_for(lambda: ingest.process.poll() is not None or system.lag(stream) == 0, "it goes on, or ends")
    if ingest.process.poll() is None:
        system.await_read(stream)
    else:  # on a busy machine the group misses it while it hangs: it ends, and is started again
        with system.running():
            system.await_read(stream)
    assert late(system, stream) == 0


def await_a_while(system: IngestSystem) -> None:
    """Until another producer has written a thousand times."""
    other = f"beside.{system.name()}"
    topics.ensure(kafka.admin(system.brokers), {other: 1})
    producer = kafka.producer(system.brokers)
    for _ in range(1_000):
        producer.produce(other, b"")
        assert producer.flush(60) == 0


def test_a_partition_to_which_nothing_was_ever_written_holds_nobody_up(system: IngestSystem, ingest: Instance) -> None:
    stream = system.declare("PARTITIONS 4")
    for partition in (0, 1, 2):
        system.publish(stream, [{"ts": START + 1_000 * n + partition, "n": n} for n in range(50)], partition)
    wait_for(lambda: watermark(system, stream, 3) == START + 48_999, "the empty partition has the least of the others")
    system.publish(stream, [{"ts": START + 48_999, "n": 1}, {"ts": START + 49_000, "n": 2}], 3)
    system.await_read(stream)
    assert [json.loads(value)["n"] for value, _ in system.late(stream, 3)] == [1]
    system.publish(stream, [{"ts": START + 99_000, "n": n} for n in range(3)], 0)
    system.await_read(stream)
    assert [watermark(system, stream, p) for p in (1, 2, 3)] == [START + 49_000, START + 49_001, START + 48_999]


@pytest.mark.parametrize("repetitions", [3, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(7200)])])
def test_loaded_publishes_have_no_late_rows(
    system: IngestSystem, ingest: Instance, load: None, repetitions: int
) -> None:
    """Keyed rows in order of time, with some minutes of event time every millisecond, into streams that were quiet."""
    counts: list[int] = []
    while len(counts) < repetitions:
        streams = [system.declare(OPTIONS) for _ in range(min(10, repetitions - len(counts)))]
        await_quiet(system, streams)
        for stream in streams:
            publish_by_key(system, stream, 60_000)
            system.await_read(stream)
            counts.append(late(system, stream))
            system.sql(f"DROP STREAM {stream.name}")
    print(f"{repetitions} loaded publishes, {sum(counts)} rows late")
    assert counts == [0] * repetitions


def publish_by_key(system: IngestSystem, stream: Stream, rows: int) -> None:
    """As a producer of keyed rows does: all in one go, one key four times as often as the others."""
    producer = kafka.producer(system.brokers, linger_ms=20)
    for n in range(rows):
        partition = (0, 0, 1, 0, 2, 0, 3)[n % 7]
        data = b'{"ts": %d, "n": %d}' % (START + 1_000 * n, n)
        while True:
            try:
                producer.produce(topics.incoming(stream.name), data, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
