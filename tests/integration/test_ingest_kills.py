"""kill -9 at random moments: every event is in s.*, late.* or dlq.* exactly once, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.ingest_numbers import Account, Feeder, account, describe, random_kills
from tests.integration.ingest_system import IngestSystem, ingest_system

pytestmark = pytest.mark.jvm

COLUMNS = "ts TIMESTAMP, n BIGINT NOT NULL, v DOUBLE"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("ingest-kills")) as system:
        yield system


def run(system: IngestSystem, kills: int, events: int, seconds: float, seed: int) -> Account:
    stream = system.declare("PARTITIONS 4", COLUMNS)
    feeder = Feeder(system, stream, events, events / seconds)
    done = random_kills(system, feeder, kills, seed)
    system.await_read(stream, within=240)
    result = account(system, stream, events)
    print(describe(done, result))
    for instance in system.instances:
        if instance.process.poll() is None:
            instance.stop()
    return result


def test_a_few_kills_lose_and_repeat_nothing(system: IngestSystem) -> None:
    assert run(system, kills=4, events=300_000, seconds=8, seed=7) == Account(0, 0, 0)


@pytest.mark.long
def test_thirty_kills_while_five_million_events_flow_lose_and_repeat_nothing(
    system: IngestSystem, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        assert run(system, kills=30, events=5_000_000, seconds=100, seed=11) == Account(0, 0, 0)
