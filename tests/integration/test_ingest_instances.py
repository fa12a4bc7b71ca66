"""Several instances share the partitions: who comes, who goes and who hangs costs no event, and nothing goes back."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator

import pytest

from stairwise.schema import Stream
from tests.integration.ingest_numbers import Account, Feeder, account
from tests.integration.ingest_system import START, IngestSystem, ingest_system, wait_for

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("ingest-instances")) as system:
        yield system


@pytest.fixture
def system(shared: IngestSystem) -> Iterator[IngestSystem]:
    """A registry without streams, and no instance."""
    yield shared
    while shared.instances:
        instance = shared.instances.pop()
        if instance.process.poll() is None:
            instance.kill()
    for name in list(shared.registry.catalogue.streams):
        shared.sql(f"DROP STREAM {name}")


def opened(system: IngestSystem, instance: int) -> int:
    """How many partitions an instance holds, by its log: one may be opened again when a transaction did not hold."""
    held = set()
    for line in system.instances[instance].log.read_text().splitlines():
        if '"partition opened"' in line or '"partition left"' in line:
            event = json.loads(line)
            change = held.add if event["message"] == "partition opened" else held.discard
            change((event["topic"], event["partition"]))
    return len(held)


def test_partitions_move_to_who_comes_and_back_from_who_goes_and_hangs(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 4", "ts TIMESTAMP, n BIGINT NOT NULL, v DOUBLE")
    feeder = Feeder(system, stream, 400_000, 25_000)
    first = system.start("a")
    feeder.start()
    wait_for(lambda: opened(system, 0) == 4, "the first has all")
    second = system.start("b")
    wait_for(lambda: (opened(system, 0), opened(system, 1)) == (2, 2), "they share")
    first.process.send_signal(signal.SIGSTOP)  # it hangs, perhaps in a transaction
    wait_for(lambda: opened(system, 1) == 4, "the second has all")
    system.sql(f"CREATE QUERY q AS SELECT COUNT(*) FROM {stream.name} [TUMBLE 1 SECOND]")
    wait_for(lambda: at_version(system, stream), "all partitions move to the new version")
    first.process.send_signal(signal.SIGCONT)  # it wakes up and must not write what it held: if it held any, it ends
    wait_for(
        lambda: first.process.poll() == 1 or (opened(system, 0), opened(system, 1)) == (2, 2), "it is back, or not"
    )
    if first.process.poll() is not None:
        first = system.start("a")  # as its supervisor would
    feeder.join(120)
    system.await_read(stream)
    assert account(system, stream, 400_000) == Account(0, 0, 0)
    assert second.stop() == 0
    assert first.process.poll() is None
    system.publish(stream, [{"ts": START + 500_000, "n": 0}])
    system.await_read(stream)


def at_version(system: IngestSystem, stream: Stream) -> bool:
    version = system.registry.catalogue.version
    last = [system.sequenced(stream, p)[-1].headers.version for p in range(stream.partitions)]
    return last == [version] * stream.partitions


def test_an_idle_partition_follows_active_ones_of_another_instance(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2 IDLE AFTER 300 ms")
    system.start("a")
    system.start("b")
    wait_for(lambda: (opened(system, 0), opened(system, 1)) == (1, 1), "they share")
    system.publish(stream, [{"ts": START, "n": 0}], 1)
    number = 0

    def is_given() -> bool:
        nonlocal number
        number += 1
        system.publish(stream, [{"ts": START + 1_000 * number, "n": number}], 0)
        return system.sequenced(stream, 1)[-1].headers.watermark > START + 1_000

    wait_for(is_given, "time goes on in the partition without rows")


def test_a_second_process_with_the_same_name_takes_over_and_the_first_ends(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2")
    first = system.start("a")
    wait_for(lambda: opened(system, 0) == 2, "the first has all")
    system.start("a")
    system.publish(stream, [{"ts": START + n, "n": n} for n in range(10)])
    wait_for(lambda: first.process.poll() is not None, "the first has ended")
    assert first.process.returncode == 1
    system.await_read(stream)
    assert [row["n"] for row in system.rows(stream)] == list(range(10))


def test_a_broker_that_is_killed_in_the_middle_costs_nothing(system: IngestSystem) -> None:
    """Ingest may end; what it was writing is written once when it has come back."""
    stream = system.declare("PARTITIONS 4", "ts TIMESTAMP, n BIGINT NOT NULL, v DOUBLE")
    system.start("a")
    feeder = Feeder(system, stream, 100_000, 20_000)
    feeder.start()
    wait_for(lambda: system.sequenced(stream), "rows flow")
    system.restart_broker()
    feeder.join(120)
    deadline = time.monotonic() + 60
    while system.lag(stream) and time.monotonic() < deadline:
        if system.instances[-1].process.poll() is not None:
            system.start("a", await_ready=False)
        time.sleep(0.5)
    assert account(system, stream, 100_000) == Account(0, 0, 0)
